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
#include <linux/slab.h>
#include "bdi-writeback-ctx.h"

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

static struct bdi_writeback_ctx *bdi_create_wb_ctx(struct backing_dev_info *bdi,
						   unsigned int index)
{
	struct bdi_writeback_ctx *ctx;

	ctx = kzalloc_obj(*ctx, GFP_KERNEL);
	if (!ctx)
		return NULL;

	ctx->bdi = bdi;
	ctx->index = index;
	INIT_LIST_HEAD(&ctx->wb_list);
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
	mutex_init(&bdi->wb_ctx_mutex);
#ifdef CONFIG_CGROUP_WRITEBACK
	mutex_init(&bdi->cgwb_release_mutex);
#endif
	bdi->nr_wb_ctx = 1;
	bdi->max_wb_ctx = 1;
	bdi->wb_ctx_arr = &bdi->first_wb_ctx;
	bdi->first_wb_ctx = bdi_create_wb_ctx(bdi, 0);
	if (!bdi->first_wb_ctx)
		return -ENOMEM;

	bdi->nr_created_wb_ctx = 1;
	return 0;
}

/**
 * bdi_enable_wb_ctx - allow a BDI more than one context
 * @bdi: new BDI of a block device, not yet registered
 *
 * The contexts themselves come with the first filesystem that uses them, so
 * that a device which nobody writes through a filesystem costs nothing.
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

	if (bdi->wb_ctx_arr != &bdi->first_wb_ctx)
		return true;

	arr = kcalloc(bdi->max_wb_ctx, sizeof(*arr), GFP_KERNEL);
	if (!arr)
		return false;

	arr[0] = bdi->first_wb_ctx;
	/* pairs with the acquire in bdi_wb_ctx() */
	smp_store_release(&bdi->wb_ctx_arr, arr);
	return true;
}

static void wb_ctx_register(struct bdi_writeback_ctx *ctx)
{
	cgwb_bdi_register(ctx);
	set_bit(WB_registered, &ctx->wb.state);
}

static void bdi_create_missing_wb_ctx(struct backing_dev_info *bdi)
{
	lockdep_assert_held(&bdi->wb_ctx_mutex);

	if (bdi->nr_wb_ctx > 1 && !bdi_grow_wb_ctx_arr(bdi))
		return;

	while (bdi->nr_created_wb_ctx < bdi->nr_wb_ctx) {
		unsigned int index = bdi->nr_created_wb_ctx;
		struct bdi_writeback_ctx *ctx;

		ctx = bdi_create_wb_ctx(bdi, index);
		if (!ctx)
			return;

		if (test_bit(WB_registered, &bdi_root_wb(bdi)->state))
			wb_ctx_register(ctx);
		bdi->wb_ctx_arr[index] = ctx;
		/* pairs with the acquire in bdi_next_wb_ctx() */
		smp_store_release(&bdi->nr_created_wb_ctx, index + 1);
	}
}

/**
 * sb_enable_wb_ctx - spread the inodes of a filesystem over contexts
 * @sb: superblock being filled, no inode of it has been dirtied yet
 *
 * To be called by a filesystem whose ->writepages() may run for different
 * inodes at once. Where memory is short there are fewer contexts. A second
 * call changes nothing: F2FS fills its superblock anew when a mount needs a
 * second try.
 */
void sb_enable_wb_ctx(struct super_block *sb)
{
	struct backing_dev_info *bdi = sb->s_bdi;

	if (sb->s_iflags & SB_I_WB_CTX)
		return;

	mutex_lock(&bdi->wb_ctx_mutex);
	bdi_create_missing_wb_ctx(bdi);
	if (bdi->nr_created_wb_ctx < bdi->nr_wb_ctx) {
		pr_warn("%s: no memory for %d writeback contexts, using %u\n",
			bdi_dev_name(bdi), bdi->nr_wb_ctx,
			bdi->nr_created_wb_ctx);
		bdi->nr_wb_ctx = bdi->nr_created_wb_ctx;
	}
	bdi->nr_wb_ctx_sb++;
	sb->s_iflags |= SB_I_WB_CTX;
	mutex_unlock(&bdi->wb_ctx_mutex);
}
EXPORT_SYMBOL_GPL(sb_enable_wb_ctx);

/**
 * sb_disable_wb_ctx - a filesystem is done with the contexts of its BDI
 * @sb: superblock being shut down, without inodes
 */
void sb_disable_wb_ctx(struct super_block *sb)
{
	struct backing_dev_info *bdi = sb->s_bdi;

	if (!(sb->s_iflags & SB_I_WB_CTX))
		return;

	mutex_lock(&bdi->wb_ctx_mutex);
	sb->s_iflags &= ~SB_I_WB_CTX;
	bdi->nr_wb_ctx_sb--;
	mutex_unlock(&bdi->wb_ctx_mutex);
}

