// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the choice among several flusher workers.
 */

#include <kunit/test.h>
#include <linux/bdi-wb-workers.h>

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

static struct kunit_case bdi_wb_workers_cases[] = {
	KUNIT_CASE(idle_worker_goes_first),
	KUNIT_CASE(busy_workers_take_turns),
	KUNIT_CASE(worker_beyond_the_number_is_not_picked),
	KUNIT_CASE(single_worker_gets_every_wakeup),
	{}
};

static struct kunit_suite bdi_wb_workers_suite = {
	.name = "bdi_wb_workers",
	.test_cases = bdi_wb_workers_cases,
};

kunit_test_suite(bdi_wb_workers_suite);

MODULE_DESCRIPTION("KUnit tests of several flusher workers");
MODULE_LICENSE("GPL");
