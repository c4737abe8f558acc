// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the writeback contexts: arithmetic, lifetime, accounting.
 *
 * The filesystem is a bare super_block: the contexts look at nothing of it but
 * its BDI, its flags and its operations.
 */

#include <kunit/resource.h>
#include <kunit/test.h>
#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/percpu-refcount.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include "../bdi-writeback-ctx.h"

struct wb_ctx_fixture {
	struct backing_dev_info *bdi;
	struct super_block sb;
	struct inode inode;
	struct device dev;
};

static void put_bdi(void *bdi)
{
	bdi_put(bdi);
}

static int wb_ctx_test_init(struct kunit *test)
{
	static const struct super_operations no_operations;
	struct wb_ctx_fixture *fixture;

	fixture = kunit_kzalloc(test, sizeof(*fixture), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, fixture);
	fixture->sb.s_op = &no_operations;
	fixture->bdi = bdi_alloc(NUMA_NO_NODE);
	KUNIT_ASSERT_NOT_NULL(test, fixture->bdi);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, put_bdi, fixture->bdi));

	fixture->sb.s_bdi = fixture->bdi;
	fixture->inode.i_sb = &fixture->sb;
	dev_set_drvdata(&fixture->dev, fixture->bdi);
	test->priv = fixture;
	return 0;
}

static int set_nwritebacks(struct wb_ctx_fixture *fixture, const char *text)
{
	return dev_attr_nwritebacks.store(&fixture->dev, &dev_attr_nwritebacks,
					  text, strlen(text));
}

static struct bdi_writeback_ctx *fetch(struct kunit *test, u64 ino)
{
	struct wb_ctx_fixture *fixture = test->priv;

	fixture->inode.i_ino = ino;
	return fetch_bdi_writeback_ctx(&fixture->inode);
}

/* mount with @nr contexts, and let all of them come */
static void enable(struct kunit *test, int nr)
{
	struct wb_ctx_fixture *fixture = test->priv;

	fixture->bdi->max_wb_ctx = 16;
	fixture->bdi->nr_wb_ctx = nr;
	sb_enable_wb_ctx(&fixture->sb);
	for (int i = 0; i < nr; i++)
		KUNIT_ASSERT_EQ(test, i, fetch(test, i)->index);
}

static unsigned int count_contexts(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx;
	unsigned int count = 0;

	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
	     ctx = bdi_next_wb_ctx(bdi, ctx))
		count++;
	return count;
}

static void index_is_in_range_and_even(struct kunit *test)
{
	for (unsigned int nr = 1; nr <= 17; nr++) {
		unsigned int hits[17] = {};

		for (u64 ino = U32_MAX - 50; ino < U32_MAX - 50ULL + 10 * nr; ino++) {
			unsigned int index = wb_ctx_index(ino, nr);

			KUNIT_ASSERT_LT(test, index, nr);
			hits[index]++;
		}
		for (unsigned int i = 0; i < nr; i++)
			KUNIT_EXPECT_EQ(test, 10, hits[i]);
	}
}

static void new_bdi_has_one_context(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback *root = bdi_root_wb(fixture->bdi);

	KUNIT_EXPECT_EQ(test, 1, fixture->bdi->nr_wb_ctx);
	KUNIT_EXPECT_EQ(test, 1, count_contexts(fixture->bdi));
	KUNIT_EXPECT_PTR_EQ(test, root, root->throttle);
	KUNIT_EXPECT_TRUE(test, root->root);
}

static void block_device_gets_one_context_per_cpu(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;

	bdi_enable_wb_ctx(fixture->bdi);
	KUNIT_EXPECT_EQ(test, num_online_cpus(), fixture->bdi->nr_wb_ctx);
	KUNIT_EXPECT_EQ(test, 4 * num_possible_cpus(), fixture->bdi->max_wb_ctx);
}

static void context_comes_with_its_first_inode(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback_ctx *ctx;

	fixture->bdi->max_wb_ctx = 16;
	fixture->bdi->nr_wb_ctx = 8;
	sb_enable_wb_ctx(&fixture->sb);
	KUNIT_EXPECT_EQ(test, 1, count_contexts(fixture->bdi));

	ctx = fetch(test, 5);
	KUNIT_EXPECT_EQ(test, 5, ctx->index);
	KUNIT_EXPECT_EQ(test, 2, count_contexts(fixture->bdi));
	KUNIT_EXPECT_PTR_EQ(test, ctx, fetch(test, 13));
	KUNIT_EXPECT_EQ(test, 2, count_contexts(fixture->bdi));
	KUNIT_EXPECT_EQ(test, 3, fetch(test, 3)->index);
	KUNIT_EXPECT_EQ(test, 3, count_contexts(fixture->bdi));
}

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

