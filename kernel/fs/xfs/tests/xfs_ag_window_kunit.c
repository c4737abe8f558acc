// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the window of AGs that files without a stream go to.
 */

#include <kunit/test.h>
#include <linux/minmax.h>
#include "../xfs_ag_set.h"

#define MAX_AGS		24

static void window_begins_at_home(struct kunit *test)
{
	for (u32 agcount = 1; agcount <= MAX_AGS; agcount++) {
		for (u32 home = 0; home < agcount; home++) {
			KUNIT_EXPECT_EQ(test, home,
					xfs_ag_set_generic(agcount, home, 1, 7));
			KUNIT_EXPECT_EQ(test, home,
					xfs_ag_set_generic(agcount, home, 4, 12));
		}
	}
	KUNIT_EXPECT_EQ(test, 5, xfs_ag_set_generic(16, 3, 4, 2));
	KUNIT_EXPECT_EQ(test, 1, xfs_ag_set_generic(16, 15, 4, 2));
}

/* inodes of all AGs alike fill all AGs alike */
static void windows_are_balanced(struct kunit *test)
{
	const u32 size = 4;

	for (u32 agcount = 1; agcount <= MAX_AGS; agcount++) {
		u32 keys = min(size, agcount), hits[MAX_AGS] = {};

		for (u32 home = 0; home < agcount; home++)
			for (u32 key = 0; key < keys; key++)
				hits[xfs_ag_set_generic(agcount, home, size,
							key)]++;
		for (u32 agno = 0; agno < agcount; agno++)
			KUNIT_EXPECT_EQ(test, hits[agno], keys);
	}
}

static void growing_leaves_windows_where_they_were(struct kunit *test)
{
	for (u32 home = 0; home + 4 <= MAX_AGS; home++)
		for (u32 agcount = home + 4; agcount <= MAX_AGS; agcount++)
			for (u32 key = 0; key < 4; key++)
				KUNIT_EXPECT_EQ(test, home + key,
						xfs_ag_set_generic(agcount, home,
								   4, key));
}

static struct kunit_case xfs_ag_window_test_cases[] = {
	KUNIT_CASE(window_begins_at_home),
	KUNIT_CASE(windows_are_balanced),
	KUNIT_CASE(growing_leaves_windows_where_they_were),
	{}
};

static struct kunit_suite xfs_ag_window_test_suite = {
	.name = "xfs_ag_window",
	.test_cases = xfs_ag_window_test_cases,
};

kunit_test_suite(xfs_ag_window_test_suite);

MODULE_DESCRIPTION("KUnit tests of the AG windows of XFS");
MODULE_LICENSE("GPL");
