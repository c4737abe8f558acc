// SPDX-License-Identifier: GPL-2.0
/*
 * How many writeback contexts to try, and which number to keep: arithmetic, with
 * the time and what was written as arguments.
 *
 *	BACKOFF --it is over--> MEASURE --judged--> SETTLE --inodes moved--> MEASURE
 *	   ^                                                                    |
 *	   +--------------- it does not pay, or no further to go --------------+
 *
 * Fewer contexts that write as fast are better: they cost less CPU, and mix up
 * fewer files on the device.
 */

#include <linux/backing-dev.h>
#include <linux/math64.h>
#include <linux/time64.h>
#include <trace/events/writeback_ctx.h>
#include "bdi-wb-auto.h"

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

/*
 * An inode moves when its flusher has come to it, and a slow flusher takes its
 * time. While no more of them are at work than before, a trial of more shows
 * nothing, or what moving costs. Where few inodes are busy it stays so, and ends.
 */
static bool wb_auto_has_begun(struct bdi_wb_auto *wa, unsigned long now)
{
	return wa->seen > (u64)wa->looks * wa->kept ||
	       time_after_eq(now, wa->tried + WB_AUTO_PATIENCE);
}

/**
 * bdi_wb_auto_use - have a BDI use another number of contexts
 * @bdi: BDI with its wb_auto.lock held
 * @nr: the number
 */
void bdi_wb_auto_use(struct backing_dev_info *bdi, unsigned int nr)
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
	wa->next = next;
}

/**
 * bdi_wb_auto_restart - go on from the number that has proved right, with more
 * @bdi: BDI with its wb_auto.lock held
 * @now: present time in jiffies
 */
void bdi_wb_auto_restart(struct backing_dev_info *bdi, unsigned long now)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;

	bdi_wb_auto_use(bdi, wa->kept);
	wa->up = true;
	wa->kept_rate = 0;
	wa->same_rate = 0;
	wa->backoff = WB_AUTO_MIN_BACKOFF;
	wb_auto_next(wa, WB_AUTO_SETTLE, now + WB_AUTO_SETTLE_TIME);
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
	wa->tried = now;
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

/*
 * The number before was kept for a rate that may have been luck, or that only a
 * step has. So one that was as fast is compared with what comes of it now.
 */
static void bdi_wb_auto_doubt(struct backing_dev_info *bdi, u64 rate,
			      unsigned long now)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;

	wa->same_nr = bdi->nr_wb_ctx;
	wa->same_rate = rate;
	wa->kept_rate = 0;
	bdi_wb_auto_use(bdi, wa->kept);
	wb_auto_next(wa, WB_AUTO_SETTLE, now + WB_AUTO_SETTLE_TIME);
}

static void bdi_wb_auto_compare_anew(struct backing_dev_info *bdi,
				     unsigned long now, unsigned int cpus)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;
	u64 rate = wa->same_rate;

	wa->same_rate = 0;
	if (wb_auto_judge(wa->kept_rate, rate) == WB_AUTO_MORE) {
		bdi_wb_auto_use(bdi, wa->same_nr);
		bdi_wb_auto_keep(bdi, rate, now, cpus);
	} else {
		bdi_wb_auto_go_back(bdi, now);
	}
}

/* Steps up have to pay, steps down must not cost. */
static void bdi_wb_auto_decide(struct backing_dev_info *bdi,
			       enum wb_auto_verdict verdict, u64 rate,
			       unsigned long now, unsigned int cpus)
{
	struct bdi_wb_auto *wa = &bdi->wb_auto;

	if ((verdict == WB_AUTO_SAME || verdict == WB_AUTO_LESS) && wa->up &&
	    !wb_auto_has_begun(wa, now)) {
		wb_auto_next(wa, WB_AUTO_SETTLE, now + WB_AUTO_SETTLE_TIME);
		return;
	}

	switch (verdict) {
	case WB_AUTO_BASE:
		wa->kept_rate = rate;
		if (wa->same_rate)
			bdi_wb_auto_compare_anew(bdi, now, cpus);
		else
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
			bdi_wb_auto_doubt(bdi, rate, now);
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

	/* what a cgroup has written is missing while it goes */
	if (time_after(wa->begun_written, written)) {
		wa->begun_written = written;
		bdi_wb_auto_restart(bdi, now);
		return;
	}

	rate = div64_u64((u64)(written - wa->begun_written) * USEC_PER_SEC,
			 max(div_u64(now_ns - wa->begun_ns, NSEC_PER_USEC), 1ULL));
	verdict = wb_auto_judge(wa->kept_rate, rate);
	if (lull) {
		trace_wb_ctx_auto(bdi, rate, verdict, lull);
		bdi_wb_auto_end_lull(bdi, verdict, now);
		return;
	}
	if (wa->phase != WB_AUTO_MEASURE) {
		if (wa->phase == WB_AUTO_BACKOFF)
			wa->kept_rate = 0;
		wa->begun_ns = now_ns;
		wa->begun_written = written;
		wa->looks = 0;
		wa->seen = 0;
		wa->waited = 0;
		wb_auto_next(wa, WB_AUTO_MEASURE, now + WB_AUTO_WINDOW);
		return;
	}

	if (written - wa->begun_written < WB_AUTO_MIN_PAGES) {
		wb_auto_next(wa, WB_AUTO_MEASURE, now + WB_AUTO_WINDOW);
		return;
	}
	trace_wb_ctx_auto(bdi, rate, verdict, lull);
	bdi_wb_auto_decide(bdi, verdict, rate, now, cpus);
}
