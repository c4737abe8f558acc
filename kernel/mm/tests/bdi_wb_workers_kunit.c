// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the choice among several flusher workers, and of a sync that
 * waits for what others do.
 */

#include <kunit/test.h>
#include <linux/backing-dev.h>
#include <linux/bdi-wb-workers.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include "../../fs/fs-writeback.h"

/* long beside the time to queue a work item */
#define SLOW_WORKER_MS	200

static void idle_worker_goes_first(struct kunit *test)
{
	unsigned int turn = 0;

	KUNIT_EXPECT_EQ(test, wb_pick_worker(0x0, 4, &turn), 0);
	KUNIT_EXPECT_EQ(test, wb_pick_worker(0x1, 4, &turn), 1);
	KUNIT_EXPECT_EQ(test, wb_pick_worker(0xb, 4, &turn), 2);
	/* only who found nobody idle takes a turn */
	KUNIT_EXPECT_EQ(test, turn, 0);
}

static void busy_workers_take_turns(struct kunit *test)
{
	unsigned int turn = 0;

	for (unsigned int i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, wb_pick_worker(0xf, 4, &turn), i % 4);
}

static void worker_beyond_the_number_is_not_picked(struct kunit *test)
{
	unsigned int turn = 0;

	/* 4 to 7 are left from a larger number, and 2 and 3 idle */
	KUNIT_EXPECT_EQ(test, wb_pick_worker(0xf3, 2, &turn), 0);
	KUNIT_EXPECT_EQ(test, wb_pick_worker(0xf3, 2, &turn), 1);
	KUNIT_EXPECT_EQ(test, wb_pick_worker(0xf1, 2, &turn), 1);
}

static void single_worker_gets_every_wakeup(struct kunit *test)
{
	unsigned int turn = 0;

	KUNIT_EXPECT_EQ(test, wb_pick_worker(0x0, 1, &turn), 0);
	KUNIT_EXPECT_EQ(test, wb_pick_worker(0x1, 1, &turn), 0);
	KUNIT_EXPECT_EQ(test, wb_pick_worker(0x1, 1, &turn), 0);
}

static atomic_t slow_workers_ended;

static void slow_worker(struct work_struct *work)
{
	msleep(SLOW_WORKER_MS);
	atomic_inc(&slow_workers_ended);
}

static void shutdown_waits_for_every_worker(struct kunit *test)
{
	struct bdi_writeback *wb = kunit_kzalloc(test, sizeof(*wb), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, wb);
	wb_flush_workers(wb);	/* one that never had a second worker */

	wb->siblings = kunit_kcalloc(test, WB_MAX_WORKERS - 1,
				     sizeof(*wb->siblings), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, wb->siblings);
	atomic_set(&slow_workers_ended, 0);
	for (unsigned int i = 0; i < WB_MAX_WORKERS - 1; i++) {
		INIT_WORK(&wb->siblings[i].work, slow_worker);
		queue_work(system_dfl_wq, &wb->siblings[i].work);
	}
	wb_flush_workers(wb);
	KUNIT_EXPECT_EQ(test, WB_MAX_WORKERS - 1,
			atomic_read(&slow_workers_ended));
}

static void workers_are_for_block_devices(struct kunit *test)
{
	struct backing_dev_info *bdi = bdi_alloc(NUMA_NO_NODE);
	struct device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bdi);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev_set_drvdata(dev, bdi);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			dev_attr_wb_workers.store(dev, NULL, "2", 1));
	KUNIT_EXPECT_EQ(test, 1, dev_attr_wb_workers.store(dev, NULL, "1", 1));
	bdi_enable_wb_ctx(bdi);
	KUNIT_EXPECT_EQ(test, 1, dev_attr_wb_workers.store(dev, NULL, "2", 1));
	KUNIT_EXPECT_EQ(test, 2, bdi->nr_wb_workers);
	bdi_put(bdi);
}

/* A block device's BDI, and a filesystem that has yet to enable contexts. */
static struct bdi_writeback *make_wb(struct kunit *test, struct super_block **sb)
{
	struct backing_dev_info *bdi = bdi_alloc(NUMA_NO_NODE);

	*sb = kunit_kzalloc(test, sizeof(**sb), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bdi);
	KUNIT_ASSERT_NOT_NULL(test, *sb);
	(*sb)->s_bdi = bdi;
	bdi_enable_wb_ctx(bdi);
	return bdi_root_wb(bdi);
}

static void second_worker_needs_a_filesystem_with_contexts(struct kunit *test)
{
	struct super_block *sb;
	struct bdi_writeback *wb = make_wb(test, &sb);

	wb->bdi->nr_wb_workers = 4;
	wb_worker_begin(wb, 0);
	wb_worker_end(wb, 0);
	KUNIT_EXPECT_NULL(test, wb->siblings);

	sb_enable_wb_ctx(sb);
	wb_worker_begin(wb, 0);
	wb_worker_end(wb, 0);
	KUNIT_EXPECT_NOT_NULL(test, wb->siblings);
	bdi_put(wb->bdi);
}

