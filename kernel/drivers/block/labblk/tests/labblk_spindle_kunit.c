// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the rotating disk: how long an access takes, and which is next.
 */

#include <kunit/test.h>
#include <linux/time64.h>
#include "../spindle.h"

/* 7200 rpm, a track of 1 MiB, 1 GiB */
#define RPM		7200
#define TRACK_KIB	1024
#define TRACK_PAGES	256
#define PAGES		(1024 * TRACK_PAGES)
#define SEEK_MIN_NS	1000000
#define SEEK_MAX_NS	16000000
#define NR_RANDOM	20000

static struct labblk_geometry disk(void)
{
	return labblk_geometry(RPM, TRACK_KIB, PAGES, SEEK_MIN_NS, SEEK_MAX_NS);
}

static void seek_grows_with_the_root_of_the_way(struct kunit *test)
{
	struct labblk_geometry geometry = disk();

	KUNIT_EXPECT_EQ(test, 0, labblk_seek_ns(&geometry, 0));
	KUNIT_EXPECT_EQ(test, SEEK_MAX_NS, labblk_seek_ns(&geometry, 1024));
	/* a quarter of the way takes half as long beyond the least */
	KUNIT_EXPECT_EQ(test, SEEK_MIN_NS + (SEEK_MAX_NS - SEEK_MIN_NS) / 2,
			labblk_seek_ns(&geometry, 256));

	/* as many tracks as there can be: 16 TiB, a page each */
	geometry = labblk_geometry(RPM, 4, 1ULL << 32, SEEK_MIN_NS, SEEK_MAX_NS);
	KUNIT_EXPECT_EQ(test, SEEK_MAX_NS,
			labblk_seek_ns(&geometry, 1ULL << 32));
}

static void page_comes_by_once_a_turn(struct kunit *test)
{
	struct labblk_geometry geometry = disk();
	u64 end_ns, track = 0;

	end_ns = labblk_access_end_ns(&geometry, &track, 0, 1, 0);
	KUNIT_EXPECT_EQ(test, geometry.page_ns, end_ns);
	/* the next one follows at once, the same one only after a turn */
	KUNIT_EXPECT_EQ(test, 2 * geometry.page_ns,
			labblk_access_end_ns(&geometry, &track, 1, 1, end_ns));
	KUNIT_EXPECT_EQ(test, geometry.revolution_ns + geometry.page_ns,
			labblk_access_end_ns(&geometry, &track, 0, 1, end_ns));
}

static void reading_on_loses_no_turn(struct kunit *test)
{
	struct labblk_geometry geometry = disk();
	u64 track = 0;

	KUNIT_EXPECT_EQ(test, 4 * geometry.revolution_ns +
			      3 * labblk_seek_ns(&geometry, 1),
			labblk_access_end_ns(&geometry, &track, 0,
					     4 * TRACK_PAGES, 0));
	KUNIT_EXPECT_EQ(test, 3, track);
}

/* xorshift, so that every run is the same */
static u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void random_pages_take_as_long_as_the_formula_says(struct kunit *test)
{
	struct labblk_geometry geometry = disk();
	u64 now_ns = 0, track = 0, state = 88172645463325252ULL;
	u64 expected_ns = SEEK_MIN_NS + (SEEK_MAX_NS - SEEK_MIN_NS) * 8 / 15 +
			  geometry.revolution_ns / 2 + geometry.page_ns;
	u64 mean_ns;

	for (int i = 0; i < NR_RANDOM; i++)
		now_ns = labblk_access_end_ns(&geometry, &track,
					      next_random(&state) % PAGES, 1,
					      now_ns);
	mean_ns = now_ns / NR_RANDOM;
	/* within a percent */
	KUNIT_EXPECT_LT(test, abs_diff(mean_ns, expected_ns), expected_ns / 100);
}

static void nothing(struct labblk_access *access)
{
}

static void stop_spindle(void *spindle)
{
	labblk_spindle_stop(spindle);
}

static struct labblk_spindle *new_spindle(struct kunit *test)
{
	struct labblk_geometry geometry = disk();
	struct labblk_spindle *spindle;

	spindle = kunit_kzalloc(test, sizeof(*spindle), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, spindle);
	labblk_spindle_init(spindle, &geometry, nothing);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, stop_spindle, spindle));
	return spindle;
}

static void nearest_access_is_next(struct kunit *test)
{
	struct labblk_access far = { .page = PAGES - 1, .nr_pages = 1 };
	struct labblk_access near = { .page = 8, .nr_pages = 1 };
	struct labblk_spindle *spindle = new_spindle(test);

	list_add_tail(&far.list, &spindle->waiting);
	list_add_tail(&near.list, &spindle->waiting);
	KUNIT_EXPECT_PTR_EQ(test, &near, labblk_spindle_choose(spindle, 0));
	KUNIT_EXPECT_PTR_EQ(test, &far, labblk_spindle_choose(spindle, 0));
	KUNIT_EXPECT_NULL(test, labblk_spindle_choose(spindle, 0));
	KUNIT_EXPECT_EQ(test, 1, far.overtaken);
	KUNIT_EXPECT_EQ(test, 0, near.overtaken);
}

static void nobody_is_overtaken_for_ever(struct kunit *test)
{
	struct labblk_access far = { .page = PAGES - 1, .nr_pages = 1 };
	struct labblk_access near = { .page = 8, .nr_pages = 1 };
	struct labblk_spindle *spindle = new_spindle(test);
	struct labblk_access *chosen;
	int turns = 0;

	list_add_tail(&far.list, &spindle->waiting);
	do {
		list_add_tail(&near.list, &spindle->waiting);
		chosen = labblk_spindle_choose(spindle, 0);
	} while (chosen == &near && ++turns < 1000);
	KUNIT_EXPECT_EQ(test, 32, turns);
}

static struct kunit_case spindle_test_cases[] = {
	KUNIT_CASE(seek_grows_with_the_root_of_the_way),
	KUNIT_CASE(page_comes_by_once_a_turn),
	KUNIT_CASE(reading_on_loses_no_turn),
	KUNIT_CASE(random_pages_take_as_long_as_the_formula_says),
	KUNIT_CASE(nearest_access_is_next),
	KUNIT_CASE(nobody_is_overtaken_for_ever),
	{}
};

static struct kunit_suite spindle_test_suite = {
	.name = "labblk_spindle",
	.test_cases = spindle_test_cases,
};

kunit_test_suite(spindle_test_suite);

MODULE_DESCRIPTION("KUnit tests of the rotating disk");
MODULE_LICENSE("GPL");
