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
#include <linux/xarray.h>

/*
 * Time between two wake-ups of a flusher that has less to write than its share
 * of this: the more flushers there are, the less of what may be dirty each has.
 */
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

	atomic_inc(&wb->ctx->nr_dirty_wb);
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

	atomic_dec(&wb->ctx->nr_dirty_wb);
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
 * throttle_share - part of what a throttle counts that falls to one flusher
 * @throttle: writeback that throttles
 * @nr: what it counts, for all contexts
 *
 * Those with dirty inodes share it.
 *
 * Return: the part, rounded up.
 */
long throttle_share(struct bdi_writeback *throttle, long nr)
{
	return DIV_ROUND_UP(nr, max(READ_ONCE(throttle->nr_dirty_wb), 1U));
}

/**
 * wb_bandwidth_share - what one flusher contributes to the bandwidth
 * @wb: writeback of any context
 *
 * Return: bandwidth in pages per second, at least 1.
 */
unsigned long wb_bandwidth_share(struct bdi_writeback *wb)
{
	struct bdi_writeback *throttle = wb->throttle;

	return throttle_share(throttle, READ_ONCE(throttle->avg_write_bandwidth));
}

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

static bool throttle_flusher_runs(struct bdi_writeback *throttle)
{
	struct bdi_writeback *wb;

	for (wb = throttle; wb; wb = throttle_next_wb(throttle, wb))
		if (writeback_in_progress(wb))
			return true;

	return false;
}

static bool wb_flusher_sleeps(struct bdi_writeback *wb)
{
	return wb_has_dirty_io(wb) && !writeback_in_progress(wb);
}

/* Was a flusher that sleeps woken just now, and has found little to write? */
static bool wb_wakeup_is_limited(struct bdi_writeback *wb)
{
	unsigned long woken = READ_ONCE(wb->woken_time_stamp);
	unsigned long flushed = READ_ONCE(wb->nr_flushed) -
				READ_ONCE(wb->woken_nr_flushed);

	return time_in_range_open(jiffies, woken, woken + WB_WAKE_INTERVAL) &&
	       flushed < throttle_share(wb->throttle, WB_WAKE_PAGES);
}

/*
 * While another flusher runs (@others) the device does not idle. Were one with
 * a light load woken for each page or two then, it would cost every writer more
 * than it cleans.
 */
static bool wb_wants_flusher(struct bdi_writeback *wb, bool others)
{
	return wb_flusher_sleeps(wb) && !(others && wb_wakeup_is_limited(wb));
}

static void wb_wake_flusher(struct bdi_writeback *wb)
{
	WRITE_ONCE(wb->woken_time_stamp, jiffies);
	WRITE_ONCE(wb->woken_nr_flushed, READ_ONCE(wb->nr_flushed));
	wb_start_background_writeback(wb);
}

/**
 * throttle_wake_flushers - wake every flusher that has work and sleeps
 * @throttle: writeback that throttles the current writer
 *
 * A writer that is throttled waits for the device as a whole. Were only the
 * flusher of its own inode woken, the others would sleep until their periodic
 * wake-up while the device idles at its dirty limit.
 */
void throttle_wake_flushers(struct bdi_writeback *throttle)
{
	bool others = throttle_flusher_runs(throttle);
	struct bdi_writeback *wb;

	for (wb = throttle; wb; wb = throttle_next_wb(throttle, wb))
		if (wb_wants_flusher(wb, others))
			wb_wake_flusher(wb);
}
