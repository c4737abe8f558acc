// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of how the hints of AG-aware writeback are packed.
 */
#include <linux/module.h>
#include "xfs_agwb_hint_fixture.h"

static void hint_names_an_ag(struct kunit *test)
{
	for (unsigned int agno = 0; agno < XFS_AGWB_HINT_AGS; agno++) {
		u16 mapped = xfs_agwb_make_hint(agno, false);
		u16 delayed = xfs_agwb_make_hint(agno, true);

		KUNIT_ASSERT_NE(test, 0, mapped);
		KUNIT_ASSERT_FALSE(test, mapped & XFS_AGWB_HINT_DELALLOC);
		KUNIT_ASSERT_TRUE(test, delayed & XFS_AGWB_HINT_DELALLOC);
		KUNIT_ASSERT_EQ(test, agno, xfs_agwb_hint_agno(mapped));
		KUNIT_ASSERT_EQ(test, agno, xfs_agwb_hint_agno(delayed));
		/* a stored one is the same */
		KUNIT_ASSERT_EQ(test, delayed,
				xfs_agwb_get_hint(xfs_agwb_set_hint(NULL, 1,
								    delayed),
						  1));
	}
}

static void ags_share_slots_not_hints(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, xfs_agwb_slot(1), xfs_agwb_slot(65));
	KUNIT_EXPECT_NE(test, xfs_agwb_make_hint(1, false),
			xfs_agwb_make_hint(65, false));
	/* the worker of the slot writes what has either */
	KUNIT_EXPECT_TRUE(test,
			  xfs_agwb_is_of_slots(xfs_agwb_make_hint(1, false),
					       BIT_ULL(1)));
	KUNIT_EXPECT_TRUE(test,
			  xfs_agwb_is_of_slots(xfs_agwb_make_hint(65, true),
					       BIT_ULL(1)));
	KUNIT_EXPECT_FALSE(test,
			   xfs_agwb_is_of_slots(xfs_agwb_make_hint(66, true),
						BIT_ULL(1)));
}

static void hints_share_an_entry(struct kunit *test)
{
	void *entry = NULL;

	for (int i = 0; i < XFS_AGWB_HINTS_PER_ENTRY; i++)
		entry = xfs_agwb_set_hint(entry, i, 0x7fc0 + i);
	for (int i = 0; i < XFS_AGWB_HINTS_PER_ENTRY; i++)
		KUNIT_EXPECT_EQ(test, 0x7fc0 + i, xfs_agwb_get_hint(entry, i));

	/* the index of the folio counts, not that within the entry */
	KUNIT_EXPECT_EQ(test, 0x7fc1,
			xfs_agwb_get_hint(entry, 1 + 100 *
					  XFS_AGWB_HINTS_PER_ENTRY));

	entry = xfs_agwb_set_hint(entry, 0, 0x55);
	KUNIT_EXPECT_EQ(test, 0x55, xfs_agwb_get_hint(entry, 0));
	KUNIT_EXPECT_EQ(test, 0x7fc1, xfs_agwb_get_hint(entry, 1));
}

static void entry_without_hints_is_none(struct kunit *test)
{
	void *entry = xfs_agwb_set_hint(NULL, 1, 0xff);

	KUNIT_EXPECT_NOT_NULL(test, entry);
	KUNIT_EXPECT_NULL(test, xfs_agwb_set_hint(entry, 1, 0));
	KUNIT_EXPECT_NULL(test, xfs_agwb_set_hint(NULL, 0, 0));
	KUNIT_EXPECT_EQ(test, 0, xfs_agwb_get_hint(NULL, 1));
}

static void entry_is_cut_from_an_index_on(struct kunit *test)
{
	void *entry = xfs_agwb_set_hint(NULL, 0, 0x41);

	entry = xfs_agwb_set_hint(entry, 1, 0x42);
	KUNIT_EXPECT_EQ(test, 0x41,
			xfs_agwb_get_hint(xfs_agwb_cut_entry(entry, 1), 0));
	KUNIT_EXPECT_EQ(test, 0,
			xfs_agwb_get_hint(xfs_agwb_cut_entry(entry, 1), 1));
	KUNIT_EXPECT_NULL(test, xfs_agwb_cut_entry(entry, 0));
	KUNIT_EXPECT_NULL(test, xfs_agwb_cut_entry(NULL, 1));
}

static void hint_is_found(struct kunit *test)
{
	u64 slots = BIT_ULL(2) | BIT_ULL(3);
	struct xarray hints;
	pgoff_t index = 0;

	xa_init(&hints);
	KUNIT_EXPECT_FALSE(test, xfs_agwb_find_hint(&hints, slots, &index,
						    ULONG_MAX));
	store_hint(test, &hints, 5, 1);
	store_hint(test, &hints, 7, 2);
	store_hint(test, &hints, 70000, 3);

	KUNIT_EXPECT_TRUE(test, xfs_agwb_find_hint(&hints, slots, &index,
						   ULONG_MAX));
	KUNIT_EXPECT_EQ(test, 7, index);
	index = 8;
	KUNIT_EXPECT_FALSE(test, xfs_agwb_find_hint(&hints, slots, &index,
						    69999));
	KUNIT_EXPECT_EQ(test, 8, index);
	KUNIT_EXPECT_TRUE(test, xfs_agwb_find_hint(&hints, slots, &index,
						   70000));
	KUNIT_EXPECT_EQ(test, 70000, index);
	/* what has no hint is of no slot */
	index = 0;
	KUNIT_EXPECT_TRUE(test, xfs_agwb_find_hint(&hints, ~slots, &index,
						   ULONG_MAX));
	KUNIT_EXPECT_EQ(test, 5, index);
	index = 6;
	KUNIT_EXPECT_FALSE(test, xfs_agwb_find_hint(&hints, ~slots,
						    &index, ULONG_MAX));
	xa_destroy(&hints);
}

static struct kunit_case xfs_agwb_hint_pack_test_cases[] = {
	KUNIT_CASE(hint_names_an_ag),
	KUNIT_CASE(ags_share_slots_not_hints),
	KUNIT_CASE(hints_share_an_entry),
	KUNIT_CASE(entry_without_hints_is_none),
	KUNIT_CASE(entry_is_cut_from_an_index_on),
	KUNIT_CASE(hint_is_found),
	{}
};

static struct kunit_suite xfs_agwb_hint_pack_test_suite = {
	.name = "xfs_agwb_hint_pack",
	.test_cases = xfs_agwb_hint_pack_test_cases,
};

kunit_test_suite(xfs_agwb_hint_pack_test_suite);

MODULE_DESCRIPTION("KUnit tests of packed hints of XFS's AG-aware writeback");
MODULE_LICENSE("GPL");
