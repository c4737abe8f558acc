// SPDX-License-Identifier: GPL-2.0
/*
 * Writeback contexts: see include/linux/bdi-writeback-ctx.h for what they are
 * and for the lock order.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/writeback.h>
#include <linux/xarray.h>
#include "bdi-writeback-ctx.h"

#define CREATE_TRACE_POINTS
#include <trace/events/writeback_ctx.h>

/**
 * wb_init_ctx - tie a new bdi_writeback to its context and its throttle
 * @wb: bdi_writeback being initialised
 * @ctx: context that it will flush in
 * @throttle: bdi_writeback that steers the writers on behalf of @wb; @wb
 *	itself in context 0, otherwise a reference that @wb takes over
 */
void wb_init_ctx(struct bdi_writeback *wb, struct bdi_writeback_ctx *ctx,
		 struct bdi_writeback *throttle)
{
	wb->bdi = ctx->bdi;
	wb->ctx = ctx;
	wb->throttle = throttle;
	wb->root = wb == &ctx->wb;
	spin_lock_init(&wb->dirty_lock);
#ifdef CONFIG_CGROUP_WRITEBACK
	xa_init(&wb->ctx_wbs);
#endif
}

/**
 * wb_init_root - initialise the writeback that throttles a BDI's root cgroup
 * @ctx: context 0 of the BDI
 *
 * Return: 0, or -ENOMEM.
 */
int wb_init_root(struct bdi_writeback_ctx *ctx)
{
	return wb_init(&ctx->wb, ctx, &ctx->wb, GFP_KERNEL);
}

/*
 * Initialise a writeback of context 1 or above. It has no counters and no
 * references of its own, so nothing has to be allocated for it.
 */
