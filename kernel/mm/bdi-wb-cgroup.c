// SPDX-License-Identifier: GPL-2.0
/*
 * The writebacks that count at one throttle, that of the root or of a cgroup:
 * one in each context.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include "bdi-writeback-ctx.h"

/**
 * throttle_wb - writeback of a context that a throttle is there for
 * @throttle: writeback that throttles
 * @ctx: context of interest
 *
 * Return: the writeback, which lives as long as @throttle, or %NULL if @ctx
 * has none.
 */
struct bdi_writeback *throttle_wb(struct bdi_writeback *throttle,
				  struct bdi_writeback_ctx *ctx)
{
	if (!ctx->index)
		return throttle;
	if (throttle->root)
		return &ctx->wb;
#ifdef CONFIG_CGROUP_WRITEBACK
	return xa_load(&throttle->ctx_wbs, ctx->index);
#else
	return NULL;
#endif
}

/**
 * throttle_next_wb - iterate over every writeback that a throttle is there for
 * @throttle: writeback that throttles, the first of them
 * @wb: present writeback
 *
 * Return: the writeback behind @wb, or %NULL at the end.
 */
struct bdi_writeback *throttle_next_wb(struct bdi_writeback *throttle,
				       struct bdi_writeback *wb)
{
	struct bdi_writeback_ctx *ctx;

	if (throttle->root) {
		ctx = bdi_next_wb_ctx(throttle->bdi, wb->ctx);
		return ctx ? &ctx->wb : NULL;
	}
#ifdef CONFIG_CGROUP_WRITEBACK
	unsigned long index = wb->ctx->index;

	return xa_find_after(&throttle->ctx_wbs, &index, ULONG_MAX, XA_PRESENT);
#else
	return NULL;
#endif
}

#ifdef CONFIG_CGROUP_WRITEBACK

/* With spinlocks held, and perhaps interrupts off. */
static struct bdi_writeback *cgwb_create_in_ctx(struct bdi_writeback *throttle,
						struct bdi_writeback_ctx *ctx)
{
	struct backing_dev_info *bdi = throttle->bdi;
	struct bdi_writeback *new, *wb;
	unsigned long flags;

	/* there is a way without: context 0 */
	new = kmalloc_obj(*new, GFP_NOWAIT | __GFP_NOMEMALLOC);
	if (!new)
		return NULL;

	wb_init_in_ctx(new, ctx, throttle);

	spin_lock_irqsave(&bdi->wb_ctx_lock, flags);
	wb = xa_load(&throttle->ctx_wbs, ctx->index);
	if (!wb && bdi_is_open(bdi) &&
	    !xa_reserve(&throttle->ctx_wbs, ctx->index,
			GFP_NOWAIT | __GFP_NOMEMALLOC)) {
		/*
		 * Registered first: whoever finds it may dirty an inode at once,
		 * and expect it to be woken for that and to be synced.
		 */
		bdi_register_wb(new);
		wb = new;
		new = NULL;
		/* cannot fail, its place is reserved */
		xa_store(&throttle->ctx_wbs, ctx->index, wb, GFP_ATOMIC);
	}
	spin_unlock_irqrestore(&bdi->wb_ctx_lock, flags);
	kfree(new);
	return wb;
}

/**
 * wb_get_create_in_ctx - get the writeback of a memcg in a context
 * @ctx: target context
 * @memcg_css: memcg, see wb_get_create()
 * @gfp: allocation mask for its throttle
 *
 * Return: a reference on the writeback, on that of context 0 where there is no
 * memory for another one; %NULL if the memcg is on its way out.
 */
struct bdi_writeback *wb_get_create_in_ctx(struct bdi_writeback_ctx *ctx,
					   struct cgroup_subsys_state *memcg_css,
					   gfp_t gfp)
{
	struct bdi_writeback *throttle;

	throttle = wb_get_create(ctx->bdi, memcg_css, gfp);
	if (!throttle)
		return NULL;

	return wb_in_ctx(throttle, ctx) ?: throttle;
}

/**
 * wb_get_create_only_in_ctx - get the writeback of a memcg in this context
 * @ctx: target context
 * @memcg_css: memcg, see wb_get_create()
 * @gfp: allocation mask for its throttle
 *
 * For inodes of a removed cgroup, which stay in their context: where this finds
 * nothing the caller goes on to the next ancestor. The root has a writeback in
 * each context, so it always finds that.
 *
 * Return: a reference on the writeback; %NULL if there is no memory for it, or
 * the memcg is on its way out.
 */
struct bdi_writeback *
wb_get_create_only_in_ctx(struct bdi_writeback_ctx *ctx,
			  struct cgroup_subsys_state *memcg_css, gfp_t gfp)
{
	struct bdi_writeback *wb = wb_get_create_in_ctx(ctx, memcg_css, gfp);

	if (!wb || wb->ctx == ctx)
		return wb;

	wb_put(wb);
	return NULL;
}

/**
 * cgwb_shutdown_ctx_wbs - finish the work of a cgroup in contexts 1 and above
 * @throttle: cgroup writeback without references, so no inode is left
 */
void cgwb_shutdown_ctx_wbs(struct bdi_writeback *throttle)
{
	struct bdi_writeback *wb;
	unsigned long index;

	xa_for_each(&throttle->ctx_wbs, index, wb) {
		wb_shutdown(wb);
		WARN_ON_ONCE(!list_empty(&wb->b_attached));
		WARN_ON_ONCE(work_pending(&wb->switch_work));
	}
}

/**
 * cgwb_free_ctx_wbs - free a cgroup's writebacks in contexts 1 and above
 * @throttle: cgroup writeback that nobody can find any more
 */
void cgwb_free_ctx_wbs(struct bdi_writeback *throttle)
{
	struct bdi_writeback *wb;
	unsigned long index;

	xa_for_each(&throttle->ctx_wbs, index, wb) {
		wb_exit(wb);
		kfree(wb);
	}
	xa_destroy(&throttle->ctx_wbs);
}

/**
 * cgwb_cleanup_offline_ctx_wbs - detach the inodes of an offline cgroup
 * @throttle: its writeback in context 0, which the caller holds a reference on
 *
 * As cleanup_offline_cgwb(), for all contexts.
 *
 * Return: %true if there are more, and the caller has to come again.
 */
bool cgwb_cleanup_offline_ctx_wbs(struct bdi_writeback *throttle)
{
	bool restart = cleanup_offline_cgwb(throttle);
	struct bdi_writeback *wb;
	unsigned long index;

	xa_for_each(&throttle->ctx_wbs, index, wb)
		if (!wb_has_dirty_io(wb))
			restart |= cleanup_offline_cgwb(wb);

	return restart;
}

#endif	/* CONFIG_CGROUP_WRITEBACK */

/**
 * wb_in_ctx - writeback of the same cgroup in another context
 * @wb: writeback of an inode
 * @ctx: context of interest
 *
 * Created if this is the first inode of the cgroup there. It lives as long as
 * the throttle, which a reference on @wb is one on. So an inode that moves
 * takes its reference along.
 *
 * Return: the writeback; %NULL if there is no memory for it.
 */
struct bdi_writeback *wb_in_ctx(struct bdi_writeback *wb,
				struct bdi_writeback_ctx *ctx)
{
	struct bdi_writeback *throttle = wb->throttle;
	struct bdi_writeback *found = throttle_wb(throttle, ctx);

#ifdef CONFIG_CGROUP_WRITEBACK
	if (!found)
		found = cgwb_create_in_ctx(throttle, ctx);
#endif
	return found;
}
