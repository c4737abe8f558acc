// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of what is once for all writeback contexts of a BDI, and of the
 * writebacks of a cgroup.
 */

#include <linux/sizes.h>
#include "bdi_wb_cgwb_fixture.h"

static void contexts_share_the_throttle(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback *root = bdi_root_wb(fixture->bdi);
	struct bdi_writeback_ctx *ctx;
	unsigned int seen = 0;

	enable(test, 5);
	for (ctx = bdi_next_wb_ctx(fixture->bdi, NULL); ctx;
	     ctx = bdi_next_wb_ctx(fixture->bdi, ctx)) {
		KUNIT_EXPECT_EQ(test, seen, ctx->index);
		KUNIT_EXPECT_PTR_EQ(test, fixture->bdi, ctx->wb.bdi);
		KUNIT_EXPECT_PTR_EQ(test, ctx, ctx->wb.ctx);
		KUNIT_EXPECT_PTR_EQ(test, root, ctx->wb.throttle);
		wb_stat_mod(&ctx->wb, WB_DIRTIED, 3);
		seen++;
	}
	KUNIT_EXPECT_EQ(test, 5, seen);
	KUNIT_EXPECT_EQ(test, 15, wb_stat_sum(root, WB_DIRTIED));
}

static void root_cgroup_is_in_every_context(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback *root = bdi_root_wb(fixture->bdi);
	struct bdi_writeback_ctx *ctx;

	enable(test, 3);
	ctx = fetch(test, 2);
	KUNIT_EXPECT_PTR_EQ(test, &ctx->wb, wb_in_ctx(root, ctx));
	KUNIT_EXPECT_PTR_EQ(test, &ctx->wb, throttle_wb(root, ctx));
	KUNIT_EXPECT_PTR_EQ(test, root,
			    wb_in_ctx(&ctx->wb, bdi_wb_ctx(fixture->bdi, 0)));
}

#ifdef CONFIG_CGROUP_WRITEBACK

static void cgroup_is_in_a_context_from_its_first_inode_on(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct backing_dev_info *bdi = fixture->bdi;
	struct bdi_writeback *throttle, *wb;
	struct bdi_writeback_ctx *ctx;

	KUNIT_ASSERT_EQ(test, 0, bdi_register(bdi, "kunit-wb-cgroup"));
	enable(test, 4);
	throttle = new_cgwb(test, bdi);
	ctx = fetch(test, 3);
	KUNIT_EXPECT_NULL(test, throttle_wb(throttle, ctx));
	KUNIT_EXPECT_NULL(test, throttle_next_wb(throttle, throttle));

	wb = wb_in_ctx(throttle, ctx);
	KUNIT_ASSERT_NOT_NULL(test, wb);
	KUNIT_EXPECT_PTR_EQ(test, ctx, wb->ctx);
	KUNIT_EXPECT_PTR_EQ(test, throttle, wb->throttle);
	KUNIT_EXPECT_FALSE(test, wb->root);
	KUNIT_EXPECT_PTR_EQ(test, wb, wb_in_ctx(throttle, ctx));
	KUNIT_EXPECT_PTR_EQ(test, throttle,
			    wb_in_ctx(wb, bdi_wb_ctx(bdi, 0)));
	KUNIT_EXPECT_PTR_EQ(test, wb, throttle_next_wb(throttle, throttle));
	KUNIT_EXPECT_NULL(test, throttle_next_wb(throttle, wb));
	wb_stat_mod(wb, WB_DIRTIED, 3);
	KUNIT_EXPECT_EQ(test, 3, wb_stat_sum(throttle, WB_DIRTIED));

	free_cgwb(throttle);
	bdi_unregister(bdi);
}

static void dying_cgroup_keeps_its_contexts(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback *throttle, *wb;
	struct bdi_writeback_ctx *ctx;

	KUNIT_ASSERT_EQ(test, 0, bdi_register(fixture->bdi, "kunit-wb-dying"));
	enable(test, 4);
	throttle = new_cgwb(test, fixture->bdi);
	ctx = fetch(test, 1);
	wb = wb_in_ctx(throttle, ctx);
	KUNIT_ASSERT_NOT_NULL(test, wb);

	percpu_ref_get(&throttle->refcnt);
	percpu_ref_kill(&throttle->refcnt);
	KUNIT_EXPECT_TRUE(test, wb_dying(throttle));
	KUNIT_EXPECT_TRUE(test, wb_dying(wb));
	KUNIT_EXPECT_PTR_EQ(test, wb, wb_in_ctx(throttle, ctx));
	KUNIT_EXPECT_PTR_EQ(test, wb, throttle_wb(throttle, ctx));
	KUNIT_EXPECT_NOT_NULL(test, wb_in_ctx(wb, fetch(test, 2)));
	percpu_ref_put(&throttle->refcnt);

	free_cgwb(throttle);
	bdi_unregister(fixture->bdi);
}

static void cgroup_of_a_device_that_is_gone_stays_in_context_0(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback *throttle;
	struct bdi_writeback_ctx *ctx;

	enable(test, 2);
	throttle = new_cgwb(test, fixture->bdi);
	ctx = fetch(test, 1);
	KUNIT_EXPECT_NULL(test, wb_in_ctx(throttle, ctx));
	KUNIT_EXPECT_NULL(test, throttle_wb(throttle, ctx));
	free_cgwb(throttle);
}

#endif	/* CONFIG_CGROUP_WRITEBACK */

