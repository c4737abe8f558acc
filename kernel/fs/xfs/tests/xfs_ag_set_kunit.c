// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the AGs that files with and without a stream go to.
 */

#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include "../xfs_ag_set.h"

#define MAX_AGS		24
#define MAX_STREAMS	9
#define MANY_AGS	1000000U
#define MOST_STREAMS	255U

/* how many streams have each AG, and how many AGs the largest and smallest */
struct shares {
	u32 owners[MAX_AGS];
	u32 least;
	u32 most;
};

struct geometry {
	u32 agcount;
	u32 mounted;
	u32 nr_streams;
};

/* every filesystem that was mounted with so many AGs and has so many now */
static bool next_geometry(struct geometry *geometry)
{
	if (geometry->nr_streams++ < MAX_STREAMS)
		return true;
	geometry->nr_streams = 1;
	if (geometry->mounted++ < MAX_AGS)
		return true;
	geometry->mounted = 1;
	return geometry->agcount++ < MAX_AGS;
}

static const struct geometry first_geometry = { .agcount = 1, .mounted = 1 };

static void share(struct kunit *test, struct shares *shares,
		  const struct geometry *geometry)
{
	memset(shares, 0, sizeof(*shares));
	shares->least = U32_MAX;
	for (u32 stream = 1; stream <= geometry->nr_streams; stream++) {
		struct xfs_ag_set set;

		xfs_ag_set_of_stream(&set, geometry->agcount,
				     geometry->mounted, geometry->nr_streams,
				     stream);
		for (u32 n = 0; n < set.nr; n++) {
			u32 agno = xfs_ag_set_nth(&set, n);

			KUNIT_ASSERT_LT(test, agno, geometry->agcount);
			KUNIT_EXPECT_TRUE(test, xfs_ag_set_has(&set, agno));
			shares->owners[agno]++;
		}
		shares->least = min(shares->least, set.nr);
		shares->most = max(shares->most, set.nr);
	}
}

static void every_ag_is_reached(struct kunit *test)
{
	struct geometry geometry = first_geometry;
	struct shares shares;

	while (next_geometry(&geometry)) {
		share(test, &shares, &geometry);
		for (u32 agno = 0; agno < geometry.agcount; agno++)
			KUNIT_EXPECT_GT(test, shares.owners[agno], 0);
	}
}

static void streams_are_apart_where_ags_suffice(struct kunit *test)
{
	struct geometry geometry = first_geometry;
	struct shares shares;

	while (next_geometry(&geometry)) {
		if (geometry.agcount < geometry.nr_streams)
			continue;
		share(test, &shares, &geometry);
		for (u32 agno = 0; agno < geometry.agcount; agno++)
			KUNIT_EXPECT_EQ(test, shares.owners[agno], 1);
	}
}

static void no_stream_has_two_ags_more_than_another(struct kunit *test)
{
	struct geometry geometry = first_geometry;
	struct shares shares;

	while (next_geometry(&geometry)) {
		share(test, &shares, &geometry);
		KUNIT_EXPECT_LE(test, shares.most - shares.least, 1);
	}
}

static void no_ag_has_two_streams_more_than_another(struct kunit *test)
{
	struct geometry geometry = first_geometry;
	struct shares shares;

	while (next_geometry(&geometry)) {
		u32 least = U32_MAX, most = 0;

		share(test, &shares, &geometry);
		for (u32 agno = 0; agno < geometry.agcount; agno++) {
			least = min(least, shares.owners[agno]);
			most = max(most, shares.owners[agno]);
		}
		KUNIT_EXPECT_LE(test, most - least, 1);
	}
}

/* the AGs of a stream as the filesystem grows one by one */
static void grow(struct kunit *test, u32 mounted, u32 nr_streams, u32 stream)
{
	struct xfs_ag_set now, grown;

	xfs_ag_set_of_stream(&now, mounted, mounted, nr_streams, stream);
	for (u32 agcount = mounted + 1; agcount <= MAX_AGS; agcount++) {
		xfs_ag_set_of_stream(&grown, agcount, mounted, nr_streams,
				     stream);
		KUNIT_ASSERT_GE(test, grown.nr, now.nr);
		for (u32 n = 0; n < now.nr; n++)
			KUNIT_EXPECT_EQ(test, xfs_ag_set_nth(&now, n),
					xfs_ag_set_nth(&grown, n));
		now = grown;
	}
}

static void growing_takes_no_ag_from_a_stream(struct kunit *test)
{
	for (u32 nr_streams = 1; nr_streams <= MAX_STREAMS; nr_streams++)
		for (u32 mounted = nr_streams; mounted < MAX_AGS; mounted++)
			for (u32 stream = 1; stream <= nr_streams; stream++)
				grow(test, mounted, nr_streams, stream);
}

/* a stream with an AG to itself keeps it when others get one, too */
static void growing_to_enough_leaves_owners_alone(struct kunit *test)
{
	for (u32 agcount = 1; agcount < MAX_STREAMS; agcount++) {
		for (u32 stream = 1; stream <= agcount; stream++) {
			struct xfs_ag_set set;

			xfs_ag_set_of_stream(&set, MAX_AGS, agcount,
					     MAX_STREAMS, stream);
			KUNIT_EXPECT_EQ(test, xfs_ag_set_nth(&set, 0),
					stream - 1);
		}
	}
}

