// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of what would be written to flash.
 */

#include <kunit/test.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include "../ftl.h"

#define UNIT_PAGES	64
#define OP_PERCENT	28
#define PAGES		(UNIT_PAGES * 256)
#define MAX_STREAMS	3
/* nearly half of the over-provisioning */
#define MANY_STREAMS	32
#define SEED		42

/* uniform random writes at 28%, for units of endless size: 2481 / 1000 */
#define UNIFORM		2481
#define TOLERANCE	(UNIFORM * 5 / 100)

static void free_ftl(void *ftl)
{
	labblk_ftl_free(ftl);
}

static struct labblk_ftl *new_ftl(struct kunit *test, u32 nr_pages,
				  u32 max_streams)
{
	struct labblk_ftl *ftl;

	ftl = kunit_kzalloc(test, sizeof(*ftl), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ftl);
	KUNIT_ASSERT_EQ(test, 0, labblk_ftl_init(ftl, nr_pages, UNIT_PAGES,
						 OP_PERCENT, max_streams));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, free_ftl, ftl));
	return ftl;
}

/* media pages for 1000 pages of the host since the last call */
static u64 amplification(struct labblk_ftl *ftl, u64 *host, u64 *media)
{
	u64 host_before = *host, media_before = *media;

	labblk_ftl_counts(ftl, host, media);
	return div64_u64((*media - media_before) * 1000, *host - host_before);
}

static void write_at_random(struct labblk_ftl *ftl, struct rnd_state *rnd,
			    u32 count)
{
	while (count--) {
		labblk_ftl_write(ftl, prandom_u32_state(rnd) % ftl->nr_pages, 1,
				 0);
		cond_resched();
	}
}

static u32 mapped(const struct labblk_ftl *ftl)
{
	u32 count = 0;

	for (u32 page = 0; page < ftl->nr_pages; page++)
		count += ftl->where[page] != U32_MAX;
	return count;
}

static void expect_consistent(struct kunit *test, const struct labblk_ftl *ftl)
{
	u32 valid = 0;

	for (u32 page = 0; page < ftl->nr_pages; page++) {
		if (ftl->where[page] != U32_MAX)
			KUNIT_EXPECT_EQ(test, page,
					ftl->what[ftl->where[page]]);
	}
	for (u32 i = 0; i < ftl->nr_units; i++) {
		KUNIT_EXPECT_LE(test, ftl->units[i].valid,
				ftl->units[i].written);
		valid += ftl->units[i].valid;
	}
	KUNIT_EXPECT_EQ(test, valid, mapped(ftl));
	KUNIT_EXPECT_GT(test, ftl->nr_free, 0);
}

static void first_write_is_not_amplified(struct kunit *test)
{
	struct labblk_ftl *ftl = new_ftl(test, PAGES, MAX_STREAMS);
	u64 host = 0, media = 0;

	labblk_ftl_write(ftl, 0, PAGES, 0);
	KUNIT_EXPECT_EQ(test, 1000, amplification(ftl, &host, &media));
	KUNIT_EXPECT_EQ(test, PAGES, host);
	expect_consistent(test, ftl);
}

static void overwriting_in_order_is_not_amplified(struct kunit *test)
{
	struct labblk_ftl *ftl = new_ftl(test, PAGES, MAX_STREAMS);
	u64 host = 0, media = 0;
	int i;

	for (i = 0; i < 5; i++)
		labblk_ftl_write(ftl, 0, PAGES, 0);
	KUNIT_EXPECT_EQ(test, 1000, amplification(ftl, &host, &media));
	expect_consistent(test, ftl);
}

static void uniform_random_writes_are_as_published(struct kunit *test)
{
	struct labblk_ftl *ftl = new_ftl(test, PAGES, 0);
	u64 host, media, found;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, SEED);
	labblk_ftl_write(ftl, 0, PAGES, 0);
	write_at_random(ftl, &rnd, 4 * PAGES);
	labblk_ftl_counts(ftl, &host, &media);
	write_at_random(ftl, &rnd, 4 * PAGES);
	found = amplification(ftl, &host, &media);
	KUNIT_EXPECT_GE(test, found, UNIFORM - TOLERANCE);
	KUNIT_EXPECT_LE(test, found, UNIFORM + TOLERANCE);
	expect_consistent(test, ftl);
}

static void discarded_pages_are_not_moved(struct kunit *test)
{
	struct labblk_ftl *ftl = new_ftl(test, PAGES, MAX_STREAMS);
	u64 host = 0, media = 0;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, SEED);
	write_at_random(ftl, &rnd, 4 * PAGES);
	labblk_ftl_discard(ftl, 0, PAGES);
	KUNIT_EXPECT_EQ(test, 0, mapped(ftl));
	labblk_ftl_counts(ftl, &host, &media);
	labblk_ftl_write(ftl, 0, PAGES, 0);
	KUNIT_EXPECT_EQ(test, 1000, amplification(ftl, &host, &media));
	labblk_ftl_discard(ftl, PAGES / 2, 1);
	KUNIT_EXPECT_EQ(test, PAGES - 1, mapped(ftl));
	expect_consistent(test, ftl);
}

/* A log goes round in one half while the other half is written once, by turns. */
static u64 log_beside_archive(struct kunit *test, u32 log_stream,
			      u32 archive_stream)
{
	struct labblk_ftl *ftl = new_ftl(test, PAGES, MAX_STREAMS);
	u64 host = 0, media = 0;
	u32 log = 0, archive;

	for (archive = 0; archive < PAGES / 2; archive++) {
		for (int i = 0; i < 8; i++, log++)
			labblk_ftl_write(ftl, log % (PAGES / 2), 1, log_stream);
		labblk_ftl_write(ftl, PAGES / 2 + archive, 1, archive_stream);
		cond_resched();
	}
	expect_consistent(test, ftl);
	return amplification(ftl, &host, &media);
}

