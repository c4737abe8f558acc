// SPDX-License-Identifier: GPL-2.0
/*
 * A writer that is throttled wakes the flushers of the whole device.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/jiffies.h>
#include <linux/sizes.h>

/*
 * While another one runs, a flusher that wrote less than its share of
 * WB_WAKE_PAGES since it was woken is not woken again within WB_WAKE_INTERVAL:
 * the more flushers there are, the less of what may be dirty each has.
 */
#define WB_WAKE_INTERVAL	(HZ / 20)
#define WB_WAKE_PAGES		(SZ_1M >> PAGE_SHIFT)

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
