// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the number of contexts that a BDI finds under a load that goes on.
 */

#include <linux/log2.h>
#include "../bdi-writeback-ctx.h"
#include "bdi_wb_auto_fixture.h"

static u64 up_to_three_flushers(unsigned int nr)
{
	return 250000 * min(nr, 3);
}

static u64 very_slow_device(unsigned int nr)
{
	return 500;
}

/* between the files of two flushers the head moves */
static u64 rotating_disk(unsigned int nr)
{
	return 25000 / nr;
}

/* each doubling costs two percent, which is too little to be told */
static u64 loses_a_little(unsigned int nr)
{
	return 100000 + 2000 * ilog2(nr);
}

static void verdict_has_a_tolerance(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, WB_AUTO_BASE, wb_auto_judge(0, 5));
	KUNIT_EXPECT_EQ(test, WB_AUTO_SAME, wb_auto_judge(3200, 3300));
	KUNIT_EXPECT_EQ(test, WB_AUTO_MORE, wb_auto_judge(3200, 3301));
	KUNIT_EXPECT_EQ(test, WB_AUTO_SAME, wb_auto_judge(3200, 3100));
	KUNIT_EXPECT_EQ(test, WB_AUTO_LESS, wb_auto_judge(3200, 3099));
	KUNIT_EXPECT_EQ(test, WB_AUTO_LESS, wb_auto_judge(3200, 0));
}

static void every_flusher_that_pays_is_used_soon(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin(test, bound_by_flushers);
	press(f, 2 * HZ);
	KUNIT_EXPECT_EQ(test, NR_CPUS_TESTED, f->bdi->nr_wb_ctx);
}

static void flushers_that_bring_nothing_are_left_out(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin(test, up_to_three_flushers);
	press(f, 9 * HZ);
	KUNIT_EXPECT_EQ(test, 4, f->bdi->nr_wb_ctx);

	f->changes = 0;
	begin(test, bound_by_device);
	press(f, 60 * HZ);
	KUNIT_EXPECT_EQ(test, 1, f->bdi->nr_wb_ctx);
}

static void rotating_disk_is_tried_ever_more_rarely(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin(test, rotating_disk);
	press(f, 3600 * HZ);
	KUNIT_EXPECT_EQ(test, 1, f->bdi->nr_wb_ctx);
	KUNIT_EXPECT_EQ(test, 2, f->most);
	/* a trial is two changes, and the longest backoff takes 160 s */
	KUNIT_EXPECT_LE(test, f->changes, 2 * (3600 / 160 + 5));
}

static void slow_device_gets_the_time_it_needs(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	/* 1024 pages take two seconds, so one trial is all there is time for */
	begin(test, very_slow_device);
	press(f, 4 * HZ);
	KUNIT_EXPECT_EQ(test, 1, f->changes);
	KUNIT_EXPECT_EQ(test, 2, f->bdi->nr_wb_ctx);
}

static void steady_load_changes_nothing_for_ten_seconds(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin(test, bound_by_flushers);
	press(f, 2 * HZ);
	f->changes = 0;
	press(f, 9 * HZ);
	KUNIT_EXPECT_EQ(test, 0, f->changes);
	/* then fewer are tried, and given up */
	press(f, 2 * HZ);
	KUNIT_EXPECT_EQ(test, 2, f->changes);
	KUNIT_EXPECT_EQ(test, NR_CPUS_TESTED, f->bdi->nr_wb_ctx);
}

static void small_losses_do_not_add_up(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin(test, bound_by_flushers);
	press(f, 2 * HZ);
	f->rate = loses_a_little;
	press(f, 15 * HZ);
	KUNIT_EXPECT_EQ(test, 4, f->bdi->nr_wb_ctx);
}

static void cgroup_that_leaves_spoils_nothing(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin(test, bound_by_device);
	while (f->bdi->nr_wb_ctx == 1)
		press(f, LOOK_INTERVAL);
	/* in the window of the trial; in a backoff nobody looks */
	press(f, WB_AUTO_SETTLE_TIME + LOOK_INTERVAL);
	KUNIT_ASSERT_EQ(test, WB_AUTO_MEASURE, f->bdi->wb_auto.phase);
	f->written = 0;
	press(f, 5 * HZ);
	KUNIT_EXPECT_EQ(test, 1, f->bdi->nr_wb_ctx);
	KUNIT_EXPECT_EQ(test, 1, f->bdi->wb_auto.kept);
}

static void number_pins_and_auto_gives_back(struct kunit *test)
{
	struct auto_fixture *f = test->priv;
	char *text = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_ASSERT_EQ(test, 5, set_nwritebacks(f, "auto\n"));
	dev_attr_nwritebacks.show(&f->dev, &dev_attr_nwritebacks, text);
	KUNIT_EXPECT_STREQ(test, "auto (1)\n", text);
	KUNIT_ASSERT_EQ(test, 1, set_nwritebacks(f, "3"));
	dev_attr_nwritebacks.show(&f->dev, &dev_attr_nwritebacks, text);
	KUNIT_EXPECT_STREQ(test, "3\n", text);
	KUNIT_EXPECT_FALSE(test, f->bdi->wb_auto.on);
	/* as it was read, with a number that does not matter */
	KUNIT_EXPECT_EQ(test, 10, set_nwritebacks(f, "auto (12)\n"));
	KUNIT_EXPECT_TRUE(test, f->bdi->wb_auto.on);
	KUNIT_EXPECT_EQ(test, 1, f->bdi->nr_wb_ctx);
}

static void other_words_and_other_devices_are_refused(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	KUNIT_EXPECT_EQ(test, -EINVAL, set_nwritebacks(f, "automatic"));
	KUNIT_EXPECT_EQ(test, -EINVAL, set_nwritebacks(f, "auto (3"));
	KUNIT_EXPECT_EQ(test, -EINVAL, set_nwritebacks(f, "auto (3) 4"));
	f->bdi->max_wb_ctx = 1;
	KUNIT_EXPECT_EQ(test, -EINVAL, set_nwritebacks(f, "auto"));
	KUNIT_EXPECT_FALSE(test, f->bdi->wb_auto.on);
}

static struct kunit_case auto_test_cases[] = {
	KUNIT_CASE(verdict_has_a_tolerance),
	KUNIT_CASE(every_flusher_that_pays_is_used_soon),
	KUNIT_CASE(flushers_that_bring_nothing_are_left_out),
	KUNIT_CASE(rotating_disk_is_tried_ever_more_rarely),
	KUNIT_CASE(slow_device_gets_the_time_it_needs),
	KUNIT_CASE(steady_load_changes_nothing_for_ten_seconds),
	KUNIT_CASE(small_losses_do_not_add_up),
	KUNIT_CASE(cgroup_that_leaves_spoils_nothing),
	KUNIT_CASE(number_pins_and_auto_gives_back),
	KUNIT_CASE(other_words_and_other_devices_are_refused),
	{}
};

static struct kunit_suite auto_test_suite = {
	.name = "bdi_wb_auto",
	.init = auto_test_init,
	.test_cases = auto_test_cases,
};

kunit_test_suite(auto_test_suite);

MODULE_DESCRIPTION("KUnit tests of the number of contexts that a BDI finds");
MODULE_LICENSE("GPL");
