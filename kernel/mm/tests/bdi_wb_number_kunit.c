// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of how the number of writeback contexts of a BDI changes.
 */

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/rwsem.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include "../../fs/fs-writeback.h"
#include "bdi_wb_cgwb_fixture.h"

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

/* nobody else does, for the inode was dirty before */
static void moved_inode_wakes_the_flusher_it_goes_to(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct inode *inode = &fixture->inode;
	struct bdi_writeback *old, *new;
	bool woken;

	KUNIT_ASSERT_EQ(test, 0, bdi_register(fixture->bdi, "kunit-wb-move"));
	enable(test, 2);
	old = &bdi_wb_ctx(fixture->bdi, 0)->wb;
	dirty_in(inode, old);

	spin_lock(&old->list_lock);
	new = inode_move_to_wb_ctx(inode, old, bdi_wb_ctx(fixture->bdi, 1));
	/* queued, or at work, for as long as there is a dirty inode */
	woken = work_busy(&new->dwork.work);
	list_del_init(&inode->i_io_list);
	wb_io_lists_depopulated(new);
	spin_unlock(&new->list_lock);
	KUNIT_EXPECT_PTR_NE(test, old, new);
	KUNIT_EXPECT_TRUE(test, woken);
	bdi_unregister(fixture->bdi);
}

/* whoever switches it to another cgroup looks for it where it was */
static void inode_that_is_switched_does_not_move(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct rw_semaphore *rwsem = &fixture->bdi->wb_switch_rwsem;
	struct inode *inode = &fixture->inode;
	struct bdi_writeback *old, *wb;

	enable(test, 2);
	old = &bdi_wb_ctx(fixture->bdi, 0)->wb;
	dirty_in(inode, old);
	inode_state_assign_raw(inode, I_WB_SWITCH);

	spin_lock(&old->list_lock);
	wb = inode_move_to_wb_ctx(inode, old, bdi_wb_ctx(fixture->bdi, 1));
	list_del_init(&inode->i_io_list);
	wb_io_lists_depopulated(wb);
	spin_unlock(&wb->list_lock);
	KUNIT_EXPECT_PTR_EQ(test, old, wb);
	KUNIT_EXPECT_PTR_EQ(test, old, inode->i_wb);
	KUNIT_EXPECT_FALSE(test, rwsem_is_locked(rwsem));
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

struct late {
	struct work_struct work;
	struct bdi_writeback *throttle;
	struct bdi_writeback *found;
};

static void look_up(struct work_struct *work)
{
	struct late *late = container_of(work, struct late, work);

	late->found = wb_in_ctx(late->throttle,
				bdi_fetch_wb_ctx(late->throttle->bdi, 1));
}

/* Return whom @throttle has in context 1 if @first gets there just before. */
static struct bdi_writeback *look_up_late(struct bdi_writeback *throttle,
					  struct bdi_writeback *first)
{
	struct backing_dev_info *bdi = throttle->bdi;
	struct late late = { .throttle = throttle };

	INIT_WORK_ONSTACK(&late.work, look_up);
	spin_lock_irq(&bdi->wb_ctx_lock);
	/* the lock keeps the test on its CPU, so take another one */
	schedule_work_on(cpumask_next_wrap(raw_smp_processor_id(),
					   cpu_online_mask), &late.work);
	/* not for ever: there are kinds of spinlocks that do not tell */
	for (int i = 0; i < 500 && !spin_is_contended(&bdi->wb_ctx_lock); i++)
		mdelay(1);
	if (throttle->root) {
		bdi->wb_ctx_arr[1] = first->ctx;
		bdi->end_wb_ctx = 2;
	} else {
#ifdef CONFIG_CGROUP_WRITEBACK
		bdi_register_wb(first);
		xa_store(&throttle->ctx_wbs, 1, first, GFP_ATOMIC);
#endif
	}
	spin_unlock_irq(&bdi->wb_ctx_lock);
	flush_work(&late.work);
	destroy_work_on_stack(&late.work);
	return late.found;
}

static void context_is_created_once(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback *root = bdi_root_wb(fixture->bdi);
	struct bdi_writeback_ctx *ctx;

	enable(test, 1);
	ctx = bdi_alloc_wb_ctx(fixture->bdi, 1, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	wb_init_in_ctx(&ctx->wb, ctx, root);
	KUNIT_EXPECT_PTR_EQ(test, &ctx->wb, look_up_late(root, &ctx->wb));
}

#ifdef CONFIG_CGROUP_WRITEBACK

static void cgroup_gets_a_writeback_in_a_context_once(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct bdi_writeback *throttle, *wb = kzalloc_obj(*wb);

	KUNIT_ASSERT_NOT_NULL(test, wb);
	KUNIT_ASSERT_EQ(test, 0, bdi_register(fixture->bdi, "kunit-wb-once"));
	enable(test, 2);
	throttle = new_cgwb(test, fixture->bdi);
	wb_init_in_ctx(wb, bdi_wb_ctx(fixture->bdi, 1), throttle);
	KUNIT_EXPECT_PTR_EQ(test, wb, look_up_late(throttle, wb));
	bdi_unregister(fixture->bdi);
	free_cgwb(throttle);
}

#endif

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
	KUNIT_CASE(moved_inode_wakes_the_flusher_it_goes_to),
	KUNIT_CASE(inode_that_is_switched_does_not_move),
	KUNIT_CASE(sync_covers_a_context_that_comes_meanwhile),
	KUNIT_CASE(context_is_created_once),
#ifdef CONFIG_CGROUP_WRITEBACK
	KUNIT_CASE(cgroup_gets_a_writeback_in_a_context_once),
#endif
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
