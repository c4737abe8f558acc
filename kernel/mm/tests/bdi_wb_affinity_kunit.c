// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the affinity of inodes to writeback contexts.
 */

#include <kunit/resource.h>
#include <kunit/test.h>
#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/device.h>
#include <linux/fs.h>
#include "../bdi-writeback-ctx.h"

#define NR_CTX	4
/* what a flusher writes at least of an inode before it takes the next */
#define CHUNK	1024

struct wb_affinity_fixture {
	struct backing_dev_info *bdi;
	struct super_block sb;
	struct inode inode;
	struct inode other;
	struct device dev;
};

static unsigned int by_generation(struct inode *inode, int nr_wb_ctx)
{
	return inode->i_generation % nr_wb_ctx;
}

static int two_at_most(struct super_block *sb)
{
	return 2;
}

static const struct super_operations opinionated = {
	.get_inode_wb_ctx_idx = by_generation,
};

static const struct super_operations modest = {
	.get_inode_wb_ctx_idx = by_generation,
	.get_max_wb_ctx = two_at_most,
};

static bool always(struct inode *inode)
{
	return true;
}

static const struct super_operations allocating = {
	.get_inode_wb_ctx_idx = by_generation,
	.inode_has_delalloc = always,
};

static const struct super_operations indifferent;

static void put_bdi(void *bdi)
{
	bdi_put(bdi);
}

/* a filesystem with an opinion on four contexts, and an inode without one */
static int wb_affinity_test_init(struct kunit *test)
{
	struct wb_affinity_fixture *fixture;

	fixture = kunit_kzalloc(test, sizeof(*fixture), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, fixture);
	fixture->bdi = bdi_alloc(NUMA_NO_NODE);
	KUNIT_ASSERT_NOT_NULL(test, fixture->bdi);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, put_bdi, fixture->bdi));

	fixture->bdi->max_wb_ctx = NR_CTX;
	fixture->bdi->nr_wb_ctx = NR_CTX;
	fixture->sb.s_op = &opinionated;
	fixture->sb.s_bdi = fixture->bdi;
	fixture->sb.s_min_writeback_pages = CHUNK;
	sb_enable_wb_ctx(&fixture->sb);
	for (int i = 0; i < NR_CTX; i++)
		bdi_fetch_wb_ctx(fixture->bdi, i);

	fixture->inode.i_sb = &fixture->sb;
	fixture->inode.i_ino = 9;
	fixture->inode.i_generation = 2;
	fixture->inode.i_mapping = &fixture->inode.i_data;
	fixture->inode.i_data.nrpages = CHUNK;
	INIT_LIST_HEAD(&fixture->inode.i_io_list);
	INIT_LIST_HEAD(&fixture->other.i_io_list);
	dev_set_drvdata(&fixture->dev, fixture->bdi);
	test->priv = fixture;
	return 0;
}

static struct bdi_writeback *wb_of(struct kunit *test, unsigned int index)
{
	struct wb_affinity_fixture *fixture = test->priv;

	return &bdi_wb_ctx(fixture->bdi, index)->wb;
}

static void set_affinity(struct kunit *test, enum wb_affinity affinity)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->bdi->wb_affinity = affinity;
}

/* attach the inode, and queue it and another one for I/O */
static void queue_both(struct kunit *test, unsigned int index)
{
	struct wb_affinity_fixture *fixture = test->priv;
	struct bdi_writeback *wb = wb_of(test, index);

	fixture->inode.i_wb = wb;
	list_add(&fixture->inode.i_io_list, &wb->b_io);
	list_add(&fixture->other.i_io_list, &wb->b_io);
	set_bit(WB_has_dirty_io, &wb->state);
}

static void dequeue_both(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	list_del_init(&fixture->inode.i_io_list);
	list_del_init(&fixture->other.i_io_list);
	for (int i = 0; i < NR_CTX; i++)
		clear_bit(WB_has_dirty_io, &wb_of(test, i)->state);
}

/* index of the context that the inode moves to, -1 if it stays */
static int next(struct kunit *test, bool pressure)
{
	struct wb_affinity_fixture *fixture = test->priv;
	struct bdi_writeback_ctx *ctx;

	ctx = wb_affinity_next_ctx(&fixture->inode, fixture->inode.i_wb,
				   pressure);
	return ctx ? ctx->index : -1;
}

/* index of the context that the inode goes to unwritten, -1 if it stays */
static int handover(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;
	struct bdi_writeback_ctx *ctx;

	ctx = wb_affinity_handover_ctx(&fixture->inode, fixture->inode.i_wb);
	return ctx ? ctx->index : -1;
}

