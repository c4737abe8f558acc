// SPDX-License-Identifier: GPL-2.0
/*
 * Writeback contexts: see include/linux/bdi-writeback-ctx.h for what they are
 * and for the lock order.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/blkdev.h>
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/export.h>
#include <linux/fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
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
}

/**
 * wb_init_root - initialise the root writeback of a context
 * @ctx: new context
 *
 * Return: 0, or -ENOMEM.
 */
int wb_init_root(struct bdi_writeback_ctx *ctx)
{
	struct bdi_writeback *throttle = &ctx->wb;

	if (ctx->index)
		throttle = bdi_root_wb(ctx->bdi);

	return wb_init(&ctx->wb, ctx, throttle, GFP_KERNEL);
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
	INIT_LIST_HEAD(&ctx->wb_list);
	init_rwsem(&ctx->wb_switch_rwsem);
	init_waitqueue_head(&ctx->wb_waitq);
	if (cgwb_bdi_init(ctx)) {
		kfree(ctx);
		return NULL;
	}
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
	/* a class of its own: the semaphores of the others nest in this one */
	static struct lock_class_key switch_rwsem_key;

	spin_lock_init(&bdi->wb_ctx_lock);
#ifdef CONFIG_CGROUP_WRITEBACK
	mutex_init(&bdi->cgwb_release_mutex);
#endif
	bdi->nr_wb_ctx = 1;
	bdi->max_wb_ctx = 1;
	bdi->wb_ctx_arr = &bdi->first_wb_ctx;
	bdi->first_wb_ctx = bdi_alloc_wb_ctx(bdi, 0, GFP_KERNEL);
	if (!bdi->first_wb_ctx)
		return -ENOMEM;

	lockdep_set_class(&bdi->first_wb_ctx->wb_switch_rwsem,
			  &switch_rwsem_key);
	bdi->end_wb_ctx = 1;
	return 0;
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

	if (bdi->max_wb_ctx > 1 && bdi->wb_ctx_arr == &bdi->first_wb_ctx &&
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

	spin_lock_irqsave(&bdi->wb_ctx_lock, flags);
	ctx = bdi->wb_ctx_arr[index];
	if (!ctx) {
		ctx = new;
		new = NULL;
		if (test_bit(WB_registered, &bdi_root_wb(bdi)->state)) {
			list_add_tail_rcu(&ctx->wb.bdi_node, &ctx->wb_list);
			set_bit(WB_registered, &ctx->wb.state);
		}
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
EXPORT_SYMBOL_GPL(fetch_bdi_writeback_ctx);

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

/**
 * wb_get_sibling - writeback of another context that has the same throttle
 * @wb: writeback of an inode
 * @ctx: context of interest
 *
 * Return: a reference on the writeback of the same memcg in @ctx; %NULL if
 * there is no memory for it, or if the memcg is on its way out.
 */
struct bdi_writeback *wb_get_sibling(struct bdi_writeback *wb,
				     struct bdi_writeback_ctx *ctx)
{
	struct bdi_writeback *sibling = &ctx->wb;

#ifdef CONFIG_CGROUP_WRITEBACK
	if (!wb->root)
		sibling = wb_get_create(ctx, wb->memcg_css, GFP_ATOMIC);
#endif
	/* the throttle is another one after the memcg changed its blkcg */
	if (sibling && sibling->throttle != wb->throttle) {
		wb_put(sibling);
		return NULL;
	}
	return sibling;
}

/**
 * bdi_register_wb_ctx - open the contexts of a BDI for work
 * @bdi: BDI being registered, unknown to anyone else
 */
void bdi_register_wb_ctx(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx;

	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx)) {
		cgwb_bdi_register(ctx);
		set_bit(WB_registered, &ctx->wb.state);
	}
}

/**
 * bdi_shutdown_wb_ctx - finish all work of a BDI and accept no more
 * @bdi: BDI being unregistered
 *
 * Every root writeback goes first: as long as one of them is registered, new
 * cgroup writebacks may still join its context. Context 0 goes before the
 * others, then the lock, so that no further context registers itself.
 */
void bdi_shutdown_wb_ctx(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx;

	wb_shutdown(bdi_root_wb(bdi));
	spin_lock_irq(&bdi->wb_ctx_lock);
	spin_unlock_irq(&bdi->wb_ctx_lock);
	for (ctx = bdi_next_wb_ctx(bdi, bdi_wb_ctx(bdi, 0)); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx))
		wb_shutdown(&ctx->wb);
	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx))
		cgwb_bdi_unregister(ctx);
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

