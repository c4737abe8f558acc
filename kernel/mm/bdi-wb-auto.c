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
 * turns, and are the rarer the more of them fail.
 *
 *	BACKOFF --it is over--> MEASURE --judged--> SETTLE --inodes moved--> MEASURE
 *	   ^                                                                    |
 *	   +--------------- it does not pay, or no further to go --------------+
 *
 * Fewer contexts that write as fast are better: they cost less CPU, and mix up
 * fewer files on the device.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <trace/events/writeback_ctx.h>
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

/*
 * Pages that the device has written, by whomever. Exact: what a slow device
 * writes in a window is less than what CPUs have not told one another yet.
 */
static unsigned long bdi_written(struct backing_dev_info *bdi)
{
	struct bdi_writeback *wb;
	unsigned long written = 0;

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

/*
 * The device is busy at least while flushers wait for it. So when they do for a
 * share s of the time, others beside them bring 1 / s at most.
 */
static bool wb_auto_device_is_full(struct bdi_wb_auto *wa)
{
	u64 waited = wa->waited, seen = wa->seen;

	return seen && waited * (WB_AUTO_TOLERANCE + 1) >=
		       seen * WB_AUTO_TOLERANCE;
}

static void bdi_wb_auto_use(struct backing_dev_info *bdi, unsigned int nr)
{
	lockdep_assert_held(&bdi->wb_auto.lock);
	if (nr == bdi->nr_wb_ctx)
		return;

	trace_wb_ctx_resize(bdi, nr);
	WRITE_ONCE(bdi->nr_wb_ctx, nr);
}

static void wb_auto_next(struct bdi_wb_auto *wa, enum wb_auto_phase phase,
			 unsigned long next)
{
	wa->phase = phase;
	WRITE_ONCE(wa->next, next);
}

/**
 * bdi_wb_auto_init - prepare a new BDI, whose number is fixed
 * @bdi: BDI being initialised
 */
void bdi_wb_auto_init(struct backing_dev_info *bdi)
{
	spin_lock_init(&bdi->wb_auto.lock);
}

/* Go on from the number that has proved right, and with more. */
static void bdi_wb_auto_restart(struct backing_dev_info *bdi, unsigned long now)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;

	bdi_wb_auto_use(bdi, wa->kept);
	wa->up = true;
	wa->kept_rate = 0;
	wa->backoff = WB_AUTO_MIN_BACKOFF;
	wb_auto_next(wa, WB_AUTO_SETTLE, now + WB_AUTO_SETTLE_TIME);
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
 * wb_auto_judge - compare two rates
 * @kept_rate: pages per second with the number that has proved right
 * @rate: with the one on trial
 *
 * Return: the verdict on the latter.
 */
enum wb_auto_verdict wb_auto_judge(u64 kept_rate, u64 rate)
{
	if (!kept_rate)
		return WB_AUTO_BASE;
	if (rate > kept_rate + kept_rate / WB_AUTO_TOLERANCE)
		return WB_AUTO_MORE;
	if (rate < kept_rate - kept_rate / WB_AUTO_TOLERANCE)
		return WB_AUTO_LESS;
	return WB_AUTO_SAME;
}

static void bdi_wb_auto_back_off(struct backing_dev_info *bdi,
				 unsigned long now)
{
	wb_auto_next(&bdi->wb_auto, WB_AUTO_BACKOFF, now + bdi->wb_auto.backoff);
}

/*
 * What to try next. With more contexts than CPUs flushers wait for a CPU; but
 * CPUs that have gone offline meanwhile are no reason to go down at once.
 */
static unsigned int wb_auto_candidate(struct bdi_wb_auto *wa, unsigned int cpus)
{
	if (!wa->up)
		return DIV_ROUND_UP(wa->kept, 2);
	if (wb_auto_device_is_full(wa))
		return wa->kept;

	return max(wa->kept, min(2 * wa->kept, cpus));
}

/* Try the next number, or back off if there is none. */
static void bdi_wb_auto_try(struct backing_dev_info *bdi, unsigned long now,
			    unsigned int cpus)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;
	unsigned int nr = wb_auto_candidate(wa, cpus);

	wa->again = false;
	if (nr == wa->kept) {
		wa->up = !wa->up;
		bdi_wb_auto_back_off(bdi, now);
		return;
	}
	bdi_wb_auto_use(bdi, nr);
	wb_auto_next(wa, WB_AUTO_SETTLE, now + WB_AUTO_SETTLE_TIME);
}

static void bdi_wb_auto_keep(struct backing_dev_info *bdi, u64 rate,
			     unsigned long now, unsigned int cpus)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;

	wa->kept = bdi->nr_wb_ctx;
	/* or many steps down would each lose a little */
	wa->kept_rate = max(wa->kept_rate, rate);
	wa->backoff = WB_AUTO_MIN_BACKOFF;
	bdi_wb_auto_try(bdi, now, cpus);
}

