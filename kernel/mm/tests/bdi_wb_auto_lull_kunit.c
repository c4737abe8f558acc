// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the number of contexts that a BDI finds where its flushers hold
 * nobody up: no writer waits any more, it is the device that all wait for, or
 * they have nothing to write yet. Of what is compared anew when a number brought
 * nothing, and of what a look at the BDI leaves behind.
 */

#include "../../fs/fs-writeback.h"
#include "bdi_wb_auto_fixture.h"
#include "bdi_wb_cgwb_fixture.h"

static void lull(struct auto_fixture *f, unsigned long duration)
{
	f->now += duration;
	f->now_ns += jiffies_to_nsecs(duration);
}

static void begin_trial(struct kunit *test, u64 (*rate)(unsigned int nr))
{
	struct auto_fixture *f = test->priv;

	begin(test, rate);
	while (f->bdi->nr_wb_ctx == 1)
		press(f, LOOK_INTERVAL);
	KUNIT_ASSERT_EQ(test, 2, f->bdi->nr_wb_ctx);
}

static void trial_that_ends_with_the_load_is_undone(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin_trial(test, bound_by_flushers);
	lull(f, 60 * HZ);
	press(f, LOOK_INTERVAL);
	KUNIT_EXPECT_EQ(test, 1, f->bdi->nr_wb_ctx);
}

static void trial_after_which_nobody_waits_is_kept(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin_trial(test, bound_by_flushers);
	f->written += 60 * f->rate(2);
	lull(f, 60 * HZ);
	press(f, LOOK_INTERVAL);
	KUNIT_EXPECT_EQ(test, 2, f->bdi->nr_wb_ctx);
	KUNIT_EXPECT_EQ(test, 2, f->bdi->wb_auto.kept);
}

static void load_after_a_lull_is_not_made_to_wait(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin(test, bound_by_device);
	press(f, 600 * HZ);
	KUNIT_ASSERT_EQ(test, 1, f->bdi->nr_wb_ctx);
	/* in the middle of a backoff */
	lull(f, 5 * HZ);
	f->rate = bound_by_flushers;
	press(f, 2 * HZ);
	KUNIT_EXPECT_EQ(test, NR_CPUS_TESTED, f->bdi->nr_wb_ctx);
}

static void device_that_all_wait_for_is_left_alone(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	f->waiting = 97;
	begin(test, bound_by_flushers);
	press(f, 600 * HZ);
	KUNIT_EXPECT_EQ(test, 0, f->changes);

	f->waiting = 96;
	press(f, 25 * HZ);
	KUNIT_EXPECT_EQ(test, NR_CPUS_TESTED, f->bdi->nr_wb_ctx);
}

/* once all flushers have something to write */
static void expect_all_soon(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	f->busy = 0;
	press(f, 2 * HZ);
	KUNIT_EXPECT_EQ(test, NR_CPUS_TESTED, f->bdi->nr_wb_ctx);
}

static void trial_waits_until_inodes_have_moved(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin_trial(test, bound_by_flushers);
	f->busy = 1;
	press(f, WB_AUTO_PATIENCE - 2 * LOOK_INTERVAL);
	KUNIT_ASSERT_EQ(test, 2, f->bdi->nr_wb_ctx);
	expect_all_soon(test);
}

static void moving_that_costs_is_not_held_against_a_trial(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin(test, bound_by_flushers);
	while (f->bdi->nr_wb_ctx < 4)
		press(f, LOOK_INTERVAL);
	/* one flusher writes half of what two did */
	f->busy = 1;
	press(f, HZ / 2);
	KUNIT_ASSERT_EQ(test, 4, f->bdi->nr_wb_ctx);
	expect_all_soon(test);
}

static void trial_with_one_busy_inode_comes_to_an_end(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin_trial(test, bound_by_flushers);
	f->busy = 1;
	press(f, 2 * HZ);
	KUNIT_EXPECT_EQ(test, 1, f->bdi->nr_wb_ctx);
	KUNIT_EXPECT_EQ(test, 2, f->most);
}

/* what four wrote in the window that they were kept for was luck */
static u64 four_were_lucky(unsigned int nr)
{
	return nr < 8 ? 900000 : 1000000;
}

