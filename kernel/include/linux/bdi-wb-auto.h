/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The number of writeback contexts that a BDI finds by itself.
 *
 * Lock: wb_auto.lock covers all of it, and changes of bdi->nr_wb_ctx. It is
 * taken in process context with no other spinlock held; a throttled writer only
 * tries it. Below it are the locks of percpu counters, and of the workqueue that
 * frees a cgroup's writeback. Who reads nr_wb_ctx takes no lock.
 */
#ifndef _LINUX_BDI_WB_AUTO_H
#define _LINUX_BDI_WB_AUTO_H

#include <linux/atomic.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>

struct backing_dev_info;
struct bdi_writeback;

/**
 * enum wb_auto_phase - what the next look at a BDI is for
 * @WB_AUTO_BACKOFF: the number has proved right; begin to measure again
 * @WB_AUTO_SETTLE: the number is new and inodes move; begin to measure
 * @WB_AUTO_MEASURE: pages were counted for a while; judge
 */
enum wb_auto_phase {
	WB_AUTO_BACKOFF,
	WB_AUTO_SETTLE,
	WB_AUTO_MEASURE,
};

/**
 * enum wb_auto_verdict - what a number of contexts brought
 * @WB_AUTO_BASE: nothing to compare with, it is the first measured
 * @WB_AUTO_MORE: pages got clean faster than with the number before
 * @WB_AUTO_SAME: as fast, as far as can be told
 * @WB_AUTO_LESS: slower
 */
enum wb_auto_verdict {
	WB_AUTO_BASE,
	WB_AUTO_MORE,
	WB_AUTO_SAME,
	WB_AUTO_LESS,
};

/**
 * struct bdi_wb_auto - how a BDI finds its number of contexts
 * @lock: see above
 * @on: the kernel chooses the number, not the administrator; read without the
 *	lock
 * @up: the next trial is with more contexts, not with fewer
 * @again: the present trial brought nothing in its first window
 * @phase: what the next look is for
 * @kept: the number that has proved right; bdi->nr_wb_ctx is on trial if it
 *	is another
 * @kept_rate: pages written per second with it, the most seen since the last
 *	backoff; 0: not measured
 * @same_nr: the number of a trial up that was as fast as @kept
 * @same_rate: pages written per second with it, while @kept is measured anew
 *	to compare them; 0: it is not
 * @next: jiffies of the next look, read without the lock
 * @pressed: jiffies when a writer was last throttled, read without the lock
 * @backoff: jiffies that the next backoff takes
 * @tried: jiffies when the present trial began
 * @looks: looks at the flushers in the present window, one in each jiffy
 * @seen: flushers that these saw at work, all together
 * @waited: how many of these waited for the device
 * @begun_ns: when the present window began
 * @begun_written: pages the BDI had written then
 * @gone_written: pages that writebacks had written which are gone; atomic, no
 *	lock: a last reference may go in any context
 */
struct bdi_wb_auto {
	spinlock_t lock;	/* this but gone_written, and changes of nr_wb_ctx */
	bool on;
	bool up;
	bool again;
	enum wb_auto_phase phase;
	unsigned int kept;
	u64 kept_rate;
	unsigned int same_nr;
	u64 same_rate;
	unsigned long next;
	unsigned long pressed;
	unsigned long backoff;
	unsigned long tried;
	unsigned int looks;
	unsigned int seen;
	unsigned int waited;
	u64 begun_ns;
	unsigned long begun_written;
	atomic_long_t gone_written;
};

void bdi_wb_auto_init(struct backing_dev_info *bdi);
void bdi_wb_auto_default(struct backing_dev_info *bdi);
void bdi_wb_auto_start(struct backing_dev_info *bdi);
void bdi_wb_auto_pin(struct backing_dev_info *bdi, unsigned int nr);
void bdi_wb_auto_look(struct backing_dev_info *bdi);
void bdi_wb_auto_leave(struct bdi_writeback *wb);

#endif	/* _LINUX_BDI_WB_AUTO_H */
