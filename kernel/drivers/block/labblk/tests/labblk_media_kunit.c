// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of what a device holds, with and without a cache, and after a
 * power cut.
 */

#include <kunit/test.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include "../labblk.h"

#define SEED		42
#define BYTES		SZ_256K
#define OLD		0xaa
#define NEW		0x55

static void free_media(void *media)
{
	labblk_media_free(media);
}

static struct labblk_media *new_media(struct kunit *test, bool write_back)
{
	struct labblk_media *media;

	media = kunit_kzalloc(test, sizeof(*media), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, media);
	labblk_media_init(media);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, free_media, media));
	media->write_back = write_back;
	labblk_media_power_on(media);
	return media;
}

static u8 *new_buffer(struct kunit *test, size_t len)
{
	u8 *buffer = kunit_kzalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buffer);
	return buffer;
}

static void fill(struct kunit *test, struct labblk_media *media, u64 pos,
		 size_t len, u8 byte, bool fua)
{
	u8 *buffer = new_buffer(test, len);

	memset(buffer, byte, len);
	KUNIT_EXPECT_EQ(test, 0,
			labblk_media_write(media, pos, buffer, len, fua,
					   labblk_media_cuts(media)));
}

static void expect(struct kunit *test, struct labblk_media *media, u64 pos,
		   size_t len, u8 byte)
{
	u8 *buffer = new_buffer(test, len);

	KUNIT_EXPECT_EQ(test, 0, labblk_media_read(media, pos, buffer, len));
	KUNIT_EXPECT_NULL(test, memchr_inv(buffer, byte, len));
}

static void cut_and_power_on(struct labblk_media *media, u64 seed)
{
	labblk_media_power_cut(media, seed);
	labblk_media_power_on(media);
}

static void nothing_written_reads_as_zeros(struct kunit *test)
{
	struct labblk_media *media = new_media(test, true);

	fill(test, media, 512, 512, NEW, false);
	expect(test, media, 0, 512, 0);
	expect(test, media, 1024, SZ_16K, 0);
}

static void read_sees_own_write(struct kunit *test)
{
	static const bool write_back[] = { false, true };
	int i;

	for (i = 0; i < ARRAY_SIZE(write_back); i++) {
		struct labblk_media *media = new_media(test, write_back[i]);

		fill(test, media, 0, SZ_16K, OLD, false);
		KUNIT_EXPECT_EQ(test, 0, labblk_media_flush(media));
		/* From the middle of a page to the middle of another. */
		fill(test, media, 1536, SZ_8K, NEW, false);
		expect(test, media, 0, 1536, OLD);
		expect(test, media, 1536, SZ_8K, NEW);
		expect(test, media, 1536 + SZ_8K, SZ_4K, OLD);
	}
}

static void without_cache_nothing_is_lost(struct kunit *test)
{
	struct labblk_media *media = new_media(test, false);

	fill(test, media, 0, BYTES, NEW, false);
	cut_and_power_on(media, SEED);
	expect(test, media, 0, BYTES, NEW);
}

static void flush_makes_durable(struct kunit *test)
{
	struct labblk_media *media = new_media(test, true);

	fill(test, media, 0, BYTES, NEW, false);
	KUNIT_EXPECT_EQ(test, 0, labblk_media_flush(media));
	KUNIT_EXPECT_TRUE(test, xa_empty(&media->cached));
	cut_and_power_on(media, SEED);
	expect(test, media, 0, BYTES, NEW);
}

static void fua_goes_through(struct kunit *test)
{
	struct labblk_media *media = new_media(test, true);
	u64 pos;

	/* Over what is cached: every second sector. */
	fill(test, media, 0, BYTES, OLD, false);
	for (pos = 0; pos < BYTES; pos += 1024)
		fill(test, media, pos, 512, NEW, true);
	expect(test, media, 0, 512, NEW);
	expect(test, media, 512, 512, OLD);
	cut_and_power_on(media, SEED);
	for (pos = 0; pos < BYTES; pos += 1024)
		expect(test, media, pos, 512, NEW);
}

static void flush_does_not_undo_fua(struct kunit *test)
{
	struct labblk_media *media = new_media(test, true);

	fill(test, media, 0, SZ_4K, OLD, false);
	fill(test, media, 0, SZ_4K, NEW, true);
	KUNIT_EXPECT_EQ(test, 0, labblk_media_flush(media));
	expect(test, media, 0, SZ_4K, NEW);
}

static void write_after_fua_is_newer(struct kunit *test)
{
	struct labblk_media *media = new_media(test, true);

	fill(test, media, 0, SZ_4K, OLD, true);
	fill(test, media, 0, SZ_4K, NEW, false);
	expect(test, media, 0, SZ_4K, NEW);
	KUNIT_EXPECT_EQ(test, 0, labblk_media_flush(media));
	cut_and_power_on(media, SEED);
	expect(test, media, 0, SZ_4K, NEW);
}

static void without_power_all_fails(struct kunit *test)
{
	struct labblk_media *media = new_media(test, true);
	u8 *buffer = new_buffer(test, 512);

	KUNIT_EXPECT_TRUE(test, labblk_media_is_powered(media));
	labblk_media_power_cut(media, SEED);
	KUNIT_EXPECT_FALSE(test, labblk_media_is_powered(media));
	KUNIT_EXPECT_EQ(test, -EIO, labblk_media_read(media, 0, buffer, 512));
	KUNIT_EXPECT_EQ(test, -EIO,
			labblk_media_write(media, 0, buffer, 512, false,
					   labblk_media_cuts(media)));
	KUNIT_EXPECT_EQ(test, -EIO,
			labblk_media_write(media, 0, buffer, 512, true,
					   labblk_media_cuts(media)));
	KUNIT_EXPECT_EQ(test, -EIO, labblk_media_flush(media));
	labblk_media_power_on(media);
	fill(test, media, 0, 512, NEW, false);
	expect(test, media, 0, 512, NEW);
}

