// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of which folios a pass of AG-aware writeback writes by their hints.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include "../xfs_agwb_share.h"
#include "../xfs_agwb_hint_share.h"
#include "xfs_agwb_hint_fixture.h"

/* a file of this many pages; the folios of its page cache are only marked */
#define NR_PAGES	4096UL

struct hinted_file {
	struct xarray folios;
	struct xarray hints;
};

static int xfs_agwb_hint_test_init(struct kunit *test)
{
	struct hinted_file *file;

	file = kunit_kzalloc(test, sizeof(*file), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, file);
	xa_init(&file->folios);
	xa_init(&file->hints);
	test->priv = file;
	return 0;
}

static void xfs_agwb_hint_test_exit(struct kunit *test)
{
	struct hinted_file *file = test->priv;

	xa_destroy(&file->folios);
	xa_destroy(&file->hints);
}

/* a dirty folio of some pages, at an index that is a multiple of them */
static void dirty_large(struct kunit *test, pgoff_t index, unsigned int order)
{
	struct hinted_file *file = test->priv;
	XA_STATE_ORDER(xas, &file->folios, index, order);

	do {
		xas_lock(&xas);
		xas_store(&xas, file);
		if (!xas_error(&xas))
			xas_set_mark(&xas, PAGECACHE_TAG_DIRTY);
		xas_unlock(&xas);
	} while (xas_nomem(&xas, GFP_KERNEL));
	KUNIT_ASSERT_EQ(test, 0, xas_error(&xas));
}

static void hint_only(struct kunit *test, pgoff_t index, unsigned int agno)
{
	struct hinted_file *file = test->priv;

	store_hint(test, &file->hints, index, agno);
}

static void dirty(struct kunit *test, pgoff_t index)
{
	dirty_large(test, index, 0);
}

static void dirty_hinted(struct kunit *test, pgoff_t index, unsigned int agno)
{
	dirty(test, index);
	hint_only(test, index, agno);
}

/* how many runs have each page, as the workers would write them */
static void count_writers(struct kunit *test, struct xfs_agwb_share *share,
			  u8 *writers)
{
	struct hinted_file *file = test->priv;
	pgoff_t first = 0, last;

	share->budget = 7;
	share->hints = &file->hints;
	while (xfs_agwb_next_run(share, ULONG_MAX, &file->folios, &first,
				 &last)) {
		KUNIT_ASSERT_LE(test, first, last);
		for (pgoff_t i = first; i <= min(last, NR_PAGES - 1); i++)
			writers[i]++;
		if (last >= ULONG_MAX - 1)
			break;
		first = last + 1;
	}
}

/* one run of a file that has so many pages on disk, or -1 for none */
static long next_within(struct kunit *test, struct xfs_agwb_share *share,
			pgoff_t on_disk, pgoff_t first, pgoff_t *last)
{
	struct hinted_file *file = test->priv;

	share->hints = &file->hints;
	return xfs_agwb_next_run(share, on_disk, &file->folios, &first, last) ?
	       first : -1;
}

/* one run of at most so many folios, or -1 for none */
static long next_of(struct kunit *test, struct xfs_agwb_share *share,
		    long most, pgoff_t first, pgoff_t *last)
{
	share->budget = most;
	return next_within(test, share, NR_PAGES, first, last);
}

static long next(struct kunit *test, struct xfs_agwb_share *share,
		 pgoff_t first, pgoff_t *last)
{
	return next_of(test, share, LONG_MAX, first, last);
}

static void run_of_a_slot_has_no_other_hint(struct kunit *test)
{
	struct xfs_agwb_share ag1 = {
		.kind = XFS_AGWB_SHARE_SLOT,
		.slot = 1,
	};
	pgoff_t last;

	dirty(test, 3);
	dirty_hinted(test, 10, 1);
	dirty(test, 11);
	dirty_hinted(test, 12, 1);
	dirty(test, 13);
	dirty_hinted(test, 14, 2);
	dirty_hinted(test, 15, 1);

	/* what has no hint goes along if it lies within or follows */
	KUNIT_EXPECT_EQ(test, 10, next(test, &ag1, 0, &last));
	KUNIT_EXPECT_EQ(test, 13, last);
	KUNIT_EXPECT_EQ(test, 10, next_of(test, &ag1, 2, 0, &last));
	KUNIT_EXPECT_EQ(test, 11, last);
	KUNIT_EXPECT_EQ(test, 15, next(test, &ag1, 14, &last));
	KUNIT_EXPECT_EQ(test, NR_PAGES - 1, last);
	KUNIT_EXPECT_EQ(test, -1, next(test, &ag1, 16, &last));
	ag1.slot = 3;
	KUNIT_EXPECT_EQ(test, -1, next(test, &ag1, 0, &last));
}