static void filesystem_that_does_not_ask_has_one_context(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;

	bdi_enable_wb_ctx(fixture->bdi);
	KUNIT_EXPECT_EQ(test, 0, fetch(test, 7)->index);
	KUNIT_EXPECT_EQ(test, 1, count_contexts(fixture->bdi));
}

static void new_number_counts_at_once(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct inode *inode = &fixture->inode;
	struct bdi_writeback_ctx *last;

	enable(test, 4);
	last = fetch(test, 7);
	inode->i_wb = &last->wb;
	KUNIT_EXPECT_NULL(test, inode_next_wb_ctx(inode, inode->i_wb));

	KUNIT_EXPECT_EQ(test, 2, set_nwritebacks(fixture, "2\n"));
	KUNIT_EXPECT_EQ(test, 1, inode_next_wb_ctx(inode, inode->i_wb)->index);
	KUNIT_EXPECT_PTR_EQ(test, last, inode_wb_ctx(inode));
	KUNIT_EXPECT_EQ(test, 1, fetch(test, 7)->index);
	KUNIT_EXPECT_EQ(test, 4, count_contexts(fixture->bdi));

	inode->i_wb = NULL;
	KUNIT_EXPECT_EQ(test, 1, set_nwritebacks(fixture, "8"));
	KUNIT_EXPECT_EQ(test, 7, fetch(test, 7)->index);
	KUNIT_EXPECT_PTR_EQ(test, last, fetch(test, 3));
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

static void no_release(struct percpu_ref *ref)
{
}

/* a cgroup writeback as cgwb_create() makes it, but of no cgroup */
static struct bdi_writeback *new_cgwb(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback *wb = kzalloc_obj(*wb);

	KUNIT_ASSERT_NOT_NULL(test, wb);
	KUNIT_ASSERT_EQ(test, 0, wb_init(wb, bdi_wb_ctx(fixture->bdi, 0), wb,
					 GFP_KERNEL));
	KUNIT_ASSERT_EQ(test, 0, percpu_ref_init(&wb->refcnt, no_release, 0,
						 GFP_KERNEL));
	/* its flushers look for limits, of which the root has none */
	wb->memcg_css = bdi_root_wb(fixture->bdi)->memcg_css;
	wb->blkcg_css = bdi_root_wb(fixture->bdi)->blkcg_css;
	return wb;
}

static void free_cgwb(struct bdi_writeback *wb)
{
	cgwb_shutdown_ctx_wbs(wb);
	cgwb_free_ctx_wbs(wb);
	rcu_barrier();	/* percpu_ref_kill() goes on until then */
	percpu_ref_exit(&wb->refcnt);
	wb_exit(wb);
	kfree(wb);
}

static void cgroup_is_in_a_context_from_its_first_inode_on(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct backing_dev_info *bdi = fixture->bdi;
	struct bdi_writeback *throttle, *wb;
	struct bdi_writeback_ctx *ctx;

	KUNIT_ASSERT_EQ(test, 0, bdi_register(bdi, "kunit-wb-cgroup"));
	enable(test, 4);
	throttle = new_cgwb(test);
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
	throttle = new_cgwb(test);
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
	struct bdi_writeback *throttle;
	struct bdi_writeback_ctx *ctx;

	enable(test, 2);
	throttle = new_cgwb(test);
	ctx = fetch(test, 1);
	KUNIT_EXPECT_NULL(test, wb_in_ctx(throttle, ctx));
	KUNIT_EXPECT_NULL(test, throttle_wb(throttle, ctx));
	free_cgwb(throttle);
}

#endif	/* CONFIG_CGROUP_WRITEBACK */

struct sync {
	struct backing_dev_info *bdi;
	struct completion begun;
};

static int sync_thread(void *data)
{
	struct sync *sync = data;

	down_write(&sync->bdi->wb_switch_rwsem);
	complete(&sync->begun);
	while (!kthread_should_stop())
		cond_resched();
	up_write(&sync->bdi->wb_switch_rwsem);
	return 0;
}

/* Context 5 comes while a sync waits for a flusher that moves an inode. */
static void sync_covers_a_context_that_comes_meanwhile(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct backing_dev_info *bdi = fixture->bdi;
	struct sync sync = { .bdi = bdi };
	struct bdi_writeback_ctx *last, *born;
	struct task_struct *task;

	init_completion(&sync.begun);
	enable(test, 3);
	KUNIT_ASSERT_EQ(test, 1, set_nwritebacks(fixture, "8"));
	last = fetch(test, 7);
	KUNIT_ASSERT_EQ(test, 7, last->index);
	down_read(&bdi->wb_switch_rwsem);
	task = kthread_run(sync_thread, &sync, "kunit-sync");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	while (!rwsem_is_contended(&bdi->wb_switch_rwsem))
		cond_resched();
	born = fetch(test, 5);
	KUNIT_EXPECT_EQ(test, 5, born->index);
	up_read(&bdi->wb_switch_rwsem);

	wait_for_completion(&sync.begun);
	KUNIT_EXPECT_EQ(test, 0, down_read_trylock(&born->bdi->wb_switch_rwsem));
	kthread_stop(task);
}

static void bad_nwritebacks_changes_nothing(struct kunit *test)
{
	static const char * const bad[] = {
		"", "0", "-1", "17", "two", "1 2", "4294967297",
	};
	struct wb_ctx_fixture *fixture = test->priv;

	fixture->bdi->max_wb_ctx = 16;
	KUNIT_ASSERT_EQ(test, 1, set_nwritebacks(fixture, "3"));
	for (int i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, set_nwritebacks(fixture, bad[i]),
				    "'%s'", bad[i]);
		KUNIT_EXPECT_EQ(test, 3, fixture->bdi->nr_wb_ctx);
	}
	KUNIT_EXPECT_EQ(test, 2, set_nwritebacks(fixture, "16"));
	KUNIT_EXPECT_EQ(test, 16, fixture->bdi->nr_wb_ctx);
}

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