static void filesystem_decides(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	KUNIT_EXPECT_EQ(test, 2, wb_affinity_index(&fixture->inode));
}

static void inode_number_decides_otherwise(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->sb.s_op = &indifferent;
	KUNIT_EXPECT_EQ(test, 1, wb_affinity_index(&fixture->inode));
}

static void filesystem_limits_the_contexts(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->sb.s_op = &modest;
	KUNIT_EXPECT_EQ(test, 0, wb_affinity_index(&fixture->inode));
	fixture->inode.i_wb = wb_of(test, 3);
	KUNIT_EXPECT_EQ(test, 0, wb_affinity_index(&fixture->inode));
	set_affinity(test, WB_AFFINITY_INO);
	fixture->inode.i_ino = 11;
	KUNIT_EXPECT_EQ(test, 3, wb_affinity_index(&fixture->inode));
}

static void attached_inode_stays(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->inode.i_wb = wb_of(test, 3);
	KUNIT_EXPECT_EQ(test, 3, wb_affinity_index(&fixture->inode));
	set_affinity(test, WB_AFFINITY_LEAST_LOADED);
	KUNIT_EXPECT_EQ(test, 3, wb_affinity_index(&fixture->inode));
	set_affinity(test, WB_AFFINITY_ROTOR);
	KUNIT_EXPECT_EQ(test, 3, wb_affinity_index(&fixture->inode));
	fixture->bdi->nr_wb_ctx = 3;
	KUNIT_EXPECT_GT(test, 3, wb_affinity_index(&fixture->inode));
}

static void number_holds_wherever_the_inode_is(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	set_affinity(test, WB_AFFINITY_INO);
	KUNIT_EXPECT_EQ(test, 1, wb_affinity_index(&fixture->inode));
	queue_both(test, 3);
	KUNIT_EXPECT_EQ(test, 1, next(test, false));
	dequeue_both(test);
	queue_both(test, 1);
	KUNIT_EXPECT_EQ(test, -1, next(test, true));
	dequeue_both(test);
}

static void rotor_takes_turns(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;
	unsigned int first;

	set_affinity(test, WB_AFFINITY_ROTOR);
	first = wb_affinity_index(&fixture->inode);
	for (int i = 1; i <= NR_CTX; i++)
		KUNIT_EXPECT_EQ(test, (first + i) % NR_CTX,
				wb_affinity_index(&fixture->inode));
}

static void least_loaded_is_found(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	set_affinity(test, WB_AFFINITY_LEAST_LOADED);
	for (int i = 0; i < NR_CTX; i++) {
		wb_dirty_io_start(wb_of(test, i));
		if (i != 1)
			set_bit(WB_writeback_running, &wb_of(test, i)->state);
	}
	KUNIT_EXPECT_EQ(test, 1, wb_affinity_index(&fixture->inode));

	clear_bit(WB_writeback_running, &wb_of(test, 3)->state);
	wb_dirty_io_end(wb_of(test, 3));
	KUNIT_EXPECT_EQ(test, 3, wb_affinity_index(&fixture->inode));

	wb_dirty_io_start(wb_of(test, 3));
	for (int i = 0; i < NR_CTX; i++) {
		clear_bit(WB_writeback_running, &wb_of(test, i)->state);
		wb_dirty_io_end(wb_of(test, i));
	}
}

/* with all writers in cgroups nothing is dirty in the root's writebacks */
static void least_loaded_counts_cgroups(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;
	struct bdi_writeback *cgwb;

	cgwb = kunit_kcalloc(test, NR_CTX, sizeof(*cgwb), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cgwb);
	set_affinity(test, WB_AFFINITY_LEAST_LOADED);
	for (int i = 0; i < NR_CTX; i++) {
		wb_init_ctx(&cgwb[i], bdi_wb_ctx(fixture->bdi, i), &cgwb[0]);
		if (i != 2)
			wb_dirty_io_start(&cgwb[i]);
	}
	for (int i = 0; i < NR_CTX; i++)
		KUNIT_EXPECT_EQ(test, 2, wb_affinity_index(&fixture->inode));

	for (int i = 0; i < NR_CTX; i++)
		if (i != 2)
			wb_dirty_io_end(&cgwb[i]);
}

static void context_with_a_backlog_hands_over_to_an_idle_one(struct kunit *test)
{
	queue_both(test, 2);
	KUNIT_EXPECT_EQ(test, -1, next(test, false));
	/* counted from the place that the filesystem wants, which is busy */
	KUNIT_EXPECT_EQ(test, 3, next(test, true));
	set_bit(WB_has_dirty_io, &wb_of(test, 3)->state);
	KUNIT_EXPECT_EQ(test, 0, next(test, true));
	dequeue_both(test);
}

