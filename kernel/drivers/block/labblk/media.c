// SPDX-License-Identifier: GPL-2.0
/*
 * What a device holds: the medium, the volatile cache in front of it, and what
 * a power cut leaves of both.
 *
 * Who copies data decides when: a command that does so when it begins has its
 * data here before it ends, and what has gone through to the medium survives a
 * power cut. One that does so at its end is in flight until then, and a cut
 * deals with it as with the cache, see labblk_media_lose().
 */

#include <linux/bitops.h>
#include <linux/cleanup.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/string.h>
#include "labblk.h"

/* Numbers to throw away, for similar seeds begin with similar ones. */
#define LABBLK_WARM_UP	16

/**
 * labblk_media_init - make an empty medium, without power
 * @media: to initialise
 */
void labblk_media_init(struct labblk_media *media)
{
	init_rwsem(&media->sem);
	media->powered = false;
	media->nr_cuts = 0;
	media->write_back = false;
	xa_init(&media->medium);
	xa_init(&media->cached);
}

static void labblk_free_pages(struct xarray *pages)
{
	struct page *page;
	unsigned long index;

	xa_for_each(pages, index, page)
		__free_page(page);
	xa_destroy(pages);
}

/**
 * labblk_media_free - free all that a device holds
 * @media: no command uses it any more
 */
void labblk_media_free(struct labblk_media *media)
{
	labblk_free_pages(&media->cached);
	labblk_free_pages(&media->medium);
}

/* Find a page, or add an empty one; two tasks that add the same get the same. */
static struct page *labblk_get_page(struct xarray *pages, unsigned long index)
{
	struct page *page = xa_load(pages, index);
	struct page *other;

	if (page)
		return page;
	page = alloc_page(GFP_NOIO | __GFP_ZERO);
	if (!page)
		return NULL;
	other = xa_cmpxchg(pages, index, NULL, page, GFP_NOIO);
	if (!other)
		return page;
	__free_page(page);
	return xa_is_err(other) ? NULL : other;
}

/* The bits of those sectors of a page that a range within it covers. */
static unsigned long labblk_sectors(size_t offset, size_t len)
{
	return GENMASK((offset + len - 1) >> SECTOR_SHIFT,
		       offset >> SECTOR_SHIFT);
}

/* What is left of a range up to the end of the page in which it begins. */
static size_t labblk_within_page(u64 pos, size_t len)
{
	return min(len, PAGE_SIZE - offset_in_page(pos));
}

static void labblk_read_page(struct labblk_media *media, u64 pos, void *to,
			     size_t len)
{
	struct page *medium = xa_load(&media->medium, pos >> PAGE_SHIFT);
	struct page *cached = xa_load(&media->cached, pos >> PAGE_SHIFT);
	size_t offset = offset_in_page(pos);
	unsigned long sectors = labblk_sectors(offset, len);
	unsigned int sector;

	if (medium)
		memcpy(to, page_address(medium) + offset, len);
	else
		memset(to, 0, len);
	if (!cached)
		return;
	sectors &= READ_ONCE(cached->private);
	for_each_set_bit(sector, &sectors, PAGE_SECTORS) {
		size_t start = (size_t)sector << SECTOR_SHIFT;

		memcpy(to + start - offset, page_address(cached) + start,
		       SECTOR_SIZE);
	}
}

static int labblk_write_page(struct labblk_media *media, u64 pos,
			     const void *from, size_t len, bool through)
{
	unsigned long index = pos >> PAGE_SHIFT;
	size_t offset = offset_in_page(pos);
	unsigned long sectors = labblk_sectors(offset, len);
	struct page *page, *cached;
	unsigned int sector;

	page = labblk_get_page(through ? &media->medium : &media->cached,
			       index);
	if (!page)
		return -ENOMEM;
	memcpy(page_address(page) + offset, from, len);

	/* Bit by bit, for others may be writing the page's other sectors. */
	cached = through ? xa_load(&media->cached, index) : page;
	if (!cached)
		return 0;
	for_each_set_bit(sector, &sectors, PAGE_SECTORS) {
		if (through)
			clear_bit(sector, &cached->private);
		else
			set_bit(sector, &cached->private);
	}
	return 0;
}

/**
 * labblk_media_read - read what was written last, zeros where nothing was
 * @media: where
 * @pos: first byte, on a sector
 * @to: where the data goes
 * @len: bytes, a multiple of a sector
 *
 * Context: Process context, may sleep.
 * Return: 0, or -EIO without power.
 */
int labblk_media_read(struct labblk_media *media, u64 pos, void *to,
		      size_t len)
{
	guard(rwsem_read)(&media->sem);
	if (!media->powered)
		return -EIO;
	while (len) {
		size_t part = labblk_within_page(pos, len);

		labblk_read_page(media, pos, to, part);
		pos += part;
		to += part;
		len -= part;
	}
	return 0;
}

/**
 * labblk_media_write - write, to the cache if there is one
 * @media: where
 * @pos: first byte, on a sector
 * @from: the data
 * @len: bytes, a multiple of a sector
 * @fua: write through the cache
 * @nr_cuts: labblk_media_cuts() when the command began
 *
 * Context: Process context, may sleep.
 * Return: 0, -EIO without power or if it was cut meanwhile, or -ENOMEM.
 */