static void streams_keep_what_differs_apart(struct kunit *test)
{
	u64 together = log_beside_archive(test, 0, 0);

	KUNIT_EXPECT_EQ(test, 1000, log_beside_archive(test, 1, 2));
	KUNIT_EXPECT_GT(test, together, 1050);
	KUNIT_EXPECT_EQ(test, together, log_beside_archive(test, 2, 2));
}

static void unknown_stream_is_none(struct kunit *test)
{
	u64 together = log_beside_archive(test, 0, 0);

	KUNIT_EXPECT_EQ(test, together,
			log_beside_archive(test, MAX_STREAMS + 1, U8_MAX));
}

static void idle_streams_change_nothing(struct kunit *test)
{
	u64 host[2] = {}, media[2] = {};

	for (int i = 0; i < 2; i++) {
		struct labblk_ftl *ftl = new_ftl(test, PAGES, i * MAX_STREAMS);
		struct rnd_state rnd;

		prandom_seed_state(&rnd, SEED);
		write_at_random(ftl, &rnd, 4 * PAGES);
		labblk_ftl_counts(ftl, &host[i], &media[i]);
	}
	KUNIT_EXPECT_EQ(test, host[0], host[1]);
	KUNIT_EXPECT_EQ(test, media[0], media[1]);
}

/* What is written is the same, but for how many units are open meanwhile. */
static u64 spread_over_streams(struct kunit *test, u32 nr_streams)
{
	struct labblk_ftl *ftl = new_ftl(test, PAGES, MANY_STREAMS);
	u64 host, media;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, SEED);
	for (u32 i = 0; i < 6 * PAGES; i++) {
		if (i == 3 * PAGES)
			labblk_ftl_counts(ftl, &host, &media);
		labblk_ftl_write(ftl, prandom_u32_state(&rnd) % PAGES, 1,
				 i % nr_streams);
		cond_resched();
	}
	expect_consistent(test, ftl);
	return amplification(ftl, &host, &media);
}

static void streams_in_use_take_over_provisioning(struct kunit *test)
{
	KUNIT_EXPECT_GT(test, spread_over_streams(test, MANY_STREAMS),
			spread_over_streams(test, 1) * 11 / 10);
}

/* Every stream at once, on a device with hardly more units than streams. */
static void smallest_devices_work(struct kunit *test)
{
	u32 nr_pages;

	for (nr_pages = 1; nr_pages <= 3 * UNIT_PAGES; nr_pages += 31) {
		struct labblk_ftl *ftl = new_ftl(test, nr_pages, MAX_STREAMS);
		struct rnd_state rnd;
		u32 i;

		prandom_seed_state(&rnd, SEED);
		for (i = 0; i < 4000; i++)
			labblk_ftl_write(ftl, prandom_u32_state(&rnd) % nr_pages,
					 1, prandom_u32_state(&rnd) %
					 (MAX_STREAMS + 1));
		expect_consistent(test, ftl);
	}
}

static void too_many_pages_are_refused(struct kunit *test)
{
	struct labblk_ftl ftl;

	KUNIT_EXPECT_EQ(test, -EFBIG,
			labblk_ftl_init(&ftl, U32_MAX, UNIT_PAGES, 7, 0));
	/* a table of 4 TiB in pages, and one of units that are hardly larger */
	KUNIT_EXPECT_EQ(test, -EFBIG,
			labblk_ftl_init(&ftl, 1 << 30, UNIT_PAGES, 7, 0));
	KUNIT_EXPECT_EQ(test, -EFBIG,
			labblk_ftl_init(&ftl, 1 << 28, 1, 7, 0));
}

/* one more than the pages need, whatever the number of units */
static void over_provisioning_is_what_was_asked_for(struct kunit *test)
{
	static const u32 units[] = { 50, 100, 200, 1000 };

	for (int i = 0; i < ARRAY_SIZE(units); i++) {
		struct labblk_ftl *ftl = new_ftl(test, units[i] * UNIT_PAGES, 0);

		KUNIT_EXPECT_EQ(test, ftl->nr_units,
				units[i] + units[i] * OP_PERCENT / 100 + 1);
	}
}

static struct kunit_case labblk_ftl_test_cases[] = {
	KUNIT_CASE(first_write_is_not_amplified),
	KUNIT_CASE(overwriting_in_order_is_not_amplified),
	KUNIT_CASE_SLOW(uniform_random_writes_are_as_published),
	KUNIT_CASE(discarded_pages_are_not_moved),
	KUNIT_CASE(streams_keep_what_differs_apart),
	KUNIT_CASE(unknown_stream_is_none),
	KUNIT_CASE(idle_streams_change_nothing),
	KUNIT_CASE_SLOW(streams_in_use_take_over_provisioning),
	KUNIT_CASE(smallest_devices_work),
	KUNIT_CASE(too_many_pages_are_refused),
	KUNIT_CASE(over_provisioning_is_what_was_asked_for),
	{}
};

static struct kunit_suite labblk_ftl_test_suite = {
	.name = "labblk_ftl",
	.test_cases = labblk_ftl_test_cases,
};

kunit_test_suite(labblk_ftl_test_suite);

MODULE_DESCRIPTION("KUnit tests of labblk's flash translation layer");
MODULE_LICENSE("GPL");
