// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of AG-aware writeback: which folios a pass writes.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/xarray.h>
#include "../xfs_agwb_share.h"

/* a file of this many pages; the folios of its page cache are only marked */
#define NR_PAGES	(4UL << XFS_AGWB_STRETCH_SHIFT)

static int xfs_agwb_test_init(struct kunit *test)
{
	struct xarray *folios;

	folios = kunit_kzalloc(test, sizeof(*folios), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, folios);
	xa_init(folios);
	test->priv = folios;
	return 0;
}

static void xfs_agwb_test_exit(struct kunit *test)
{
	xa_destroy(test->priv);
}

/* a dirty folio of some pages, at an index that is a multiple of them */
static void dirty_large(struct kunit *test, pgoff_t index, unsigned int order)
{
	XA_STATE_ORDER(xas, test->priv, index, order);

	do {
		xas_lock(&xas);
		xas_store(&xas, test);
		if (!xas_error(&xas))
			xas_set_mark(&xas, PAGECACHE_TAG_DIRTY);
		xas_unlock(&xas);
	} while (xas_nomem(&xas, GFP_KERNEL));
	KUNIT_ASSERT_EQ(test, 0, xas_error(&xas));
}

static void dirty(struct kunit *test, pgoff_t index)
{
	dirty_large(test, index, 0);
}

/* one run of a file that has so many pages on disk, or -1 for none */
static long next_within(struct kunit *test, const struct xfs_agwb_share *share,
			pgoff_t on_disk, pgoff_t first, pgoff_t *last)
{
	return xfs_agwb_next_run(share, on_disk, test->priv, &first, last) ?
	       first : -1;
}

static long next(struct kunit *test, const struct xfs_agwb_share *share,
		 pgoff_t first, pgoff_t *last)
{
	return next_within(test, share, NR_PAGES, first, last);
}

static void next_dirty_folio_begins_there_or_later(struct kunit *test)
{
	struct xarray *folios = test->priv;
	pgoff_t index = 0;

	KUNIT_EXPECT_FALSE(test, xfs_agwb_next_dirty(folios, &index));
	dirty_large(test, 16, 4);
	dirty(test, 40);
	xa_store(folios, 33, test, GFP_KERNEL);	/* clean */

	KUNIT_EXPECT_TRUE(test, xfs_agwb_next_dirty(folios, &index));
	KUNIT_EXPECT_EQ(test, 16, index);
	/* within the large folio */
	index = 17;
	KUNIT_EXPECT_TRUE(test, xfs_agwb_next_dirty(folios, &index));
	KUNIT_EXPECT_EQ(test, 40, index);
	index = 41;
	KUNIT_EXPECT_FALSE(test, xfs_agwb_next_dirty(folios, &index));
}

static void stretches_go_round(struct kunit *test)
{
	struct xfs_agwb_share share = {
		.kind = XFS_AGWB_SHARE_STRETCHES,
		.modulus = 3,
		.remainder = 1,
	};
	pgoff_t stretch = BIT(XFS_AGWB_STRETCH_SHIFT), last;

	dirty(test, 5);
	dirty(test, stretch + 7);
	dirty(test, 4 * stretch - 1);

	KUNIT_EXPECT_EQ(test, stretch + 7, next(test, &share, 0, &last));
	KUNIT_EXPECT_EQ(test, 2 * stretch - 1, last);
	KUNIT_EXPECT_EQ(test, -1, next(test, &share, 2 * stretch, &last));
	share.remainder = 0;
	KUNIT_EXPECT_EQ(test, 4 * stretch - 1,
			next(test, &share, stretch, &last));
	share.remainder = 2;
	KUNIT_EXPECT_EQ(test, -1, next(test, &share, 0, &last));
}