/**
 * fetch_bdi_writeback_ctx - context that writes an inode back
 * @inode: inode of interest
 *
 * The inode of a block device stays in context 0: it is one inode, and its
 * place must not depend on what is mounted. The number of contexts does not
 * change while a filesystem that uses them is mounted, so the answer for an
 * inode does not change in its life.
 *
 * Return: the context.
 */
struct bdi_writeback_ctx *fetch_bdi_writeback_ctx(struct inode *inode)
{
	struct backing_dev_info *bdi = inode_to_bdi(inode);

	if (!(inode->i_sb->s_iflags & SB_I_WB_CTX))
		return bdi_wb_ctx(bdi, 0);

	return bdi_wb_ctx(bdi, wb_ctx_index(inode->i_ino, bdi->nr_wb_ctx));
}
EXPORT_SYMBOL_GPL(fetch_bdi_writeback_ctx);

/**
 * bdi_register_wb_ctx - open the contexts of a BDI for work
 * @bdi: BDI being registered
 */
void bdi_register_wb_ctx(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx;

	mutex_lock(&bdi->wb_ctx_mutex);
	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx))
		wb_ctx_register(ctx);
	mutex_unlock(&bdi->wb_ctx_mutex);
}

/**
 * bdi_shutdown_wb_ctx - finish all work of a BDI and accept no more
 * @bdi: BDI being unregistered
 *
 * Every root writeback goes first: as long as one of them is registered, new
 * cgroup writebacks may still join its context.
 */
void bdi_shutdown_wb_ctx(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx;

	mutex_lock(&bdi->wb_ctx_mutex);
	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx))
		wb_shutdown(&ctx->wb);
	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx))
		cgwb_bdi_unregister(ctx);
	mutex_unlock(&bdi->wb_ctx_mutex);
}

/**
 * bdi_free_wb_ctx - free the contexts of a BDI
 * @bdi: unregistered BDI without users
 */