/* Durable old data, unflushed new data over it, a power cut: what is left. */
static u8 *leftovers(struct kunit *test, u64 seed)
{
	struct labblk_media *media = new_media(test, true);
	u8 *buffer = new_buffer(test, BYTES);

	fill(test, media, 0, BYTES, OLD, true);
	fill(test, media, 0, BYTES, NEW, false);
	cut_and_power_on(media, seed);
	KUNIT_EXPECT_EQ(test, 0, labblk_media_read(media, 0, buffer, BYTES));
	return buffer;
}

static void expect_lost_kept_and_torn(struct kunit *test, const u8 *left)
{
	unsigned int lost = 0, kept = 0, torn = 0;
	size_t page, sector;

	for (page = 0; page < BYTES; page += PAGE_SIZE) {
		unsigned int newer = 0;

		for (sector = 0; sector < PAGE_SIZE; sector += 512) {
			const u8 *start = left + page + sector;

			KUNIT_EXPECT_TRUE(test, *start == OLD || *start == NEW);
			KUNIT_EXPECT_NULL(test, memchr_inv(start, *start, 512));
			newer += *start == NEW;
		}
		lost += newer == 0;
		kept += newer == PAGE_SECTORS;
		torn += newer && newer < PAGE_SECTORS;
	}
	KUNIT_EXPECT_GT(test, lost, 0);
	KUNIT_EXPECT_GT(test, kept, 0);
	KUNIT_EXPECT_GT(test, torn, 0);
}

static void power_cut_loses_keeps_and_tears(struct kunit *test)
{
	expect_lost_kept_and_torn(test, leftovers(test, SEED));
}

/* Have a write over durable old data in flight until after its power is gone. */
static u8 *in_flight(struct kunit *test, struct labblk_media *media)
{
	u8 *newer = new_buffer(test, BYTES);
	unsigned int nr_cuts = labblk_media_cuts(media);
	size_t at;

	fill(test, media, 0, BYTES, OLD, true);
	memset(newer, NEW, BYTES);
	labblk_media_power_cut(media, SEED);
	KUNIT_EXPECT_EQ(test, -EIO,
			labblk_media_write(media, 0, newer, BYTES, true,
					   nr_cuts));
	for (at = 0; at < BYTES; at += PAGE_SIZE)
		labblk_media_lose(media, at, newer + at, PAGE_SIZE, nr_cuts);
	labblk_media_power_on(media);
	KUNIT_EXPECT_EQ(test, -EIO,
			labblk_media_write(media, 0, newer, BYTES, true,
					   nr_cuts));
	KUNIT_EXPECT_EQ(test, 0, labblk_media_read(media, 0, newer, BYTES));
	return newer;
}

static void power_cut_loses_what_is_in_flight(struct kunit *test)
{
	expect_lost_kept_and_torn(test, in_flight(test, new_media(test, true)));
	expect_lost_kept_and_torn(test,
				  in_flight(test, new_media(test, false)));
}

static void what_power_was_not_cut_for_is_not_lost(struct kunit *test)
{
	struct labblk_media *media = new_media(test, true);
	u8 *newer = new_buffer(test, PAGE_SIZE);
	unsigned int nr_cuts = labblk_media_cuts(media);

	fill(test, media, 0, BYTES, OLD, true);
	labblk_media_lose(media, 0, newer, PAGE_SIZE, nr_cuts);
	cut_and_power_on(media, SEED);
	labblk_media_lose(media, 0, newer, PAGE_SIZE, nr_cuts);
	labblk_media_power_cut(media, SEED);
	labblk_media_lose(media, 0, newer, PAGE_SIZE, nr_cuts);
	labblk_media_power_on(media);
	expect(test, media, 0, BYTES, OLD);
}

static void seed_decides(struct kunit *test)
{
	u8 *left = leftovers(test, SEED);

	KUNIT_EXPECT_MEMEQ(test, left, leftovers(test, SEED), BYTES);
	KUNIT_EXPECT_MEMNEQ(test, left, leftovers(test, SEED + 1), BYTES);
}

static struct kunit_case labblk_media_test_cases[] = {
	KUNIT_CASE(nothing_written_reads_as_zeros),
	KUNIT_CASE(read_sees_own_write),
	KUNIT_CASE(without_cache_nothing_is_lost),
	KUNIT_CASE(flush_makes_durable),
	KUNIT_CASE(fua_goes_through),
	KUNIT_CASE(flush_does_not_undo_fua),
	KUNIT_CASE(write_after_fua_is_newer),
	KUNIT_CASE(without_power_all_fails),
	KUNIT_CASE(power_cut_loses_keeps_and_tears),
	KUNIT_CASE(power_cut_loses_what_is_in_flight),
	KUNIT_CASE(what_power_was_not_cut_for_is_not_lost),
	KUNIT_CASE(seed_decides),
	{}
};

static struct kunit_suite labblk_media_test_suite = {
	.name = "labblk_media",
	.test_cases = labblk_media_test_cases,
};

kunit_test_suite(labblk_media_test_suite);

MODULE_DESCRIPTION("KUnit tests of what a labblk device holds");
MODULE_LICENSE("GPL");
