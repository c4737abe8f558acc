// SPDX-License-Identifier: GPL-2.0
/*
 * How many writeback contexts a BDI uses, found while it is under pressure.
 *
 * What holds writers back may be the CPU of the flushers, a lock that they
 * wait for, or the device. Flushers that sleep for the device all the time tell
 * the last of these; the others cannot be told from outside, but how fast pages
 * get clean can. So while writers are throttled, and the device is not all that
 * flushers wait for, the number is doubled for as long as that pays, and goes
 * back when it does not. From then on trials with fewer and with more take
 * turns, and are the rarer the more of them fail: see bdi-wb-auto-loop.c.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/string.h>
#include "bdi-wb-auto.h"

/* 0: the kernel chooses */
static unsigned int default_nr_wb_ctx =
	IS_ENABLED(CONFIG_BDI_WRITEBACK_AUTO) ? 0 : 1;

static int __init set_default_nr_wb_ctx(char *text)
{
	unsigned int nr;

	if (!strcmp(text, "auto"))
		default_nr_wb_ctx = 0;
	else if (!kstrtouint(text, 10, &nr) && nr)
		default_nr_wb_ctx = nr;
	else
		pr_warn("nwritebacks=%s is ignored: expected auto, or a number from 1\n",
			text);
	return 1;
}
__setup("nwritebacks=", set_default_nr_wb_ctx);

/**
 * bdi_written - pages that a device has written, by whomever
 * @bdi: BDI of interest
 *
 * Exact: what a slow device writes in a window is less than what CPUs have not
 * told one another yet.
 *
 * Return: their number, which may wrap.
 */
unsigned long bdi_written(struct backing_dev_info *bdi)
{
	unsigned long written = atomic_long_read(&bdi->wb_auto.gone_written);
	struct bdi_writeback *wb;

	rcu_read_lock();
	list_for_each_entry_rcu(wb, &bdi->wb_list, bdi_node) {
		if (wb->throttle != wb || !wb_tryget(wb))
			continue;
		written += wb_stat_sum(wb, WB_WRITTEN);
		wb_put(wb);
	}
	rcu_read_unlock();

	return written;
}

/**
 * bdi_wb_auto_leave - count on what a writeback that goes has written
 * @wb: writeback of a cgroup that has lost its last reference
 *
 * From now on bdi_written() passes it by. What it wrote counts from now on here,
 * not from when it leaves the list: that may be many windows later.
 */
void bdi_wb_auto_leave(struct bdi_writeback *wb)
{
	atomic_long_add(wb_stat_sum(wb, WB_WRITTEN),
			&wb->bdi->wb_auto.gone_written);
}

/*
 * See what the flushers do at this moment. One that sleeps for I/O waits for a
 * full queue, or for metadata that it reads; a worker lives until it has said
 * that it no longer flushes, and its task until the end of the RCU section.
 */
static void bdi_wb_auto_sample(struct backing_dev_info *bdi)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;
	struct bdi_writeback *wb;

	lockdep_assert_held(&wa->lock);
	wa->looks++;
	rcu_read_lock();
	list_for_each_entry_rcu(wb, &bdi->wb_list, bdi_node) {
		struct task_struct *flusher = READ_ONCE(wb->flusher);

		if (!flusher)
			continue;
		wa->seen++;
		/* its own task may be changing it: one more or less is nothing */
		wa->waited += data_race(flusher->in_iowait != 0);
	}
	rcu_read_unlock();
}

/**
 * bdi_wb_auto_init - prepare a new BDI, whose number is fixed
 * @bdi: BDI being initialised
 */
void bdi_wb_auto_init(struct backing_dev_info *bdi)
{
	spin_lock_init(&bdi->wb_auto.lock);
}

/**
 * bdi_wb_auto_start - let the kernel choose the number of contexts of a BDI
 * @bdi: BDI of interest
 *
 * It starts from one, also where the kernel chooses already.
 */
void bdi_wb_auto_start(struct backing_dev_info *bdi)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;

	spin_lock(&wa->lock);
	wa->kept = 1;
	bdi_wb_auto_restart(bdi, jiffies);
	WRITE_ONCE(wa->on, true);
	spin_unlock(&wa->lock);
}

/**
 * bdi_wb_auto_pin - fix the number of contexts of a BDI
 * @bdi: BDI of interest
 * @nr: the number, from 1 to bdi->max_wb_ctx
 */
void bdi_wb_auto_pin(struct backing_dev_info *bdi, unsigned int nr)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;

	spin_lock(&wa->lock);
	WRITE_ONCE(wa->on, false);
	bdi_wb_auto_use(bdi, nr);
	spin_unlock(&wa->lock);
}

/**
 * bdi_wb_auto_default - give a BDI the number of contexts that was configured
 * @bdi: new BDI of a block device, its max_wb_ctx is set
 */
void bdi_wb_auto_default(struct backing_dev_info *bdi)
{
	if (default_nr_wb_ctx)
		bdi->nr_wb_ctx = min(default_nr_wb_ctx, bdi->max_wb_ctx);
	else
		bdi_wb_auto_start(bdi);
}

/**
 * bdi_wb_auto_look - consider another number of contexts
 * @bdi: BDI that the current writer is throttled for
 */
void bdi_wb_auto_look(struct backing_dev_info *bdi)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;
	unsigned long now = jiffies;
	bool lull;

	if (!READ_ONCE(wa->on) || !bdi_has_wb_ctx(bdi))
		return;

	/* all throttled writers come by here: the first in each jiffy will do */
	if (READ_ONCE(wa->pressed) == now || !spin_trylock(&wa->lock))
		return;

	/* under the lock: another writer may just have ended the same lull */
	now = jiffies;
	/* on 32-bit a time of weeks ago looks like one to come */
	lull = time_after(now, wa->pressed + WB_AUTO_LULL) ||
	       time_after(wa->next, now + WB_AUTO_MAX_BACKOFF);
	WRITE_ONCE(wa->pressed, now);
	/* of as many writebacks as there are: not for nothing */
	if (wa->phase == WB_AUTO_MEASURE)
		bdi_wb_auto_sample(bdi);
	if (wa->on && (lull || time_after_eq(now, wa->next)))
		bdi_wb_auto_step(bdi, now, ktime_get_ns(), bdi_written(bdi),
				 min(num_online_cpus(), bdi->max_wb_ctx), lull);
	spin_unlock(&wa->lock);
}
