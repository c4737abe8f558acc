/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A BDI that finds its number of contexts, on a device whose speed is a function
 * of that number, in a time that the test makes.
 */
#ifndef _BDI_WB_AUTO_FIXTURE_H
#define _BDI_WB_AUTO_FIXTURE_H

#include <linux/jiffies.h>
#include <linux/time64.h>
#include "../bdi-wb-auto.h"
#include "bdi_wb_fixture.h"

#define NR_CPUS_TESTED	8
/* how often a throttled writer comes by */
#define LOOK_INTERVAL	(HZ / 50)

struct auto_fixture {
	struct backing_dev_info *bdi;
	struct device dev;
	/* pages per second */
	u64 (*rate)(unsigned int nr);
	unsigned long now;
	unsigned long pressed;
	u64 now_ns;
	unsigned long written;
	/* flushers that have something to write; 0: all */
	unsigned int busy;
	/* of 100 flushers seen, how many wait for the device */
	unsigned int waiting;
	unsigned int changes;
	int most;
};

static inline int auto_test_init(struct kunit *test)
{
	struct auto_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->bdi = make_bdi(test);
	dev_set_drvdata(&f->dev, f->bdi);
	f->bdi->max_wb_ctx = 4 * NR_CPUS_TESTED;
	f->now = jiffies;
	test->priv = f;
	return 0;
}

static inline ssize_t set_nwritebacks(struct auto_fixture *f, const char *text)
{
	return dev_attr_nwritebacks.store(&f->dev, &dev_attr_nwritebacks, text,
					  strlen(text));
}

/* Let writers be throttled for a while, on a machine with so many CPUs. */
static inline void press(struct auto_fixture *f, unsigned long duration)
{
	unsigned long end = f->now + duration;

	while (time_before(f->now, end)) {
		unsigned int nr = f->bdi->nr_wb_ctx;
		unsigned int busy = f->busy ? min(f->busy, nr) : nr;
		bool lull;

		f->now += LOOK_INTERVAL;
		f->now_ns += jiffies_to_nsecs(LOOK_INTERVAL);
		f->written += f->rate(busy) * LOOK_INTERVAL / HZ;
		lull = time_after(f->now, f->pressed + WB_AUTO_LULL);
		f->pressed = f->now;
		if (!lull && time_before(f->now, f->bdi->wb_auto.next))
			continue;

		spin_lock(&f->bdi->wb_auto.lock);
		f->bdi->wb_auto.looks = 100;
		f->bdi->wb_auto.seen = 100 * busy;
		f->bdi->wb_auto.waited = f->waiting * busy;
		bdi_wb_auto_step(f->bdi, f->now, f->now_ns, f->written,
				 NR_CPUS_TESTED, lull);
		spin_unlock(&f->bdi->wb_auto.lock);
		f->changes += nr != f->bdi->nr_wb_ctx;
		f->most = max(f->most, f->bdi->nr_wb_ctx);
	}
}

/* every flusher writes what one does */
static inline u64 bound_by_flushers(unsigned int nr)
{
	return 250000 * nr;
}

static inline u64 bound_by_device(unsigned int nr)
{
	return 25000;
}

static inline void begin(struct kunit *test, u64 (*rate)(unsigned int nr))
{
	struct auto_fixture *f = test->priv;

	f->rate = rate;
	KUNIT_ASSERT_EQ(test, 4, set_nwritebacks(f, "auto"));
	KUNIT_ASSERT_EQ(test, 1, f->bdi->nr_wb_ctx);
	f->now = f->bdi->wb_auto.next;
	f->pressed = f->now;
}

#endif	/* _BDI_WB_AUTO_FIXTURE_H */