void bdi_free_wb_ctx(struct backing_dev_info *bdi)
{
	/* context 0 goes last: it holds the throttle of the others */
	for (int i = bdi->nr_created_wb_ctx - 1; i >= 0; i--) {
		struct bdi_writeback_ctx *ctx = bdi_wb_ctx(bdi, i);

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
 * wb_dirty_io_start - a clean writeback got its first dirty inode
 * @wb: writeback of any context, its list_lock is held
 *
 * The throttle's bandwidth counts once in the total of the BDI, however many
 * contexts of it are dirty.
 */
void wb_dirty_io_start(struct bdi_writeback *wb)
{
	struct bdi_writeback *throttle = wb->throttle;

	spin_lock(&throttle->dirty_lock);
	if (!throttle->nr_dirty_wb++)
		atomic_long_add(throttle->avg_write_bandwidth,
				&throttle->bdi->tot_write_bandwidth);
	spin_unlock(&throttle->dirty_lock);
}

/**
 * wb_dirty_io_end - the last dirty inode of a writeback is gone
 * @wb: writeback of any context, its list_lock is held
 */
void wb_dirty_io_end(struct bdi_writeback *wb)
{
	struct bdi_writeback *throttle = wb->throttle;

	spin_lock(&throttle->dirty_lock);
	if (!--throttle->nr_dirty_wb)
		WARN_ON_ONCE(atomic_long_sub_return(throttle->avg_write_bandwidth,
						    &throttle->bdi->tot_write_bandwidth) < 0);
	spin_unlock(&throttle->dirty_lock);
}

/**
 * wb_set_avg_write_bandwidth - store a new bandwidth estimate
 * @throttle: writeback that throttles, its list_lock is held
 * @avg: estimate in pages per second, more than 0
 */
void wb_set_avg_write_bandwidth(struct bdi_writeback *throttle,
				unsigned long avg)
{
	long delta = avg - throttle->avg_write_bandwidth;

	spin_lock(&throttle->dirty_lock);
	if (throttle->nr_dirty_wb)
		WARN_ON_ONCE(atomic_long_add_return(delta,
						    &throttle->bdi->tot_write_bandwidth) <= 0);
	WRITE_ONCE(throttle->avg_write_bandwidth, avg);
	spin_unlock(&throttle->dirty_lock);
}

/**
 * wb_bandwidth_share - what one flusher contributes to the bandwidth
 * @wb: writeback of any context
 *
 * The estimate is one for all contexts; those with dirty inodes share it.
 *
 * Return: bandwidth in pages per second, at least 1.
 */
unsigned long wb_bandwidth_share(struct bdi_writeback *wb)
{
	const struct bdi_writeback *throttle = wb->throttle;
	unsigned long bw = READ_ONCE(throttle->avg_write_bandwidth);
	unsigned int nr = READ_ONCE(throttle->nr_dirty_wb);

	return max(bw / max(nr, 1U), 1UL);
}

/**
 * throttled_wb_rcu - writeback of a context that a throttle is there for
 * @throttle: writeback that throttles
 * @ctx: context of interest
 *
 * The caller holds the RCU read lock. A dying throttle is no longer in the
 * tree of context 0, but it still has the flusher that its own writers need.
 *
 * Return: the writeback, or %NULL if @ctx has none.
 */
struct bdi_writeback *throttled_wb_rcu(struct bdi_writeback *throttle,
				       struct bdi_writeback_ctx *ctx)
{
	if (!ctx->index)
		return throttle;
	if (throttle->root)
		return &ctx->wb;
#ifdef CONFIG_CGROUP_WRITEBACK
	return radix_tree_lookup(&ctx->cgwb_tree, throttle->memcg_css->id);
#else
	return NULL;
#endif
}

static bool wb_wants_flusher(struct bdi_writeback *wb)
{
	return wb && wb_has_dirty_io(wb) && !writeback_in_progress(wb);
}

/**
 * throttle_writeback_in_progress - does every flusher run that has work?
 * @throttle: writeback that throttles the current writer
 *
 * Return: %false if a context with dirty inodes of this throttle sleeps.
 */
bool throttle_writeback_in_progress(struct bdi_writeback *throttle)
{
	struct bdi_writeback_ctx *ctx;
	bool running = true;

	rcu_read_lock();
	for (ctx = bdi_next_wb_ctx(throttle->bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(throttle->bdi, ctx)) {
		if (wb_wants_flusher(throttled_wb_rcu(throttle, ctx))) {
			running = false;
			break;
		}
	}
	rcu_read_unlock();

	return running;
}

/**
 * throttle_start_background_writeback - wake every flusher that has work
 * @throttle: writeback that throttles the current writer
 *
 * A writer that is throttled waits for the device as a whole. Were only the
 * flusher of its own inode woken, the others would sleep until their periodic
 * wake-up while the device idles at its dirty limit.
 */
void throttle_start_background_writeback(struct bdi_writeback *throttle)
{
	struct bdi_writeback_ctx *ctx;

	rcu_read_lock();
	for (ctx = bdi_next_wb_ctx(throttle->bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(throttle->bdi, ctx)) {
		struct bdi_writeback *wb = throttled_wb_rcu(throttle, ctx);

		if (wb_wants_flusher(wb))
			wb_start_background_writeback(wb);
	}
	rcu_read_unlock();
}

#ifdef CONFIG_CGROUP_WRITEBACK

/**
 * cgwb_get_throttle - find the throttle of a new cgroup writeback
 * @wb: cgroup writeback being created
 * @ctx: its context
 * @memcg_css: its memcg
 * @gfp: allocation mask to use
 *
 * Return: @wb itself in context 0, otherwise a reference on the writeback of
 * the same memcg in context 0; %NULL if that could not be created.
 */
struct bdi_writeback *cgwb_get_throttle(struct bdi_writeback *wb,
					struct bdi_writeback_ctx *ctx,
					struct cgroup_subsys_state *memcg_css,
					gfp_t gfp)
{
	if (!ctx->index)
		return wb;

	return wb_get_create(bdi_wb_ctx(ctx->bdi, 0), memcg_css, gfp);
}

/**
 * bdi_down_write_wb_switch_rwsem - keep every inode of a BDI in its writeback
 * @bdi: BDI that is about to be synced
 *
 * No context comes or goes either until bdi_up_write_wb_switch_rwsem().
 */
void bdi_down_write_wb_switch_rwsem(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx;

	mutex_lock(&bdi->wb_ctx_mutex);
	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx))
		down_write_nest_lock(&ctx->wb_switch_rwsem, &bdi->wb_ctx_mutex);
}

/**
 * bdi_up_write_wb_switch_rwsem - let inodes switch again
 * @bdi: BDI that has been synced
 */
void bdi_up_write_wb_switch_rwsem(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx;

	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx))
		up_write(&ctx->wb_switch_rwsem);
	mutex_unlock(&bdi->wb_ctx_mutex);
}

#endif	/* CONFIG_CGROUP_WRITEBACK */

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
	ssize_t ret = count;
	unsigned int nr;

	if (kstrtouint(buf, 10, &nr) || !nr || nr > bdi->max_wb_ctx)
		return -EINVAL;

	mutex_lock(&bdi->wb_ctx_mutex);
	if (bdi->nr_wb_ctx_sb)
		ret = -EBUSY;
	else
		WRITE_ONCE(bdi->nr_wb_ctx, nr);
	mutex_unlock(&bdi->wb_ctx_mutex);

	return ret;
}
DEVICE_ATTR_RW(nwritebacks);