static void lucky_number_is_measured_anew(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin(test, bound_by_flushers);
	while (f->bdi->nr_wb_ctx < 8)
		press(f, LOOK_INTERVAL);
	f->rate = four_were_lucky;
	press(f, HZ / 2 + WB_AUTO_SETTLE_TIME);
	KUNIT_ASSERT_EQ(test, 4, f->bdi->nr_wb_ctx);
	press(f, HZ);
	KUNIT_EXPECT_EQ(test, 8, f->bdi->nr_wb_ctx);
	KUNIT_EXPECT_EQ(test, 8, f->bdi->wb_auto.kept);
}

static void lull_ends_what_is_compared_anew(struct kunit *test)
{
	struct auto_fixture *f = test->priv;

	begin_trial(test, bound_by_device);
	press(f, HZ / 2 + WB_AUTO_SETTLE_TIME);
	KUNIT_ASSERT_EQ(test, 1, f->bdi->nr_wb_ctx);
	KUNIT_ASSERT_NE(test, 0, f->bdi->wb_auto.same_rate);
	lull(f, 60 * HZ);
	f->rate = bound_by_flushers;
	press(f, 2 * HZ);
	KUNIT_EXPECT_EQ(test, NR_CPUS_TESTED, f->bdi->nr_wb_ctx);
}

/* or a look would take a worker that is gone for one that waits */
static void flusher_that_has_ended_is_forgotten(struct kunit *test)
{
	struct auto_fixture *f = test->priv;
	struct bdi_writeback *root = bdi_root_wb(f->bdi);

	KUNIT_ASSERT_EQ(test, 0, bdi_register(f->bdi, "kunit-wb-flusher"));
	wb_wakeup(root);
	flush_delayed_work(&root->dwork);
	KUNIT_EXPECT_NULL(test, root->flusher);
	bdi_unregister(f->bdi);
}

#ifdef CONFIG_CGROUP_WRITEBACK

static void what_a_cgroup_has_written_outlives_it(struct kunit *test)
{
	struct auto_fixture *f = test->priv;
	struct bdi_writeback *wb = new_cgwb(test, f->bdi);

	wb_stat_mod(wb, WB_WRITTEN, 100);
	bdi_add_wb(wb);
	KUNIT_EXPECT_EQ(test, 100, bdi_written(f->bdi));
	percpu_ref_kill(&wb->refcnt);
	rcu_barrier();
	/* as its release does, long before it leaves the list */
	bdi_wb_auto_leave(wb);
	KUNIT_EXPECT_EQ(test, 100, bdi_written(f->bdi));
	bdi_del_wb(wb);
	KUNIT_EXPECT_EQ(test, 100, bdi_written(f->bdi));
	free_cgwb(wb);
}

static void look_keeps_no_cgroup_alive(struct kunit *test)
{
	struct auto_fixture *f = test->priv;
	struct bdi_writeback *wb = new_cgwb(test, f->bdi);

	bdi_add_wb(wb);
	bdi_written(f->bdi);
	bdi_del_wb(wb);
	percpu_ref_kill(&wb->refcnt);
	rcu_barrier();
	KUNIT_EXPECT_TRUE(test, percpu_ref_is_zero(&wb->refcnt));
	free_cgwb(wb);
}

#endif

static struct kunit_case auto_lull_test_cases[] = {
	KUNIT_CASE(trial_that_ends_with_the_load_is_undone),
	KUNIT_CASE(trial_after_which_nobody_waits_is_kept),
	KUNIT_CASE(load_after_a_lull_is_not_made_to_wait),
	KUNIT_CASE(device_that_all_wait_for_is_left_alone),
	KUNIT_CASE(trial_waits_until_inodes_have_moved),
	KUNIT_CASE(moving_that_costs_is_not_held_against_a_trial),
	KUNIT_CASE(trial_with_one_busy_inode_comes_to_an_end),
	KUNIT_CASE(lucky_number_is_measured_anew),
	KUNIT_CASE(lull_ends_what_is_compared_anew),
	KUNIT_CASE(flusher_that_has_ended_is_forgotten),
#ifdef CONFIG_CGROUP_WRITEBACK
	KUNIT_CASE(what_a_cgroup_has_written_outlives_it),
	KUNIT_CASE(look_keeps_no_cgroup_alive),
#endif
	{}
};

static struct kunit_suite auto_lull_test_suite = {
	.name = "bdi_wb_auto_lull",
	.init = auto_test_init,
	.test_cases = auto_lull_test_cases,
};

kunit_test_suite(auto_lull_test_suite);

MODULE_DESCRIPTION("KUnit tests of a trial of contexts that the load outlasts, or not");
MODULE_LICENSE("GPL");