/* The size on disk must not come to cover what another pass has not written. */
static void only_who_writes_all_goes_beyond_the_size(struct kunit *test)
{
	const pgoff_t stretch = BIT(XFS_AGWB_STRETCH_SHIFT);
	const struct xfs_agwb_share every_second = {
		.kind = XFS_AGWB_SHARE_STRETCHES,
		.modulus = 2,
		.remainder = 1,
	};
	const struct xfs_agwb_share all = { .kind = XFS_AGWB_SHARE_ALL };
	pgoff_t last;

	for (pgoff_t i = stretch + 10; i < stretch + 20; i++)
		dirty(test, i);
	KUNIT_EXPECT_EQ(test, -1, next_within(test, &every_second, 0, 0, &last));
	KUNIT_EXPECT_EQ(test, -1, next_within(test, &every_second, stretch + 10,
					      0, &last));
	KUNIT_EXPECT_EQ(test, stretch + 10,
			next_within(test, &every_second, stretch + 13, 0,
				    &last));
	KUNIT_EXPECT_EQ(test, stretch + 12, last);
	KUNIT_EXPECT_EQ(test, stretch + 10,
			next_within(test, &all, 0, 0, &last));
	KUNIT_EXPECT_EQ(test, ULONG_MAX, last);
}

static void all_is_one_run(struct kunit *test)
{
	struct xfs_agwb_share all = { .kind = XFS_AGWB_SHARE_ALL };
	pgoff_t last;

	KUNIT_EXPECT_EQ(test, -1, next(test, &all, 0, &last));
	dirty(test, 9);
	KUNIT_EXPECT_EQ(test, 9, next(test, &all, 2, &last));
	KUNIT_EXPECT_EQ(test, ULONG_MAX, last);
}

static void nobody_is_forgotten_by_stretches(struct kunit *test)
{
	u8 *writers = kunit_kzalloc(test, NR_PAGES, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, writers);
	for (pgoff_t i = 0; i < NR_PAGES; i++)
		dirty(test, i);
	for (unsigned int i = 0; i < 3; i++) {
		struct xfs_agwb_share share = {
			.kind = XFS_AGWB_SHARE_STRETCHES,
			.modulus = 3,
			.remainder = i,
		};
		pgoff_t first = 0, last;

		while (xfs_agwb_next_run(&share, NR_PAGES, test->priv, &first,
					 &last)) {
			KUNIT_ASSERT_LE(test, first, last);
			KUNIT_ASSERT_LT(test, last, NR_PAGES);
			for (; first <= last; first++)
				writers[first]++;
		}
	}
	KUNIT_EXPECT_NULL(test, memchr_inv(writers, 1, NR_PAGES));
}

static void budgets_add_up(struct kunit *test)
{
	for (long pages = 1; pages < 300; pages += 7) {
		for (unsigned int nr = 1; nr <= 64; nr++) {
			long sum = 0;

			for (unsigned int i = 0; i < nr; i++)
				sum += xfs_agwb_budget(pages, nr, i);
			KUNIT_EXPECT_EQ(test, pages, sum);
		}
	}
	KUNIT_EXPECT_EQ(test, 342, xfs_agwb_budget(1024, 3, 0));
	KUNIT_EXPECT_EQ(test, 341, xfs_agwb_budget(1024, 3, 2));
}

static struct kunit_case xfs_agwb_test_cases[] = {
	KUNIT_CASE(next_dirty_folio_begins_there_or_later),
	KUNIT_CASE(stretches_go_round),
	KUNIT_CASE(only_who_writes_all_goes_beyond_the_size),
	KUNIT_CASE(all_is_one_run),
	KUNIT_CASE(nobody_is_forgotten_by_stretches),
	KUNIT_CASE(budgets_add_up),
	{}
};

static struct kunit_suite xfs_agwb_test_suite = {
	.name = "xfs_agwb",
	.init = xfs_agwb_test_init,
	.exit = xfs_agwb_test_exit,
	.test_cases = xfs_agwb_test_cases,
};

kunit_test_suite(xfs_agwb_test_suite);

MODULE_DESCRIPTION("KUnit tests of XFS's AG-aware writeback");
MODULE_LICENSE("GPL");