static void rest_is_what_nobody_else_has(struct kunit *test)
{
	struct xfs_agwb_share rest = {
		.kind = XFS_AGWB_SHARE_REST,
		.others = BIT_ULL(1) | BIT_ULL(2),
	};
	pgoff_t last;

	dirty(test, 3);
	dirty_hinted(test, 8, 0);
	dirty_hinted(test, 10, 1);
	dirty_hinted(test, 11, 2);
	dirty_hinted(test, 12, 5);	/* a slot without a pass */
	dirty(test, 13);

	KUNIT_EXPECT_EQ(test, 3, next(test, &rest, 0, &last));
	KUNIT_EXPECT_EQ(test, 9, last);
	KUNIT_EXPECT_EQ(test, 3, next_of(test, &rest, 4, 0, &last));
	KUNIT_EXPECT_EQ(test, 6, last);
	KUNIT_EXPECT_EQ(test, 12, next(test, &rest, 10, &last));
	KUNIT_EXPECT_EQ(test, NR_PAGES - 1, last);
	KUNIT_EXPECT_EQ(test, -1, next(test, &rest, 14, &last));
}

static void rest_leaves_large_folios_of_others(struct kunit *test)
{
	struct xfs_agwb_share rest = {
		.kind = XFS_AGWB_SHARE_REST,
		.others = BIT_ULL(1),
	};
	pgoff_t last;

	dirty_large(test, 16, 4);
	hint_only(test, 16, 1);
	KUNIT_EXPECT_EQ(test, -1, next(test, &rest, 0, &last));
	dirty(test, 32);
	KUNIT_EXPECT_EQ(test, 32, next(test, &rest, 0, &last));
}

/* The size on disk must not come to cover what another pass has not written. */
static void run_ends_at_the_size_on_disk(struct kunit *test)
{
	struct xfs_agwb_share shares[] = {
		{ .kind = XFS_AGWB_SHARE_SLOT, .slot = 1 },
		{ .kind = XFS_AGWB_SHARE_REST, .others = BIT_ULL(2) },
	};
	pgoff_t last;

	for (pgoff_t i = 10; i < 20; i++)
		dirty_hinted(test, i, 1);
	for (int i = 0; i < ARRAY_SIZE(shares); i++) {
		struct xfs_agwb_share *share = &shares[i];

		share->budget = LONG_MAX;
		KUNIT_EXPECT_EQ(test, -1,
				next_within(test, share, 0, 0, &last));
		KUNIT_EXPECT_EQ(test, -1,
				next_within(test, share, 10, 0, &last));
		KUNIT_EXPECT_EQ(test, 10,
				next_within(test, share, 13, 0, &last));
		KUNIT_EXPECT_EQ(test, 12, last);
	}
}

/* Every dirty folio has a writer, and one with a good hint has one only. */
static void expect_all_are_written(struct kunit *test, const u8 *writers)
{
	struct hinted_file *file = test->priv;
	pgoff_t index = 0;

	for (; xfs_agwb_next_dirty(&file->folios, &index); index++)
		KUNIT_EXPECT_GE_MSG(test, writers[index], 1,
				    "nobody writes folio %lu", index);
}

static void nobody_is_forgotten(struct kunit *test)
{
	u64 slots = BIT_ULL(0) | BIT_ULL(1) | BIT_ULL(3);
	struct hinted_file *file = test->priv;
	u8 *writers = kunit_kzalloc(test, NR_PAGES, GFP_KERNEL);
	pgoff_t index = 0;

	KUNIT_ASSERT_NOT_NULL(test, writers);
	/* hinted to slots with and without a pass, stale, and not at all */
	for (pgoff_t i = 0; i < NR_PAGES; i++) {
		if (i * 2654435761UL % 7 < 3)
			dirty(test, i);
		if (i * 2654435761UL % 11 < 6)
			hint_only(test, i, i * 40503 % 5);
	}
	for (unsigned int slot = 0; slot < XFS_AGWB_SLOTS; slot++) {
		struct xfs_agwb_share share = {
			.kind = slot ? XFS_AGWB_SHARE_SLOT :
				       XFS_AGWB_SHARE_REST,
			.slot = slot,
			.others = slots & ~BIT_ULL(0),
		};

		if (slots & BIT_ULL(slot))
			count_writers(test, &share, writers);
	}
	expect_all_are_written(test, writers);

	/* a hint of a slot with a pass leaves no doubt */
	for (; xfs_agwb_next_dirty(&file->folios, &index); index++) {
		void *entry = xa_load(&file->hints,
				      index / XFS_AGWB_HINTS_PER_ENTRY);
		u16 hint = xfs_agwb_get_hint(entry, index);

		if (xfs_agwb_is_of_slots(hint, slots))
			KUNIT_EXPECT_EQ(test, 1, writers[index]);
	}
}

static struct kunit_case xfs_agwb_hint_test_cases[] = {
	KUNIT_CASE(run_of_a_slot_has_no_other_hint),
	KUNIT_CASE(rest_is_what_nobody_else_has),
	KUNIT_CASE(rest_leaves_large_folios_of_others),
	KUNIT_CASE(run_ends_at_the_size_on_disk),
	KUNIT_CASE(nobody_is_forgotten),
	{}
};

static struct kunit_suite xfs_agwb_hint_test_suite = {
	.name = "xfs_agwb_hint",
	.init = xfs_agwb_hint_test_init,
	.exit = xfs_agwb_hint_test_exit,
	.test_cases = xfs_agwb_hint_test_cases,
};

kunit_test_suite(xfs_agwb_hint_test_suite);

MODULE_DESCRIPTION("KUnit tests of the hints of XFS's AG-aware writeback");
MODULE_LICENSE("GPL");