/**
 * bdi_next_wb_rcu - next writeback of a BDI, over all of its contexts
 * @bdi: BDI of interest
 * @wb: present writeback, or %NULL for the first
 *
 * The caller holds the RCU read lock.
 *
 * Return: the writeback behind @wb, or %NULL at the end.
 */
struct bdi_writeback *bdi_next_wb_rcu(struct backing_dev_info *bdi,
				      struct bdi_writeback *wb)
{
	struct bdi_writeback_ctx *ctx = wb ? wb->ctx : bdi_wb_ctx(bdi, 0);
	struct list_head *node = wb ? &wb->bdi_node : &ctx->wb_list;

	for (;;) {
		struct list_head *next = rcu_dereference(list_next_rcu(node));

		if (next != &ctx->wb_list)
			return list_entry(next, struct bdi_writeback, bdi_node);

		ctx = bdi_next_wb_ctx(bdi, ctx);
		if (!ctx)
			return NULL;

		node = &ctx->wb_list;
	}
}

/**
 * bdi_down_write_wb_switch_rwsem - keep every dirty inode where it is
 * @bdi: BDI that is about to be synced
 *
 * A context that is created from now on holds only inodes that were clean:
 * none of the dirty ones can leave the contexts that are locked here.
 */
void bdi_down_write_wb_switch_rwsem(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *first = bdi_wb_ctx(bdi, 0);
	struct bdi_writeback_ctx *ctx;

	down_write(&first->wb_switch_rwsem);
	for (ctx = bdi_next_wb_ctx(bdi, first); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx)) {
		down_write_nest_lock(&ctx->wb_switch_rwsem,
				     &first->wb_switch_rwsem);
		ctx->syncing = true;
	}
}

/**
 * bdi_up_write_wb_switch_rwsem - let inodes switch again
 * @bdi: BDI that has been synced
 */
void bdi_up_write_wb_switch_rwsem(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *first = bdi_wb_ctx(bdi, 0);
	struct bdi_writeback_ctx *ctx;

	for (ctx = bdi_next_wb_ctx(bdi, first); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx)) {
		if (!ctx->syncing)
			continue;

		ctx->syncing = false;
		up_write(&ctx->wb_switch_rwsem);
	}
	up_write(&first->wb_switch_rwsem);
}

struct wb_ctx_stats {
	size_t nr_dirty;
	size_t nr_io;
	size_t nr_more_io;
	size_t nr_dirty_time;
	unsigned long nr_flushed;
	bool running;
};

static void wb_ctx_add_stats(struct wb_ctx_stats *stats,
			     struct bdi_writeback *wb)
{
	spin_lock(&wb->list_lock);
	stats->nr_dirty += list_count_nodes(&wb->b_dirty);
	stats->nr_io += list_count_nodes(&wb->b_io);
	stats->nr_more_io += list_count_nodes(&wb->b_more_io);
	stats->nr_dirty_time += list_count_nodes(&wb->b_dirty_time);
	spin_unlock(&wb->list_lock);

	stats->nr_flushed += READ_ONCE(wb->nr_flushed);
	stats->running |= writeback_in_progress(wb);
}

/**
 * bdi_show_wb_ctx - one line of statistics for each context
 * @m: where to print
 * @bdi: BDI of interest
 *
 * A context sums up over its cgroup writebacks that exist.
 */
void bdi_show_wb_ctx(struct seq_file *m, struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx;
	struct bdi_writeback *wb;

	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx)) {
		struct wb_ctx_stats stats = {};

		rcu_read_lock();
		list_for_each_entry_rcu(wb, &ctx->wb_list, bdi_node)
			wb_ctx_add_stats(&stats, wb);
		rcu_read_unlock();

		seq_printf(m,
			   "Context %u: b_dirty %zu b_io %zu b_more_io %zu b_dirty_time %zu flushed %lu kB running %d\n",
			   ctx->index, stats.nr_dirty, stats.nr_io,
			   stats.nr_more_io, stats.nr_dirty_time,
			   stats.nr_flushed << (PAGE_SHIFT - 10),
			   stats.running);
	}
}

static ssize_t nwritebacks_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	struct backing_dev_info *bdi = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%d\n", READ_ONCE(bdi->nr_wb_ctx));
}

static ssize_t nwritebacks_store(struct device *dev,
				 struct device_attribute *attr,
				 const char *buf, size_t count)
{
	struct backing_dev_info *bdi = dev_get_drvdata(dev);
	unsigned int nr;

	if (kstrtouint(buf, 10, &nr) || !nr || nr > bdi->max_wb_ctx)
		return -EINVAL;

	trace_wb_ctx_resize(bdi, nr);
	WRITE_ONCE(bdi->nr_wb_ctx, nr);
	return count;
}
DEVICE_ATTR_RW(nwritebacks);