int labblk_media_write(struct labblk_media *media, u64 pos, const void *from,
		       size_t len, bool fua, unsigned int nr_cuts)
{
	guard(rwsem_read)(&media->sem);
	if (!media->powered || media->nr_cuts != nr_cuts)
		return -EIO;
	while (len) {
		size_t part = labblk_within_page(pos, len);
		int err = labblk_write_page(media, pos, from, part,
					    fua || !media->write_back);

		if (err)
			return err;
		pos += part;
		from += part;
		len -= part;
	}
	return 0;
}

/* Move some sectors of a cached page to the medium and forget the others. */
static int labblk_settle(struct labblk_media *media, unsigned long index,
			 struct page *cached, unsigned long sectors)
{
	struct page *medium = NULL;
	unsigned int sector;

	if (sectors) {
		medium = labblk_get_page(&media->medium, index);
		if (!medium)
			return -ENOMEM;
	}
	for_each_set_bit(sector, &sectors, PAGE_SECTORS) {
		size_t start = (size_t)sector << SECTOR_SHIFT;

		memcpy(page_address(medium) + start,
		       page_address(cached) + start, SECTOR_SIZE);
	}
	xa_erase(&media->cached, index);
	__free_page(cached);
	return 0;
}

/**
 * labblk_media_flush - make all that is cached durable
 * @media: whose cache
 *
 * Context: Process context, may sleep.
 * Return: 0, -EIO without power, or -ENOMEM with the rest still cached.
 */
int labblk_media_flush(struct labblk_media *media)
{
	struct page *cached;
	unsigned long index;

	guard(rwsem_write)(&media->sem);
	if (!media->powered)
		return -EIO;
	xa_for_each(&media->cached, index, cached) {
		int err = labblk_settle(media, index, cached, cached->private);

		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

/**
 * labblk_media_power_on - let commands succeed from now on
 * @media: whose power
 *
 * Context: Process context, may sleep.
 */
void labblk_media_power_on(struct labblk_media *media)
{
	guard(rwsem_write)(&media->sem);
	media->powered = true;
}

/*
 * Which of a page's cached sectors a power cut leaves: none, all, or some. Takes
 * two numbers whatever it decides, so that pages do not depend on each other.
 */
static unsigned long labblk_survivors(struct rnd_state *rnd,
				      unsigned long sectors)
{
	u32 fate = prandom_u32_state(rnd) % 3;
	u32 torn = prandom_u32_state(rnd);

	if (fate == 0)
		return 0;
	if (fate == 1)
		return sectors;
	return sectors & torn;
}

/**
 * labblk_media_power_cut - let commands fail from now on, and lose cached data
 * @media: whose power
 * @seed: decides what becomes of each cached page: gone, kept or torn; the same
 *	  seed and the same cache leave the same
 *
 * Commands that have begun end before the cut or fail after it.
 *
 * Context: Process context, may sleep.
 */
void labblk_media_power_cut(struct labblk_media *media, u64 seed)
{
	struct page *cached;
	unsigned long index;

	guard(rwsem_write)(&media->sem);
	prandom_seed_state(&media->rnd, seed);
	for (unsigned int i = 0; i < LABBLK_WARM_UP; i++)
		prandom_u32_state(&media->rnd);
	if (media->powered)
		WRITE_ONCE(media->nr_cuts, media->nr_cuts + 1);
	media->powered = false;
	xa_for_each(&media->cached, index, cached) {
		unsigned long left = labblk_survivors(&media->rnd,
						      cached->private);

		/* What finds no memory is gone, as it may be. */
		if (labblk_settle(media, index, cached, left))
			labblk_settle(media, index, cached, 0);
		cond_resched();
	}
}

/**
 * labblk_media_lose - deal with a write that was in flight when power was cut
 * @media: where
 * @pos: first byte, on a sector
 * @from: the data
 * @len: bytes, a multiple of a sector, all of them in one page
 * @nr_cuts: labblk_media_cuts() when the command began
 *
 * It is gone, kept or torn, as what is cached. Nothing becomes of a command
 * that power was not cut for, or that outlives the next power_on().
 *
 * Context: Process context, may sleep.
 */
void labblk_media_lose(struct labblk_media *media, u64 pos, const void *from,
		       size_t len, unsigned int nr_cuts)
{
	size_t offset = offset_in_page(pos);
	unsigned long left;
	unsigned int sector;
	struct page *page;

	guard(rwsem_write)(&media->sem);
	if (media->powered || media->nr_cuts != nr_cuts + 1)
		return;
	left = labblk_survivors(&media->rnd, labblk_sectors(offset, len));
	page = left ? labblk_get_page(&media->medium, pos >> PAGE_SHIFT) : NULL;
	/* What finds no memory is gone, as it may be. */
	if (!page)
		return;
	for_each_set_bit(sector, &left, PAGE_SECTORS) {
		size_t start = (size_t)sector << SECTOR_SHIFT;

		memcpy(page_address(page) + start, from + start - offset,
		       SECTOR_SIZE);
	}
}

/**
 * labblk_media_cuts - tell how often power has been cut
 * @media: whose power
 *
 * Return: a number that labblk_media_write() compares with a later one.
 */
unsigned int labblk_media_cuts(struct labblk_media *media)
{
	return READ_ONCE(media->nr_cuts);
}

/**
 * labblk_media_is_powered - tell whether commands succeed
 * @media: whose power
 *
 * Return: true from labblk_media_power_on() to labblk_media_power_cut().
 */
bool labblk_media_is_powered(struct labblk_media *media)
{
	guard(rwsem_read)(&media->sem);
	return media->powered;
}