static void bandwidth_counts_once_for_all_contexts(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct backing_dev_info *bdi = fixture->bdi;
	struct bdi_writeback *root = bdi_root_wb(bdi);

	enable(test, 3);
	wb_set_avg_write_bandwidth(root, 900);
	KUNIT_EXPECT_FALSE(test, bdi_has_dirty_io(bdi));

	for (int i = 0; i < 3; i++) {
		wb_dirty_io_start(&bdi_wb_ctx(bdi, i)->wb);
		KUNIT_EXPECT_EQ(test, 900, atomic_long_read(&bdi->tot_write_bandwidth));
		KUNIT_EXPECT_EQ(test, 900 / (i + 1), wb_bandwidth_share(root));
	}

	wb_set_avg_write_bandwidth(root, 600);
	KUNIT_EXPECT_EQ(test, 600, atomic_long_read(&bdi->tot_write_bandwidth));

	for (int i = 0; i < 3; i++) {
		KUNIT_EXPECT_TRUE(test, bdi_has_dirty_io(bdi));
		wb_dirty_io_end(&bdi_wb_ctx(bdi, i)->wb);
	}
	KUNIT_EXPECT_FALSE(test, bdi_has_dirty_io(bdi));
	KUNIT_EXPECT_EQ(test, 600, wb_bandwidth_share(root));
}

/* Would the flusher of @wb be woken, @flushed pages after it last was? */
static bool is_woken(struct bdi_writeback *throttle, struct bdi_writeback *wb,
		     unsigned long flushed)
{
	wb->nr_flushed = wb->woken_nr_flushed + flushed;
	throttle_wake_flushers(throttle);
	return wb->woken_nr_flushed == wb->nr_flushed;
}

static void throttle_wakes_a_sleeping_flusher(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback *root = bdi_root_wb(fixture->bdi);
	struct bdi_writeback *last;

	enable(test, 3);
	last = &bdi_wb_ctx(fixture->bdi, 2)->wb;
	KUNIT_EXPECT_FALSE(test, is_woken(root, last, 1));
	set_bit(WB_has_dirty_io, &last->state);
	KUNIT_EXPECT_TRUE(test, is_woken(root, last, 1));
	set_bit(WB_writeback_running, &last->state);
	KUNIT_EXPECT_FALSE(test, is_woken(root, last, 1));
	last->state = 0;
}

static void wakeups_are_limited_while_another_flusher_runs(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback *root = bdi_root_wb(fixture->bdi);
	struct bdi_writeback *last;
	unsigned long now;
	bool woken;

	enable(test, 3);
	last = &bdi_wb_ctx(fixture->bdi, 2)->wb;
	set_bit(WB_has_dirty_io, &last->state);
	last->woken_time_stamp = jiffies;
	KUNIT_EXPECT_TRUE(test, is_woken(root, last, 1));

	set_bit(WB_writeback_running, &root->state);
	do {
		now = jiffies;
		last->woken_time_stamp = now;
		woken = is_woken(root, last, 1);
	} while (time_after(jiffies, now));
	KUNIT_EXPECT_FALSE(test, woken);

	last->woken_nr_flushed = 0;
	KUNIT_EXPECT_TRUE(test, is_woken(root, last, SZ_1M >> PAGE_SHIFT));
	/* Half a MiB is little, but not if that was its share. */
	do {
		now = jiffies;
		last->woken_time_stamp = now;
		woken = is_woken(root, last, SZ_512K >> PAGE_SHIFT);
	} while (time_after(jiffies, now));
	KUNIT_EXPECT_FALSE(test, woken);
	root->nr_dirty_wb = 2;
	KUNIT_EXPECT_TRUE(test, is_woken(root, last, SZ_512K >> PAGE_SHIFT));
	root->nr_dirty_wb = 0;
	last->woken_time_stamp = jiffies - HZ;
	KUNIT_EXPECT_TRUE(test, is_woken(root, last, 1));
	root->state = 0;
	last->state = 0;
}

static void dontcache_pages_are_shared_by_those_with_dirty_inodes(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback *root = bdi_root_wb(fixture->bdi);

	enable(test, 4);
	KUNIT_EXPECT_EQ(test, 100, throttle_share(root, 100));
	for (int i = 0; i < 3; i++)
		wb_dirty_io_start(&bdi_wb_ctx(fixture->bdi, i)->wb);
	KUNIT_EXPECT_EQ(test, 34, throttle_share(root, 100));
	KUNIT_EXPECT_EQ(test, 0, throttle_share(root, 0));
	for (int i = 0; i < 3; i++)
		wb_dirty_io_end(&bdi_wb_ctx(fixture->bdi, i)->wb);
}

static struct kunit_case wb_throttle_test_cases[] = {
	KUNIT_CASE(contexts_share_the_throttle),
	KUNIT_CASE(root_cgroup_is_in_every_context),
	KUNIT_CASE(bandwidth_counts_once_for_all_contexts),
	KUNIT_CASE(throttle_wakes_a_sleeping_flusher),
	KUNIT_CASE(wakeups_are_limited_while_another_flusher_runs),
	KUNIT_CASE(dontcache_pages_are_shared_by_those_with_dirty_inodes),
#ifdef CONFIG_CGROUP_WRITEBACK
	KUNIT_CASE(cgroup_is_in_a_context_from_its_first_inode_on),
	KUNIT_CASE(dying_cgroup_keeps_its_contexts),
	KUNIT_CASE(cgroup_of_a_device_that_is_gone_stays_in_context_0),
#endif
	{}
};

static struct kunit_suite wb_throttle_test_suite = {
	.name = "bdi_wb_throttle",
	.init = wb_ctx_test_init,
	.test_cases = wb_throttle_test_cases,
};

kunit_test_suite(wb_throttle_test_suite);

MODULE_DESCRIPTION("KUnit tests of the throttle of a BDI");
MODULE_LICENSE("GPL");
