// SPDX-License-Identifier: GPL-2.0
/*
 * One throttle for all writeback contexts of a BDI, and one for each memcg and
 * BDI: see include/linux/bdi-writeback-ctx.h for what it is and for the lock
 * order.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/jiffies.h>
#include <linux/sizes.h>
#include "bdi-writeback-ctx.h"

/* Time between two wake-ups of a flusher that has less to write than this. */
#define WB_WAKE_INTERVAL	(HZ / 20)
#define WB_WAKE_PAGES		(SZ_1M >> PAGE_SHIFT)

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

static bool throttle_flusher_runs(struct bdi_writeback *throttle)
{
	struct bdi_writeback_ctx *ctx;

	for (ctx = bdi_next_wb_ctx(throttle->bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(throttle->bdi, ctx)) {
		struct bdi_writeback *wb = throttled_wb_rcu(throttle, ctx);

		if (wb && writeback_in_progress(wb))
			return true;
	}
	return false;
}

static bool wb_flusher_sleeps(struct bdi_writeback *wb)
{
	return wb && wb_has_dirty_io(wb) && !writeback_in_progress(wb);
}

/* Was a flusher that sleeps woken just now, and has found little to write? */
static bool wb_flusher_rests(struct bdi_writeback *wb)
{
	unsigned long woken = READ_ONCE(wb->woken_time_stamp);
	unsigned long flushed = READ_ONCE(wb->nr_flushed) -
				READ_ONCE(wb->woken_nr_flushed);

	return time_in_range_open(jiffies, woken, woken + WB_WAKE_INTERVAL) &&
	       flushed < WB_WAKE_PAGES;
}

/*
 * While another flusher runs (@others) the device does not idle. Were one with
 * a light load woken for each page or two then, it would cost every writer more
 * than it cleans.
 */
static bool wb_wants_flusher(struct bdi_writeback *wb, bool others)
{
	return wb_flusher_sleeps(wb) && !(others && wb_flusher_rests(wb));
}

static void wb_wake_flusher(struct bdi_writeback *wb)
{
	WRITE_ONCE(wb->woken_time_stamp, jiffies);
	WRITE_ONCE(wb->woken_nr_flushed, READ_ONCE(wb->nr_flushed));
	wb_start_background_writeback(wb);
}

/**
 * throttle_writeback_in_progress - does every flusher run that has work?
 * @throttle: writeback that throttles the current writer
 *
 * Return: %false if a context with dirty inodes of this throttle sleeps, unless
 * it rests beside another one that runs.
 */
bool throttle_writeback_in_progress(struct bdi_writeback *throttle)
{
	struct bdi_writeback_ctx *ctx;
	bool running = true;
	bool others;

	rcu_read_lock();
	others = throttle_flusher_runs(throttle);
	for (ctx = bdi_next_wb_ctx(throttle->bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(throttle->bdi, ctx)) {
		if (wb_wants_flusher(throttled_wb_rcu(throttle, ctx), others)) {
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
	bool others;

	rcu_read_lock();
	others = throttle_flusher_runs(throttle);
	for (ctx = bdi_next_wb_ctx(throttle->bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(throttle->bdi, ctx)) {
		struct bdi_writeback *wb = throttled_wb_rcu(throttle, ctx);

		if (wb_wants_flusher(wb, others))
			wb_wake_flusher(wb);
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

#endif	/* CONFIG_CGROUP_WRITEBACK */