static void parts_lie_together(struct kunit *test)
{
	struct xfs_ag_set set;

	xfs_ag_set_of_stream(&set, 15, 10, 3, 1);
	KUNIT_EXPECT_EQ(test, set.first, 0);
	KUNIT_EXPECT_EQ(test, set.len, 3);
	KUNIT_EXPECT_EQ(test, set.nr, 5);
	KUNIT_EXPECT_EQ(test, xfs_ag_set_nth(&set, 4), 13);
	xfs_ag_set_of_stream(&set, 15, 10, 3, 3);
	KUNIT_EXPECT_EQ(test, set.first, 6);
	KUNIT_EXPECT_EQ(test, set.len, 4);
	KUNIT_EXPECT_EQ(test, set.nr, 5);
	KUNIT_EXPECT_EQ(test, xfs_ag_set_nth(&set, 4), 12);
}

static void too_few_ags_take_turns(struct kunit *test)
{
	struct xfs_ag_set set;

	for (u32 stream = 1; stream <= 10; stream++) {
		xfs_ag_set_of_stream(&set, 4, 4, 10, stream);
		KUNIT_EXPECT_EQ(test, set.nr, 1);
		KUNIT_EXPECT_EQ(test, xfs_ag_set_nth(&set, 0),
				(stream - 1) % 4);
	}
}

static void other_ags_are_not_in_the_set(struct kunit *test)
{
	struct geometry geometry = first_geometry;

	while (next_geometry(&geometry)) {
		struct xfs_ag_set set;
		u32 seen = 0;

		xfs_ag_set_of_stream(&set, geometry.agcount, geometry.mounted,
				     geometry.nr_streams, geometry.nr_streams);
		for (u32 agno = 0; agno < geometry.agcount; agno++)
			seen += xfs_ag_set_has(&set, agno);
		KUNIT_EXPECT_EQ(test, seen, set.nr);
	}
}

/* AGs that are left to others are nobody's, and the rest is shared as before */
static void shifted_sets_leave_the_first_ags_out(struct kunit *test)
{
	struct geometry geometry = first_geometry;
	const u32 by = 3;

	while (next_geometry(&geometry)) {
		struct xfs_ag_set set, shifted;

		xfs_ag_set_of_stream(&set, geometry.agcount, geometry.mounted,
				     geometry.nr_streams, geometry.nr_streams);
		shifted = set;
		xfs_ag_set_shift(&shifted, by);
		for (u32 n = 0; n < set.nr; n++)
			KUNIT_EXPECT_EQ(test, xfs_ag_set_nth(&set, n) + by,
					xfs_ag_set_nth(&shifted, n));
		for (u32 agno = 0; agno < by; agno++)
			KUNIT_EXPECT_FALSE(test, xfs_ag_set_has(&shifted, agno));
		for (u32 agno = 0; agno < geometry.agcount; agno++)
			KUNIT_EXPECT_EQ(test, xfs_ag_set_has(&set, agno),
					xfs_ag_set_has(&shifted, agno + by));
	}
}

static void large_numbers_do_not_overflow(struct kunit *test)
{
	struct xfs_ag_set set;

	xfs_ag_set_of_stream(&set, MANY_AGS, MANY_AGS, MOST_STREAMS,
			     MOST_STREAMS);
	KUNIT_EXPECT_EQ(test, xfs_ag_set_nth(&set, set.nr - 1), MANY_AGS - 1);
	xfs_ag_set_of_stream(&set, U32_MAX, MANY_AGS, MOST_STREAMS,
			     MOST_STREAMS);
	KUNIT_EXPECT_LT(test, xfs_ag_set_nth(&set, set.nr - 1), U32_MAX);
	KUNIT_EXPECT_EQ(test, xfs_ag_set_generic(U32_MAX, U32_MAX - 1, 4, 3),
			2);
}

static struct kunit_case xfs_ag_set_test_cases[] = {
	KUNIT_CASE(every_ag_is_reached),
	KUNIT_CASE(streams_are_apart_where_ags_suffice),
	KUNIT_CASE(no_stream_has_two_ags_more_than_another),
	KUNIT_CASE(no_ag_has_two_streams_more_than_another),
	KUNIT_CASE(growing_takes_no_ag_from_a_stream),
	KUNIT_CASE(growing_to_enough_leaves_owners_alone),
	KUNIT_CASE(parts_lie_together),
	KUNIT_CASE(too_few_ags_take_turns),
	KUNIT_CASE(other_ags_are_not_in_the_set),
	KUNIT_CASE(shifted_sets_leave_the_first_ags_out),
	KUNIT_CASE(large_numbers_do_not_overflow),
	{}
};

static struct kunit_suite xfs_ag_set_test_suite = {
	.name = "xfs_ag_set",
	.test_cases = xfs_ag_set_test_cases,
};

kunit_test_suite(xfs_ag_set_test_suite);

MODULE_DESCRIPTION("KUnit tests of the AG sets of XFS");
MODULE_LICENSE("GPL");
