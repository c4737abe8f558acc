// SPDX-License-Identifier: GPL-2.0
/*
 * Writeback contexts beyond the first: each comes with the first inode that
 * belongs to it, and is open for work while its BDI is.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/export.h>
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/writeback.h>
#include "bdi-writeback-ctx.h"

/**
 * wb_init_in_ctx - initialise a writeback of context 1 or above
 * @wb: new writeback
 * @ctx: context that it will flush in
 * @throttle: writeback of context 0 that it counts at
 *
 * It has no counters and no references of its own, so nothing has to be
 * allocated for it.
 */
void wb_init_in_ctx(struct bdi_writeback *wb, struct bdi_writeback_ctx *ctx,
		    struct bdi_writeback *throttle)
{
	wb_init(wb, ctx, throttle, GFP_NOWAIT);
#ifdef CONFIG_CGROUP_WRITEBACK
	wb->memcg_css = throttle->memcg_css;
	wb->blkcg_css = throttle->blkcg_css;
	INIT_LIST_HEAD(&wb->b_attached);
	INIT_WORK(&wb->switch_work, inode_switch_wbs_work_fn);
	init_llist_head(&wb->switch_wbs_ctxs);
#endif
}

/**
 * bdi_add_wb - make a writeback known to whoever walks those of its BDI
 * @wb: new writeback
 */
void bdi_add_wb(struct bdi_writeback *wb)
{
	struct backing_dev_info *bdi = wb->bdi;
	unsigned long flags;

	spin_lock_irqsave(&bdi->wb_ctx_lock, flags);
	list_add_tail_rcu(&wb->bdi_node, &bdi->wb_list);
	spin_unlock_irqrestore(&bdi->wb_ctx_lock, flags);
}

/**
 * bdi_del_wb - take a writeback off the list of its BDI
 * @wb: writeback that is no longer registered
 */
void bdi_del_wb(struct bdi_writeback *wb)
{
	struct backing_dev_info *bdi = wb->bdi;
	unsigned long flags;

	spin_lock_irqsave(&bdi->wb_ctx_lock, flags);
	list_del_rcu(&wb->bdi_node);
	spin_unlock_irqrestore(&bdi->wb_ctx_lock, flags);
}

/**
 * bdi_is_open - may a further writeback be registered?
 * @bdi: BDI of interest
 *
 * Return: %false once context 0 is no longer registered.
 */
bool bdi_is_open(struct backing_dev_info *bdi)
{
	lockdep_assert_held(&bdi->wb_ctx_lock);
	return test_bit(WB_registered, &bdi_root_wb(bdi)->state);
}

/**
 * bdi_register_wb - open a writeback for work
 * @wb: writeback of an open BDI
 */
void bdi_register_wb(struct bdi_writeback *wb)
{
	lockdep_assert_held(&wb->bdi->wb_ctx_lock);
	list_add_tail_rcu(&wb->bdi_node, &wb->bdi->wb_list);
	set_bit(WB_registered, &wb->state);
}

/*
 * Readers take no lock: the array is replaced once only, by one that is large
 * enough for ever, and the first one is a part of the BDI.
 */
static bool bdi_grow_wb_ctx_arr(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx **arr;

	arr = kcalloc(bdi->max_wb_ctx, sizeof(*arr), GFP_KERNEL);
	if (!arr)
		return false;

	spin_lock_irq(&bdi->wb_ctx_lock);
	if (bdi->wb_ctx_arr == &bdi->first_wb_ctx) {
		arr[0] = bdi->first_wb_ctx;
		/* pairs with the acquire in bdi_wb_ctx() */
		smp_store_release(&bdi->wb_ctx_arr, arr);
		arr = NULL;
	}
	spin_unlock_irq(&bdi->wb_ctx_lock);
	kfree(arr);
	return true;
}

/**
 * sb_enable_wb_ctx - spread the inodes of a filesystem over contexts
 * @sb: superblock being filled, no inode of it has been dirtied yet
 *
 * To be called by a filesystem whose ->writepages() may run for different
 * inodes at once. Without memory for the contexts it keeps to one.
 */
