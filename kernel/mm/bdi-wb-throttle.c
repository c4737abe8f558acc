// SPDX-License-Identifier: GPL-2.0
/*
 * One throttle for all writebacks of a BDI that steer the same writers: see
 * include/linux/bdi-wb-throttle.h.
 *
 * dirty_lock is taken with interrupts off: an inode that is switched to another
 * cgroup gets there under its i_pages lock, which an interrupt that ends a write
 * takes.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-wb-throttle.h>

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
	unsigned long flags;

	spin_lock_irqsave(&throttle->dirty_lock, flags);
	if (!throttle->nr_dirty_wb)
		atomic_long_add(throttle->avg_write_bandwidth,
				&throttle->bdi->tot_write_bandwidth);
	WRITE_ONCE(throttle->nr_dirty_wb, throttle->nr_dirty_wb + 1);
	spin_unlock_irqrestore(&throttle->dirty_lock, flags);
}

/**
 * wb_dirty_io_end - the last dirty inode of a writeback is gone
 * @wb: writeback of any context, its list_lock is held
 */
void wb_dirty_io_end(struct bdi_writeback *wb)
{
	struct bdi_writeback *throttle = wb->throttle;
	unsigned long flags;

	spin_lock_irqsave(&throttle->dirty_lock, flags);
	WRITE_ONCE(throttle->nr_dirty_wb, throttle->nr_dirty_wb - 1);
	if (!throttle->nr_dirty_wb)
		WARN_ON_ONCE(atomic_long_sub_return(throttle->avg_write_bandwidth,
						    &throttle->bdi->tot_write_bandwidth) < 0);
	spin_unlock_irqrestore(&throttle->dirty_lock, flags);
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
	unsigned long flags;

	spin_lock_irqsave(&throttle->dirty_lock, flags);
	if (throttle->nr_dirty_wb)
		WARN_ON_ONCE(atomic_long_add_return(delta,
						    &throttle->bdi->tot_write_bandwidth) <= 0);
	WRITE_ONCE(throttle->avg_write_bandwidth, avg);
	spin_unlock_irqrestore(&throttle->dirty_lock, flags);
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
	/* read once: the macro below uses it twice */
	unsigned int nr_dirty_wb = max(READ_ONCE(throttle->nr_dirty_wb), 1U);

	return DIV_ROUND_UP(nr, nr_dirty_wb);
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