static void only_inode_of_a_context_stays(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	queue_both(test, 0);
	list_del_init(&fixture->other.i_io_list);
	KUNIT_EXPECT_EQ(test, -1, next(test, true));
	dequeue_both(test);
}

/* a sibling of the worker that writes it has put it there */
static void only_inode_of_the_other_list_stays(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;
	struct bdi_writeback *wb = wb_of(test, 0);

	queue_both(test, 0);
	list_del_init(&fixture->other.i_io_list);
	list_move(&fixture->inode.i_io_list, &wb->b_more_io);
	KUNIT_EXPECT_FALSE(test, wb_has_backlog(wb));
	KUNIT_EXPECT_EQ(test, -1, next(test, true));

	list_add(&fixture->other.i_io_list, &wb->b_more_io);
	KUNIT_EXPECT_TRUE(test, wb_has_backlog(wb));
	list_move(&fixture->other.i_io_list, &wb->b_io);
	KUNIT_EXPECT_TRUE(test, wb_has_backlog(wb));
	dequeue_both(test);
}

static void misplaced_inode_goes_home_when_all_are_busy(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	queue_both(test, 0);
	for (int i = 0; i < NR_CTX; i++)
		set_bit(WB_has_dirty_io, &wb_of(test, i)->state);
	KUNIT_EXPECT_EQ(test, 2, next(test, true));
	list_del_init(&fixture->inode.i_io_list);
	list_del_init(&fixture->other.i_io_list);
	queue_both(test, 2);
	KUNIT_EXPECT_EQ(test, -1, next(test, true));
	dequeue_both(test);
}

static void large_inode_leaves_home_unwritten(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	queue_both(test, 2);
	KUNIT_EXPECT_EQ(test, 3, handover(test));
	set_bit(WB_has_dirty_io, &wb_of(test, 3)->state);
	KUNIT_EXPECT_EQ(test, 0, handover(test));
	fixture->inode.i_data.nrpages = CHUNK - 1;
	KUNIT_EXPECT_EQ(test, -1, handover(test));
	dequeue_both(test);
}

static void large_inode_stays_unwritten(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	/* where nobody is idle */
	queue_both(test, 2);
	for (int i = 0; i < NR_CTX; i++)
		set_bit(WB_has_dirty_io, &wb_of(test, i)->state);
	KUNIT_EXPECT_EQ(test, -1, handover(test));
	dequeue_both(test);

	/* where no other inode is queued */
	queue_both(test, 2);
	list_del_init(&fixture->other.i_io_list);
	KUNIT_EXPECT_EQ(test, -1, handover(test));
	dequeue_both(test);

	/* away from home: it would be on the move for ever */
	queue_both(test, 1);
	KUNIT_EXPECT_EQ(test, -1, handover(test));
	dequeue_both(test);

	/* where the filesystem is not asked */
	set_affinity(test, WB_AFFINITY_INO);
	queue_both(test, 2);
	KUNIT_EXPECT_EQ(test, -1, handover(test));
	set_affinity(test, WB_AFFINITY_ROTOR);
	KUNIT_EXPECT_EQ(test, -1, handover(test));
	dequeue_both(test);

	/* on a filesystem without contexts */
	set_affinity(test, WB_AFFINITY_FS);
	fixture->sb.s_iflags &= ~SB_I_WB_CTX;
	queue_both(test, 2);
	KUNIT_EXPECT_EQ(test, -1, handover(test));
	dequeue_both(test);
}

static bool is_misplaced(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	return wb_affinity_is_misplaced(&fixture->inode, fixture->inode.i_wb);
}

static void inode_without_blocks_stays_home(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->sb.s_op = &allocating;
	queue_both(test, 2);
	KUNIT_EXPECT_FALSE(test, is_misplaced(test));
	KUNIT_EXPECT_EQ(test, -1, handover(test));
	KUNIT_EXPECT_EQ(test, -1, next(test, true));
	dequeue_both(test);
}

static void inode_without_blocks_goes_home_unwritten(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	/* also where others are idle, and no other inode is queued */
	fixture->sb.s_op = &allocating;
	queue_both(test, 1);
	list_del_init(&fixture->other.i_io_list);
	KUNIT_EXPECT_TRUE(test, is_misplaced(test));
	KUNIT_EXPECT_EQ(test, 2, handover(test));
	KUNIT_EXPECT_EQ(test, -1, next(test, true));

	/* with all of its blocks it has time */
	fixture->sb.s_op = &opinionated;
	KUNIT_EXPECT_FALSE(test, is_misplaced(test));
	KUNIT_EXPECT_EQ(test, -1, handover(test));
	dequeue_both(test);
}