static unsigned int count_wbs(struct backing_dev_info *bdi)
{
	struct bdi_writeback *wb;
	unsigned int count = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(wb, &bdi->wb_list, bdi_node)
		count++;
	rcu_read_unlock();
	return count;
}

static void registration_reaches_every_context(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct backing_dev_info *bdi = fixture->bdi;
	struct bdi_writeback_ctx *ctx;

	KUNIT_ASSERT_EQ(test, 0, bdi_register(bdi, "kunit-wb-ctx"));
	KUNIT_EXPECT_EQ(test, 1, count_wbs(bdi));
	enable(test, 6);
	KUNIT_EXPECT_EQ(test, 6, count_wbs(bdi));
	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
	     ctx = bdi_next_wb_ctx(bdi, ctx))
		KUNIT_EXPECT_TRUE(test, test_bit(WB_registered, &ctx->wb.state));

	bdi_unregister(bdi);
	KUNIT_EXPECT_EQ(test, 0, count_wbs(bdi));
	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
	     ctx = bdi_next_wb_ctx(bdi, ctx))
		KUNIT_EXPECT_FALSE(test, test_bit(WB_registered, &ctx->wb.state));
}

static struct kunit_case wb_ctx_test_cases[] = {
	KUNIT_CASE(index_is_in_range_and_even),
	KUNIT_CASE(new_bdi_has_one_context),
	KUNIT_CASE(block_device_gets_one_context_per_cpu),
	KUNIT_CASE(context_comes_with_its_first_inode),
	KUNIT_CASE(contexts_share_the_throttle),
	KUNIT_CASE(filesystem_that_does_not_ask_has_one_context),
	KUNIT_CASE(new_number_counts_at_once),
	KUNIT_CASE(root_cgroup_is_in_every_context),
#ifdef CONFIG_CGROUP_WRITEBACK
	KUNIT_CASE(cgroup_is_in_a_context_from_its_first_inode_on),
	KUNIT_CASE(dying_cgroup_keeps_its_contexts),
	KUNIT_CASE(cgroup_of_a_device_that_is_gone_stays_in_context_0),
#endif
	KUNIT_CASE(sync_covers_a_context_that_comes_meanwhile),
	KUNIT_CASE(bad_nwritebacks_changes_nothing),
	KUNIT_CASE(bandwidth_counts_once_for_all_contexts),
	KUNIT_CASE(throttle_wakes_a_sleeping_flusher),
	KUNIT_CASE(wakeups_are_limited_while_another_flusher_runs),
	KUNIT_CASE(dontcache_pages_are_shared_by_those_with_dirty_inodes),
	KUNIT_CASE(registration_reaches_every_context),
	{}
};

static struct kunit_suite wb_ctx_test_suite = {
	.name = "bdi_writeback_ctx",
	.init = wb_ctx_test_init,
	.test_cases = wb_ctx_test_cases,
};

kunit_test_suite(wb_ctx_test_suite);

MODULE_DESCRIPTION("KUnit tests of the writeback contexts");
MODULE_LICENSE("GPL");