void sb_enable_wb_ctx(struct super_block *sb)
{
	struct backing_dev_info *bdi = sb->s_bdi;

	if (bdi->max_wb_ctx > 1 && !bdi_has_wb_ctx(bdi) &&
	    !bdi_grow_wb_ctx_arr(bdi)) {
		pr_warn("%s: no memory for writeback contexts, using one\n",
			bdi_dev_name(bdi));
		return;
	}
	sb->s_iflags |= SB_I_WB_CTX;
}
EXPORT_SYMBOL_GPL(sb_enable_wb_ctx);

/*
 * Called wherever an inode gets its first dirty page, or leaves its context,
 * with spinlocks held and perhaps interrupts off. No lock of the context is
 * needed to register it: nobody knows it yet.
 */
static struct bdi_writeback_ctx *bdi_create_wb_ctx(struct backing_dev_info *bdi,
						   unsigned int index)
{
	struct bdi_writeback_ctx *new, *ctx;
	unsigned long flags;

	/* there is a way without: context 0 */
	new = bdi_alloc_wb_ctx(bdi, index, GFP_NOWAIT | __GFP_NOMEMALLOC);
	if (!new)
		return NULL;

	wb_init_in_ctx(&new->wb, new, bdi_root_wb(bdi));
	spin_lock_irqsave(&bdi->wb_ctx_lock, flags);
	ctx = bdi->wb_ctx_arr[index];
	if (!ctx) {
		ctx = new;
		new = NULL;
		if (bdi_is_open(bdi))
			bdi_register_wb(&ctx->wb);
		/* pairs with the acquire in bdi_wb_ctx() */
		smp_store_release(&bdi->wb_ctx_arr[index], ctx);
		if (index >= bdi->end_wb_ctx) {
			/* pairs with the acquire in bdi_next_wb_ctx() */
			smp_store_release(&bdi->end_wb_ctx, index + 1);
		}
	}
	spin_unlock_irqrestore(&bdi->wb_ctx_lock, flags);
	kfree(new);
	return ctx;
}

/**
 * bdi_fetch_wb_ctx - context of a BDI, created if need be
 * @bdi: BDI with a filesystem that spreads its inodes over contexts
 * @index: below bdi->max_wb_ctx
 *
 * Return: the context, or context 0 where there is no memory for it.
 */
struct bdi_writeback_ctx *bdi_fetch_wb_ctx(struct backing_dev_info *bdi,
					   unsigned int index)
{
	struct bdi_writeback_ctx *ctx = bdi_wb_ctx(bdi, index);

	if (unlikely(!ctx))
		ctx = bdi_create_wb_ctx(bdi, index);

	return ctx ?: bdi_wb_ctx(bdi, 0);
}

/**
 * bdi_register_wb_ctx - open the contexts of a BDI for work
 * @bdi: BDI being registered, unknown to anyone else
 */
void bdi_register_wb_ctx(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx = bdi_wb_ctx(bdi, 0);

	set_bit(WB_registered, &ctx->wb.state);
	while ((ctx = bdi_next_wb_ctx(bdi, ctx))) {
		bdi_add_wb(&ctx->wb);
		set_bit(WB_registered, &ctx->wb.state);
	}
}

/**
 * bdi_shutdown_wb_ctx - finish the work of all contexts but the first
 * @bdi: BDI whose context 0 has been shut down
 *
 * The lock is for whoever has just seen context 0 registered: when it is free,
 * no further writeback gets in.
 */
void bdi_shutdown_wb_ctx(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx = bdi_wb_ctx(bdi, 0);

	spin_lock_irq(&bdi->wb_ctx_lock);
	spin_unlock_irq(&bdi->wb_ctx_lock);
	while ((ctx = bdi_next_wb_ctx(bdi, ctx)))
		wb_shutdown(&ctx->wb);
}
