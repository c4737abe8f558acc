// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of how the number of writeback contexts of a BDI changes.
 */

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/rwsem.h>
#include "../../fs/fs-writeback.h"
#include "bdi_wb_fixture.h"

static int set_nwritebacks(struct wb_ctx_fixture *fixture, const char *text)
{
	return dev_attr_nwritebacks.store(&fixture->dev, &dev_attr_nwritebacks,
					  text, strlen(text));
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

static void dirty_in(struct inode *inode, struct bdi_writeback *wb)
{
	spin_lock_init(&inode->i_lock);
	INIT_LIST_HEAD(&inode->i_io_list);
	inode->i_wb = wb;
	spin_lock(&wb->list_lock);
	spin_lock(&inode->i_lock);
	inode_io_list_move_locked(inode, wb, &wb->b_dirty);
	spin_unlock(&inode->i_lock);
	spin_unlock(&wb->list_lock);
}

/* the oldest are at one end, where a flusher looks for what is due */
static void moved_inode_leaves_its_new_list_sorted_by_age(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct inode *inode = &fixture->inode, *other;
	struct bdi_writeback *old, *new;

	other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, other);
	enable(test, 2);
	old = &bdi_wb_ctx(fixture->bdi, 0)->wb;
	new = &bdi_wb_ctx(fixture->bdi, 1)->wb;
	other->i_sb = inode->i_sb;
	other->dirtied_when = jiffies;
	inode->dirtied_when = other->dirtied_when - HZ;
	dirty_in(inode, old);
	dirty_in(other, new);

	spin_lock(&old->list_lock);
	KUNIT_EXPECT_PTR_EQ(test, new,
			    inode_move_to_wb_ctx(inode, old, new->ctx));
	KUNIT_EXPECT_PTR_EQ(test, &inode->i_io_list, new->b_dirty.next);
	KUNIT_EXPECT_FALSE(test, time_before(inode->dirtied_when,
					     other->dirtied_when));

	list_del_init(&inode->i_io_list);
	list_del_init(&other->i_io_list);
	wb_io_lists_depopulated(new);
	spin_unlock(&new->list_lock);
}

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

static struct kunit_case wb_number_test_cases[] = {
	KUNIT_CASE(new_number_counts_at_once),
	KUNIT_CASE(moved_inode_leaves_its_new_list_sorted_by_age),
	KUNIT_CASE(sync_covers_a_context_that_comes_meanwhile),
	KUNIT_CASE(bad_nwritebacks_changes_nothing),
	{}
};

static struct kunit_suite wb_number_test_suite = {
	.name = "bdi_wb_number",
	.init = wb_ctx_test_init,
	.test_cases = wb_number_test_cases,
};

kunit_test_suite(wb_number_test_suite);

MODULE_DESCRIPTION("KUnit tests of the number of writeback contexts");
MODULE_LICENSE("GPL");