static void bdi_wb_auto_go_back(struct backing_dev_info *bdi, unsigned long now)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;

	bdi_wb_auto_use(bdi, wa->kept);
	wa->up = !wa->up;
	bdi_wb_auto_back_off(bdi, now);
	wa->backoff = min(2 * wa->backoff, WB_AUTO_MAX_BACKOFF);
}

/* Steps up have to pay, steps down must not cost. */
static void bdi_wb_auto_decide(struct backing_dev_info *bdi,
			       enum wb_auto_verdict verdict, u64 rate,
			       unsigned long now, unsigned int cpus)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;

	switch (verdict) {
	case WB_AUTO_BASE:
		wa->kept_rate = rate;
		bdi_wb_auto_try(bdi, now, cpus);
		break;
	case WB_AUTO_MORE:
		bdi_wb_auto_keep(bdi, rate, now, cpus);
		break;
	case WB_AUTO_SAME:
		if (!wa->up) {
			bdi_wb_auto_keep(bdi, rate, now, cpus);
		} else if (!wa->again) {
			/* the window goes on: not all inodes may have moved */
			wa->again = true;
			wb_auto_next(wa, WB_AUTO_MEASURE, now + WB_AUTO_WINDOW);
		} else {
			bdi_wb_auto_go_back(bdi, now);
		}
		break;
	case WB_AUTO_LESS:
		bdi_wb_auto_go_back(bdi, now);
		break;
	}
}

/*
 * Is the lull there because the number on trial is enough, or has the load
 * stopped? In the former case pages went on to get clean.
 */
static void bdi_wb_auto_end_lull(struct backing_dev_info *bdi,
				 enum wb_auto_verdict verdict, unsigned long now)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;

	if (verdict == WB_AUTO_MORE || (verdict == WB_AUTO_SAME && !wa->up))
		wa->kept = bdi->nr_wb_ctx;
	bdi_wb_auto_restart(bdi, now);
}

/**
 * bdi_wb_auto_step - do what a look at a BDI is for
 * @bdi: BDI with its wb_auto.lock held, whose next look is due but for a @lull
 * @now: present time in jiffies
 * @now_ns: present time in nanoseconds, any clock that does not go back
 * @written: pages that @bdi has written so far
 * @cpus: CPUs that flushers may run on
 * @lull: no writer has been throttled for a while
 */
void bdi_wb_auto_step(struct backing_dev_info *bdi, unsigned long now,
		      u64 now_ns, unsigned long written, unsigned int cpus,
		      bool lull)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;
	enum wb_auto_verdict verdict;
	u64 rate;

	/* a cgroup that has gone takes its count along */
	if (time_after(wa->begun_written, written)) {
		wa->begun_written = written;
		bdi_wb_auto_restart(bdi, now);
		return;
	}

	rate = div64_u64((u64)(written - wa->begun_written) * NSEC_PER_SEC,
			 max(now_ns - wa->begun_ns, 1ULL));
	verdict = wb_auto_judge(wa->kept_rate, rate);
	if (lull) {
		bdi_wb_auto_end_lull(bdi, verdict, now);
		return;
	}
	if (wa->phase != WB_AUTO_MEASURE) {
		if (wa->phase == WB_AUTO_BACKOFF)
			wa->kept_rate = 0;
		wa->begun_ns = now_ns;
		wa->begun_written = written;
		wa->seen = 0;
		wa->waited = 0;
		wb_auto_next(wa, WB_AUTO_MEASURE, now + WB_AUTO_WINDOW);
		return;
	}

	if (written - wa->begun_written < WB_AUTO_MIN_PAGES) {
		wb_auto_next(wa, WB_AUTO_MEASURE, now + WB_AUTO_WINDOW);
		return;
	}
	trace_wb_ctx_auto(bdi, rate, verdict);
	bdi_wb_auto_decide(bdi, verdict, rate, now, cpus);
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

	lull = time_after(now, READ_ONCE(wa->pressed) + WB_AUTO_LULL);
	/* all throttled writers come by here: the first in each jiffy will do */
	if (READ_ONCE(wa->pressed) == now || !spin_trylock(&wa->lock))
		return;

	WRITE_ONCE(wa->pressed, now);
	bdi_wb_auto_sample(bdi);
	if (wa->on && (lull || time_after_eq(now, wa->next)))
		bdi_wb_auto_step(bdi, now, ktime_get_ns(), bdi_written(bdi),
				 min(num_online_cpus(), bdi->max_wb_ctx), lull);
	spin_unlock(&wa->lock);
}