static void wb_init_in_ctx(struct bdi_writeback *wb,
			   struct bdi_writeback_ctx *ctx,
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

static struct bdi_writeback_ctx *bdi_alloc_wb_ctx(struct backing_dev_info *bdi,
						  unsigned int index, gfp_t gfp)
{
	struct bdi_writeback_ctx *ctx;

	ctx = kzalloc_obj(*ctx, gfp);
	if (!ctx)
		return NULL;

	ctx->bdi = bdi;
	ctx->index = index;
	return ctx;
}

/**
 * bdi_init_first_wb_ctx - give a new BDI its context 0
 * @bdi: BDI being initialised
 *
 * Return: 0, or -ENOMEM.
 */
int bdi_init_first_wb_ctx(struct backing_dev_info *bdi)
{
	int ret;

	spin_lock_init(&bdi->wb_ctx_lock);
	init_rwsem(&bdi->wb_switch_rwsem);
	bdi->nr_wb_ctx = 1;
	bdi->max_wb_ctx = 1;
	bdi->wb_ctx_arr = &bdi->first_wb_ctx;
	bdi->first_wb_ctx = bdi_alloc_wb_ctx(bdi, 0, GFP_KERNEL);
	if (!bdi->first_wb_ctx)
		return -ENOMEM;

	ret = cgwb_bdi_init(bdi);
	if (ret) {
		kfree(bdi->first_wb_ctx);
		return ret;
	}
	bdi->end_wb_ctx = 1;
	return 0;
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

/* Once context 0 is no longer registered, no further writeback gets in. */
static bool bdi_is_open(struct backing_dev_info *bdi)
{
	lockdep_assert_held(&bdi->wb_ctx_lock);
	return test_bit(WB_registered, &bdi_root_wb(bdi)->state);
}

static void bdi_register_wb(struct bdi_writeback *wb)
{
	lockdep_assert_held(&wb->bdi->wb_ctx_lock);
	list_add_tail_rcu(&wb->bdi_node, &wb->bdi->wb_list);
	set_bit(WB_registered, &wb->state);
}

/**
 * bdi_enable_wb_ctx - allow a BDI more than one context
 * @bdi: new BDI of a block device, not yet registered
 *
 * The contexts themselves come with the first inode that each of them gets,
 * so that a device which nobody writes to costs nothing.
 */
void bdi_enable_wb_ctx(struct backing_dev_info *bdi)
{
	bdi->nr_wb_ctx = num_online_cpus();
	bdi->max_wb_ctx = BDI_WB_CTX_PER_CPU * num_possible_cpus();
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
 * Called wherever an inode gets its first dirty page, with interrupts off and
 * spinlocks held. No lock of the context is needed to register it: nobody
 * knows it yet.
 */
static struct bdi_writeback_ctx *bdi_create_wb_ctx(struct backing_dev_info *bdi,
						   unsigned int index)
{
	struct bdi_writeback_ctx *new, *ctx;
	unsigned long flags;

	new = bdi_alloc_wb_ctx(bdi, index, GFP_ATOMIC);
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

/*
 * The place of an inode under the present number of contexts. It is where the
 * inode goes next, not necessarily where it is.
 */
static unsigned int inode_wb_ctx_index(struct inode *inode)
{
	if (!(inode->i_sb->s_iflags & SB_I_WB_CTX))
		return 0;

	return wb_ctx_index(inode->i_ino,
			    READ_ONCE(inode_to_bdi(inode)->nr_wb_ctx));
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
 * fetch_bdi_writeback_ctx - context that an inode is to be written back by
 * @inode: inode of interest
 *
 * Creates the context if this is its first inode. The inode of a block device
 * stays in context 0: it is one inode, and its place must not depend on what
 * is mounted.
 *
 * Return: the context, or context 0 where there is no memory for it.
 */
struct bdi_writeback_ctx *fetch_bdi_writeback_ctx(struct inode *inode)
{
	return bdi_fetch_wb_ctx(inode_to_bdi(inode), inode_wb_ctx_index(inode));
}

/**
 * inode_wb_ctx - context that an inode is in
 * @inode: inode with a writeback
 *
 * Return: the context. Without a lock of the inode it may have changed.
 */
struct bdi_writeback_ctx *inode_wb_ctx(struct inode *inode)
{
	struct bdi_writeback_ctx *ctx;

	rcu_read_lock();
	ctx = READ_ONCE(inode->i_wb)->ctx;
	rcu_read_unlock();

	return ctx;
}

/**
 * inode_next_wb_ctx - context that an inode has to move to
 * @inode: inode with a writeback
 * @wb: its writeback, list_lock is held
 *
 * Return: the context; %NULL if the inode stays, as it does but after the
 * number of contexts has changed.
 */
struct bdi_writeback_ctx *inode_next_wb_ctx(struct inode *inode,
					    struct bdi_writeback *wb)
{
	unsigned int index = inode_wb_ctx_index(inode);

	return index == wb->ctx->index ? NULL : bdi_fetch_wb_ctx(wb->bdi, index);
}

#ifndef CONFIG_CGROUP_WRITEBACK
/**
 * inode_attach_root_wb - associate an inode with the writeback of its context
 * @inode: inode that is dirtied for the first time
 */
void inode_attach_root_wb(struct inode *inode)
{
	struct bdi_writeback *wb = &fetch_bdi_writeback_ctx(inode)->wb;

	/* several callers may race to attach the same inode */
	if (!cmpxchg(&inode->i_wb, NULL, wb))
		trace_wb_ctx_attach(inode, wb);
}
EXPORT_SYMBOL_GPL(inode_attach_root_wb);
#endif

#ifdef CONFIG_CGROUP_WRITEBACK

/* Called as bdi_create_wb_ctx() is. */
static struct bdi_writeback *cgwb_create_in_ctx(struct bdi_writeback *throttle,
						struct bdi_writeback_ctx *ctx)
{
	struct backing_dev_info *bdi = throttle->bdi;
	struct bdi_writeback *new, *wb;
	unsigned long flags;

	new = kmalloc_obj(*new, GFP_ATOMIC);
	if (!new)
		return NULL;

	wb_init_in_ctx(new, ctx, throttle);

	spin_lock_irqsave(&bdi->wb_ctx_lock, flags);
	wb = xa_load(&throttle->ctx_wbs, ctx->index);
	if (!wb && bdi_is_open(bdi) &&
	    !xa_err(xa_store(&throttle->ctx_wbs, ctx->index, new, GFP_ATOMIC))) {
		bdi_register_wb(new);
		wb = new;
		new = NULL;
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

/**
 * bdi_free_wb_ctx - free the contexts of a BDI
 * @bdi: unregistered BDI without users
 */
void bdi_free_wb_ctx(struct backing_dev_info *bdi)
{
	/* context 0 goes last: it holds the throttle of the others */
	for (int i = bdi->end_wb_ctx - 1; i >= 0; i--) {
		struct bdi_writeback_ctx *ctx = bdi_wb_ctx(bdi, i);

		if (!ctx)
			continue;

		WARN_ON_ONCE(test_bit(WB_registered, &ctx->wb.state));
		wb_exit(&ctx->wb);
		kfree(ctx);
	}
	if (bdi->wb_ctx_arr != &bdi->first_wb_ctx)
		kfree(bdi->wb_ctx_arr);
}