/* The first worker may not begin anew for as long as there is work. */
static void larger_number_counts_in_the_midst_of_work(struct kunit *test)
{
	struct super_block *sb;
	struct bdi_writeback *wb = make_wb(test, &sb);

	sb_enable_wb_ctx(sb);
	wb_worker_begin(wb, 0);
	wb_wake_sibling(wb);
	KUNIT_EXPECT_NULL(test, wb->siblings);
	wb->bdi->nr_wb_workers = 4;
	wb_wake_sibling(wb);
	KUNIT_EXPECT_NOT_NULL(test, wb->siblings);
	wb_worker_end(wb, 0);
	bdi_put(wb->bdi);
}

/* The rescuer says nothing: a throttled writer queues its worker again. */
static void only_who_says_so_counts_as_running(struct kunit *test)
{
	struct super_block *sb;
	struct bdi_writeback *wb = make_wb(test, &sb);

	wb_worker_begin(wb, 0);
	wb_worker_begin(wb, 1);
	KUNIT_EXPECT_FALSE(test, writeback_in_progress(wb));
	set_bit(WB_writeback_running, &wb->state);
	wb_worker_end(wb, 0);
	KUNIT_EXPECT_TRUE(test, writeback_in_progress(wb));
	wb_worker_end(wb, 1);
	KUNIT_EXPECT_FALSE(test, writeback_in_progress(wb));
	bdi_put(wb->bdi);
}

/*
 * An inode that moves here gets its age with the lock held. A sync that waits
 * for the lock covers it.
 */
static void sync_covers_an_inode_that_moves_in_as_it_begins(struct kunit *test)
{
	struct inode *inode = kunit_kzalloc(test, sizeof(*inode), GFP_KERNEL);
	struct wb_writeback_work sync = {
		.nr_pages = LONG_MAX,
		.sync_mode = WB_SYNC_ALL,
	};
	struct bdi_writeback *wb = make_wb(test, &sync.sb);

	KUNIT_ASSERT_NOT_NULL(test, inode);
	spin_lock_init(&inode->i_lock);
	INIT_LIST_HEAD(&inode->i_io_list);
	inode->i_sb = sync.sb;
	inode->i_wb = wb;
	list_add(&sync.list, &wb->work_list);

	spin_lock(&wb->list_lock);
	/* the lock keeps the test on its CPU, so take another one */
	schedule_delayed_work_on(cpumask_next_wrap(raw_smp_processor_id(),
						   cpu_online_mask),
				 &wb->dwork, 0);
	/* not for ever: there are kinds of spinlocks that do not tell */
	for (int i = 0; i < 500 && !spin_is_contended(&wb->list_lock); i++)
		mdelay(1);
	inode->dirtied_when = jiffies;
	while (!time_after(jiffies, inode->dirtied_when))
		cpu_relax();
	inode->dirtied_when = jiffies;
	spin_lock(&inode->i_lock);
	inode_io_list_move_locked(inode, wb, &wb->b_dirty);
	/* such an inode is not written, but taken off the list */
	inode_state_set(inode, I_FREEING);
	spin_unlock(&inode->i_lock);
	spin_unlock(&wb->list_lock);

	flush_delayed_work(&wb->dwork);
	KUNIT_EXPECT_TRUE(test, list_empty(&inode->i_io_list));
	list_del_init(&inode->i_io_list);
	bdi_put(wb->bdi);
}

static struct kunit_case bdi_wb_workers_cases[] = {
	KUNIT_CASE(idle_worker_goes_first),
	KUNIT_CASE(busy_workers_take_turns),
	KUNIT_CASE(worker_beyond_the_number_is_not_picked),
	KUNIT_CASE(single_worker_gets_every_wakeup),
	KUNIT_CASE(shutdown_waits_for_every_worker),
	KUNIT_CASE(workers_are_for_block_devices),
	KUNIT_CASE(second_worker_needs_a_filesystem_with_contexts),
	KUNIT_CASE(larger_number_counts_in_the_midst_of_work),
	KUNIT_CASE(only_who_says_so_counts_as_running),
	KUNIT_CASE(sync_covers_an_inode_that_moves_in_as_it_begins),
	{}
};

static struct kunit_suite bdi_wb_workers_suite = {
	.name = "bdi_wb_workers",
	.test_cases = bdi_wb_workers_cases,
};

kunit_test_suite(bdi_wb_workers_suite);

MODULE_DESCRIPTION("KUnit tests of several flusher workers");
MODULE_LICENSE("GPL");
