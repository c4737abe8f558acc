// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the writeback contexts: arithmetic and lifetime.
 */

#include <linux/cpumask.h>
#include <linux/rcupdate.h>
#include "../../fs/fs-writeback.h"
#include "bdi_wb_fixture.h"

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

static void block_device_may_have_contexts(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;

	bdi_enable_wb_ctx(fixture->bdi);
	KUNIT_EXPECT_EQ(test, 1, fixture->bdi->nr_wb_ctx);
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

static void filesystem_that_does_not_ask_has_one_context(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;

	bdi_enable_wb_ctx(fixture->bdi);
	KUNIT_EXPECT_EQ(test, 0, fetch(test, 7)->index);
	KUNIT_EXPECT_EQ(test, 1, count_contexts(fixture->bdi));
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

/* or the next file with its memory would be in a device that may be gone */
static void freed_inode_is_in_no_writeback(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct inode *inode = &fixture->inode;

	inode->i_wb = bdi_root_wb(fixture->bdi);
	inode_state_assign_raw(inode, I_CLEAR);
	inode_detach_wb(inode);
	KUNIT_EXPECT_NULL(test, inode->i_wb);
}

#ifdef CONFIG_CGROUP_WRITEBACK

static struct bdi_writeback *wb_of(struct kunit *test, int index)
{
	struct wb_ctx_fixture *fixture = test->priv;

	return &bdi_wb_ctx(fixture->bdi, index)->wb;
}

static void work_of_a_cgroup_is_for_its_dirty_contexts(struct kunit *test)
{
	struct wb_ctx_fixture *fixture = test->priv;
	struct wb_writeback_work *work = kzalloc_obj(*work), *next;

	KUNIT_ASSERT_NOT_NULL(test, work);
	work->auto_free = 1;
	enable(test, 4);
	for (int i = 0; i < 4; i++) {
		/* what is queued stays so */
		disable_delayed_work_sync(&wb_of(test, i)->dwork);
		set_bit(WB_registered, &wb_of(test, i)->state);
	}
	set_bit(WB_has_dirty_io, &wb_of(test, 2)->state);
	throttle_queue_work(bdi_root_wb(fixture->bdi), work);
	for (int i = 0; i < 4; i++) {
		struct bdi_writeback *wb = wb_of(test, i);

		KUNIT_EXPECT_EQ(test, i == 0 || i == 2,
				list_count_nodes(&wb->work_list));
		list_for_each_entry_safe(work, next, &wb->work_list, list) {
			list_del(&work->list);
			kfree(work);
		}
		clear_bit(WB_registered, &wb->state);
	}
	clear_bit(WB_has_dirty_io, &wb_of(test, 2)->state);
}

#endif

static struct kunit_case wb_ctx_test_cases[] = {
	KUNIT_CASE(index_is_in_range_and_even),
	KUNIT_CASE(new_bdi_has_one_context),
	KUNIT_CASE(block_device_may_have_contexts),
	KUNIT_CASE(context_comes_with_its_first_inode),
	KUNIT_CASE(filesystem_that_does_not_ask_has_one_context),
	KUNIT_CASE(registration_reaches_every_context),
	KUNIT_CASE(freed_inode_is_in_no_writeback),
#ifdef CONFIG_CGROUP_WRITEBACK
	KUNIT_CASE(work_of_a_cgroup_is_for_its_dirty_contexts),
#endif
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