static void inode_without_blocks_moves_where_places_do_not_count(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->sb.s_op = &allocating;
	set_affinity(test, WB_AFFINITY_ROTOR);
	queue_both(test, 1);
	KUNIT_EXPECT_FALSE(test, is_misplaced(test));
	KUNIT_EXPECT_EQ(test, -1, handover(test));
	KUNIT_EXPECT_EQ(test, 2, next(test, true));
	set_bit(WB_has_dirty_io, &wb_of(test, 2)->state);
	KUNIT_EXPECT_EQ(test, 3, next(test, true));
	dequeue_both(test);
}

static void handing_over_stays_within_the_limit(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->sb.s_op = &modest;
	queue_both(test, 0);
	set_bit(WB_has_dirty_io, &wb_of(test, 1)->state);
	KUNIT_EXPECT_EQ(test, -1, next(test, true));
	dequeue_both(test);
}

static void filesystem_without_contexts_is_left_alone(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->sb.s_iflags &= ~SB_I_WB_CTX;
	queue_both(test, 0);
	KUNIT_EXPECT_EQ(test, -1, next(test, true));
	dequeue_both(test);
}

static void policy_is_shown_and_set(struct kunit *test)
{
	bool extra = IS_ENABLED(CONFIG_BDI_WRITEBACK_EXTRA_POLICIES);
	struct wb_affinity_fixture *fixture = test->priv;
	struct device_attribute *attr = &dev_attr_wb_affinity;
	char *page = (char *)get_zeroed_page(GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	attr->show(&fixture->dev, attr, page);
	KUNIT_EXPECT_STREQ(test, page, extra ? "[fs] ino rotor least-loaded\n" :
					       "[fs] ino\n");
	KUNIT_EXPECT_EQ(test, extra ? 6 : -EINVAL,
			attr->store(&fixture->dev, attr, "rotor\n", 6));
	KUNIT_EXPECT_EQ(test, 4, attr->store(&fixture->dev, attr, "ino\n", 4));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			attr->store(&fixture->dev, attr, "random", 6));
	KUNIT_EXPECT_EQ(test, -EINVAL, attr->store(&fixture->dev, attr, "", 0));
	attr->show(&fixture->dev, attr, page);
	KUNIT_EXPECT_STREQ(test, page, extra ? "fs [ino] rotor least-loaded\n" :
					       "fs [ino]\n");
	free_page((unsigned long)page);
}

static struct kunit_case wb_affinity_test_cases[] = {
	KUNIT_CASE(filesystem_decides),
	KUNIT_CASE(inode_number_decides_otherwise),
	KUNIT_CASE(filesystem_limits_the_contexts),
	KUNIT_CASE(attached_inode_stays),
	KUNIT_CASE(number_holds_wherever_the_inode_is),
	KUNIT_CASE(rotor_takes_turns),
	KUNIT_CASE(least_loaded_is_found),
	KUNIT_CASE(least_loaded_counts_cgroups),
	KUNIT_CASE(context_with_a_backlog_hands_over_to_an_idle_one),
	KUNIT_CASE(only_inode_of_a_context_stays),
	KUNIT_CASE(only_inode_of_the_other_list_stays),
	KUNIT_CASE(misplaced_inode_goes_home_when_all_are_busy),
	KUNIT_CASE(large_inode_leaves_home_unwritten),
	KUNIT_CASE(inode_without_blocks_stays_home),
	KUNIT_CASE(inode_without_blocks_goes_home_unwritten),
	KUNIT_CASE(inode_without_blocks_moves_where_places_do_not_count),
	KUNIT_CASE(large_inode_stays_unwritten),
	KUNIT_CASE(handing_over_stays_within_the_limit),
	KUNIT_CASE(filesystem_without_contexts_is_left_alone),
	KUNIT_CASE(policy_is_shown_and_set),
	{}
};

static struct kunit_suite wb_affinity_test_suite = {
	.name = "bdi_wb_affinity",
	.init = wb_affinity_test_init,
	.test_cases = wb_affinity_test_cases,
};

kunit_test_suite(wb_affinity_test_suite);

MODULE_DESCRIPTION("KUnit tests of the affinity of inodes to contexts");
MODULE_LICENSE("GPL");
