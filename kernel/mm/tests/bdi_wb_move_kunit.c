// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of which writeback context an inode moves to.
 */

#include "../bdi-writeback-ctx.h"
#include "bdi_wb_affinity_fixture.h"

static bool always(struct inode *inode)
{
	return true;
}

static const struct super_operations allocating = {
	.get_inode_wb_ctx_idx = by_generation,
	.inode_has_delalloc = always,
};

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

static bool is_misplaced(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	return wb_affinity_is_misplaced(&fixture->inode, fixture->inode.i_wb);
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

static void one_context_asks_nobody(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->sb.s_op = &unasked;
	fixture->bdi->nr_wb_ctx = 1;
	queue_both(test, 0);
	KUNIT_EXPECT_EQ(test, -1, next(test, true));
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
	KUNIT_EXPECT_EQ(test, -1, handover(test));
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

static struct kunit_case wb_move_test_cases[] = {
	KUNIT_CASE(number_holds_wherever_the_inode_is),
	KUNIT_CASE(context_with_a_backlog_hands_over_to_an_idle_one),
	KUNIT_CASE(one_context_asks_nobody),
	KUNIT_CASE(only_inode_of_a_context_stays),
	KUNIT_CASE(only_inode_of_the_other_list_stays),
	KUNIT_CASE(misplaced_inode_goes_home_when_all_are_busy),
	KUNIT_CASE(large_inode_leaves_home_unwritten),
	KUNIT_CASE(large_inode_stays_unwritten),
	KUNIT_CASE(inode_without_blocks_stays_home),
	KUNIT_CASE(inode_without_blocks_goes_home_unwritten),
	KUNIT_CASE(inode_without_blocks_moves_where_places_do_not_count),
	KUNIT_CASE(handing_over_stays_within_the_limit),
	KUNIT_CASE(filesystem_without_contexts_is_left_alone),
	{}
};

static struct kunit_suite wb_move_test_suite = {
	.name = "bdi_wb_move",
	.init = wb_affinity_test_init,
	.test_cases = wb_move_test_cases,
};

kunit_test_suite(wb_move_test_suite);

MODULE_DESCRIPTION("KUnit tests of how inodes move between contexts");
MODULE_LICENSE("GPL");
