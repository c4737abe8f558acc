// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of when a command ends.
 */

#include <kunit/test.h>
#include "../labblk.h"

#define READ_NS		1000
#define WRITE_NS	3000
#define NOW_NS		1000000

static void free_timing(void *timing)
{
	labblk_timing_free(timing);
}

static struct labblk_timing *new_timing(struct kunit *test,
					unsigned int channels,
					unsigned int stripe_kib)
{
	struct labblk_timing *timing;

	timing = kunit_kzalloc(test, sizeof(*timing), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, timing);
	KUNIT_ASSERT_EQ(test, 0,
			labblk_timing_init(timing, channels, stripe_kib));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, free_timing, timing));
	return timing;
}

/* Serve whole pages and return how long that takes from NOW_NS on. */
static u64 serve(struct labblk_timing *timing, u64 page_ns, u64 page,
		 unsigned int nr_pages)
{
	return labblk_timing_serve(timing, NOW_NS, page_ns,
				   page * PAGE_SECTORS,
				   nr_pages * PAGE_SECTORS) - NOW_NS;
}

static void one_channel_serves_one_page_after_the_other(struct kunit *test)
{
	struct labblk_timing *timing = new_timing(test, 1, 4);

	KUNIT_EXPECT_EQ(test, 1000, serve(timing, READ_NS, 0, 1));
	KUNIT_EXPECT_EQ(test, 3000, serve(timing, READ_NS, 7, 2));
	KUNIT_EXPECT_EQ(test, 4000, serve(timing, READ_NS, 0, 1));
}

static void idle_channel_starts_at_once(struct kunit *test)
{
	struct labblk_timing *timing = new_timing(test, 1, 4);
	u64 later_ns = NOW_NS + 10 * READ_NS;

	serve(timing, READ_NS, 0, 1);
	KUNIT_EXPECT_EQ(test, later_ns + READ_NS,
			labblk_timing_serve(timing, later_ns, READ_NS, 0, 8));
}

static void channels_work_side_by_side(struct kunit *test)
{
	struct labblk_timing *timing = new_timing(test, 4, 4);

	KUNIT_EXPECT_EQ(test, 1000, serve(timing, READ_NS, 0, 4));
	KUNIT_EXPECT_EQ(test, 2000, serve(timing, READ_NS, 2, 1));
	KUNIT_EXPECT_EQ(test, 2000, serve(timing, READ_NS, 5, 1));
	KUNIT_EXPECT_EQ(test, 2000, serve(timing, READ_NS, 3, 1));
}

static void command_ends_with_its_last_page(struct kunit *test)
{
	struct labblk_timing *timing = new_timing(test, 4, 4);

	/* Five pages on four channels: the first channel gets two of them. */
	KUNIT_EXPECT_EQ(test, 2000, serve(timing, READ_NS, 0, 5));
	KUNIT_EXPECT_EQ(test, 3000, serve(timing, READ_NS, 0, 1));
	KUNIT_EXPECT_EQ(test, 2000, serve(timing, READ_NS, 1, 1));
}

static void stripe_stays_on_one_channel(struct kunit *test)
{
	struct labblk_timing *timing = new_timing(test, 2, 8);

	KUNIT_EXPECT_EQ(test, 2000, serve(timing, READ_NS, 0, 2));
	KUNIT_EXPECT_EQ(test, 1000, serve(timing, READ_NS, 2, 1));
	KUNIT_EXPECT_EQ(test, 2000, serve(timing, READ_NS, 3, 1));
	KUNIT_EXPECT_EQ(test, 3000, serve(timing, READ_NS, 4, 1));
}

static void part_of_a_page_takes_as_long_as_a_page(struct kunit *test)
{
	struct labblk_timing *timing = new_timing(test, 1, 4);
	u64 end_ns;

	end_ns = labblk_timing_serve(timing, NOW_NS, READ_NS, 3, 1);
	KUNIT_EXPECT_EQ(test, NOW_NS + READ_NS, end_ns);
	/* The last sector of a page and the first one of the next. */
	end_ns = labblk_timing_serve(timing, NOW_NS, READ_NS, 7, 2);
	KUNIT_EXPECT_EQ(test, NOW_NS + 3 * READ_NS, end_ns);
}

static void reads_and_writes_share_a_channel(struct kunit *test)
{
	struct labblk_timing *timing = new_timing(test, 1, 4);

	KUNIT_EXPECT_EQ(test, 3000, serve(timing, WRITE_NS, 0, 1));
	KUNIT_EXPECT_EQ(test, 4000, serve(timing, READ_NS, 0, 1));
	KUNIT_EXPECT_EQ(test, 7000, serve(timing, WRITE_NS, 0, 1));
}

static void no_time_ends_at_once(struct kunit *test)
{
	struct labblk_timing *timing = new_timing(test, 1, 4);

	KUNIT_EXPECT_EQ(test, 0, serve(timing, 0, 0, 1));
	KUNIT_EXPECT_EQ(test, 0, serve(timing, 0, 0, 256));
}

static void service_begins_when_submission_is_over(struct kunit *test)
{
	struct labblk_timing *timing = new_timing(test, 1, 4);
	u64 submit_ns = 100 * READ_NS;
	u64 end_ns;

	/* Two tasks that slept for their submission at the same time. */
	end_ns = labblk_timing_serve(timing, NOW_NS + submit_ns, READ_NS, 0, 8);
	KUNIT_EXPECT_EQ(test, NOW_NS + submit_ns + READ_NS, end_ns);
	end_ns = labblk_timing_serve(timing, NOW_NS + submit_ns, READ_NS, 0, 8);
	KUNIT_EXPECT_EQ(test, NOW_NS + submit_ns + 2 * READ_NS, end_ns);
}

static struct kunit_case labblk_timing_test_cases[] = {
	KUNIT_CASE(one_channel_serves_one_page_after_the_other),
	KUNIT_CASE(idle_channel_starts_at_once),
	KUNIT_CASE(channels_work_side_by_side),
	KUNIT_CASE(command_ends_with_its_last_page),
	KUNIT_CASE(stripe_stays_on_one_channel),
	KUNIT_CASE(part_of_a_page_takes_as_long_as_a_page),
	KUNIT_CASE(reads_and_writes_share_a_channel),
	KUNIT_CASE(no_time_ends_at_once),
	KUNIT_CASE(service_begins_when_submission_is_over),
	{}
};

static struct kunit_suite labblk_timing_test_suite = {
	.name = "labblk_timing",
	.test_cases = labblk_timing_test_cases,
};

kunit_test_suite(labblk_timing_test_suite);

MODULE_DESCRIPTION("KUnit tests of when a command of labblk ends");
MODULE_LICENSE("GPL");
