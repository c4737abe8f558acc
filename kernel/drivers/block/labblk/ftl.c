// SPDX-License-Identifier: GPL-2.0
/*
 * A flash translation layer that counts: what would be written to flash, were
 * the device one. It moves no data and takes no time.
 *
 * Flash is written page by page and erased in reclaim units of many pages. A page
 * that is overwritten goes elsewhere; its old place is garbage until the unit is
 * erased, and what else is valid in it has to be moved before. The fewer pages are
 * moved, the smaller is the write amplification: media pages / host pages.
 *
 * - Each stream has an open unit of its own, and so has the garbage collector,
 *   which mixes what it moves (NVMe calls such units initially isolated).
 * - Collection is greedy: of all full units the one with the fewest valid pages,
 *   and of several the one that has had them the longest.
 * - There are as many units as the host's pages and the over-provisioning need,
 *   and the one that collection keeps free. An open one is one of them, so streams
 *   in use take part of the over-provisioning, and idle ones nothing.
 */

#include <linux/cleanup.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "ftl.h"

#define NOWHERE	U32_MAX
#define CLOSED	U32_MAX

/* Collection keeps one unit erased, which is never of use to the host. */
#define RESERVE	1

/* kvmalloc() gives no more at once. */
static bool labblk_fits(u64 count, size_t size)
{
	return count <= div_u64(INT_MAX, size);
}

/**
 * labblk_ftl_init - make a device of flash, erased
 * @ftl: to initialise
 * @nr_pages: pages that the host sees, at least 1
 * @unit_pages: pages of a reclaim unit, at least 1
 * @op_percent: over-provisioning, pages that the host does not see per 100 of
 *	those that it does, at least 1
 * @max_streams: greatest stream
 *
 * Return: 0, -EFBIG if there are more pages or units than a table can hold, or
 * -ENOMEM.
 */
int labblk_ftl_init(struct labblk_ftl *ftl, u64 nr_pages, u32 unit_pages,
		    u32 op_percent, u32 max_streams)
{
	u64 all_pages = nr_pages + div_u64(nr_pages * op_percent, 100);
	u32 nr_open = max_streams + 2;
	/* However many are open, some full one has garbage: see labblk_collect(). */
	u64 nr_units = max(div_u64(all_pages + unit_pages - 1, unit_pages) + RESERVE,
			   div_u64(nr_pages, unit_pages) + 1 + nr_open);

	if (!labblk_fits(nr_units * unit_pages, sizeof(*ftl->what)) ||
	    !labblk_fits(nr_units, sizeof(*ftl->units)))
		return -EFBIG;

	*ftl = (struct labblk_ftl) {
		.unit_pages	= unit_pages,
		.nr_pages	= nr_pages,
		.nr_units	= nr_units,
		.nr_open	= nr_open,
	};
	mutex_init(&ftl->mutex);
	INIT_LIST_HEAD(&ftl->free);
	ftl->where = kvmalloc_objs(*ftl->where, nr_pages);
	ftl->what = kvmalloc_objs(*ftl->what, nr_units * unit_pages);
	ftl->units = kvzalloc_objs(*ftl->units, nr_units);
	ftl->open = kvmalloc_objs(*ftl->open, nr_open);
	ftl->by_valid = kvmalloc_objs(*ftl->by_valid, unit_pages);
	if (!ftl->where || !ftl->what || !ftl->units || !ftl->open ||
	    !ftl->by_valid) {
		labblk_ftl_free(ftl);
		return -ENOMEM;
	}

	for (u32 i = 0; i < nr_pages; i++)
		ftl->where[i] = NOWHERE;
	for (u32 i = 0; i < nr_open; i++)
		ftl->open[i] = CLOSED;
	for (u32 i = 0; i < unit_pages; i++)
		INIT_LIST_HEAD(&ftl->by_valid[i]);
	for (u32 i = 0; i < nr_units; i++)
		list_add_tail(&ftl->units[i].list, &ftl->free);
	ftl->nr_free = nr_units;
	return 0;
}

/**
 * labblk_ftl_free - undo labblk_ftl_init()
 * @ftl: no command uses it any more
 */
void labblk_ftl_free(struct labblk_ftl *ftl)
{
	kvfree(ftl->where);
	kvfree(ftl->what);
	kvfree(ftl->units);
	kvfree(ftl->open);
	kvfree(ftl->by_valid);
	mutex_destroy(&ftl->mutex);
}

static bool labblk_is_full(const struct labblk_ftl *ftl,
			   const struct labblk_unit *unit)
{
	return unit->written == ftl->unit_pages;
}

/* A full unit without garbage is no candidate, so it is on no list. */
static void labblk_rank(struct labblk_ftl *ftl, struct labblk_unit *unit)
{
	list_del_init(&unit->list);
	if (unit->valid < ftl->unit_pages)
		list_add_tail(&unit->list, &ftl->by_valid[unit->valid]);
}

static void labblk_invalidate(struct labblk_ftl *ftl, u32 page)
{
	struct labblk_unit *unit;

	if (ftl->where[page] == NOWHERE)
		return;
	unit = &ftl->units[ftl->where[page] / ftl->unit_pages];
	ftl->where[page] = NOWHERE;
	unit->valid--;
	if (labblk_is_full(ftl, unit))
		labblk_rank(ftl, unit);
}

/* Write a page to the open unit of a stream or the collector. */
static void labblk_append(struct labblk_ftl *ftl, u32 which, u32 page)
{
	struct labblk_unit *unit;
	u32 place;

	if (ftl->open[which] == CLOSED) {
		unit = list_first_entry(&ftl->free, struct labblk_unit, list);
		list_del_init(&unit->list);
		ftl->nr_free--;
		ftl->open[which] = unit - ftl->units;
	}
	unit = &ftl->units[ftl->open[which]];
	place = ftl->open[which] * ftl->unit_pages + unit->written++;
	unit->valid++;
	ftl->what[place] = page;
	ftl->where[page] = place;
	ftl->media_pages++;
	if (labblk_is_full(ftl, unit)) {
		labblk_rank(ftl, unit);
		ftl->open[which] = CLOSED;
	}
}

/* Move what is valid out of the unit with the least of it, and erase that. */
static void labblk_collect(struct labblk_ftl *ftl)
{
	u32 collector = ftl->nr_open - 1;
	struct list_head *list = ftl->by_valid;
	struct labblk_unit *victim;
	u32 place;

	/* Not all full units are full of valid pages: there are too many of them. */
	while (list_empty(list))
		list++;
	victim = list_first_entry(list, struct labblk_unit, list);
	list_del_init(&victim->list);
	place = (victim - ftl->units) * ftl->unit_pages;
	for (u32 i = 0; i < ftl->unit_pages; i++, place++) {
		if (ftl->where[ftl->what[place]] == place)
			labblk_append(ftl, collector, ftl->what[place]);
	}
	victim->written = 0;
	victim->valid = 0;
	list_add_tail(&victim->list, &ftl->free);
	ftl->nr_free++;
}

/*
 * One unit for the stream that asks, and one for the collector to go on with when
 * its own gets full: moving a victim never takes more than one.
 */
static void labblk_make_room(struct labblk_ftl *ftl)
{
	while (ftl->nr_free < RESERVE + 1)
		labblk_collect(ftl);
}

/**
 * labblk_ftl_write - count pages that the host writes
 * @ftl: where to
 * @page: first page
 * @nr_pages: how many
 * @stream: their stream; one that is not there counts as 0
 *
 * Context: Process context, may sleep.
 */
void labblk_ftl_write(struct labblk_ftl *ftl, u64 page, u32 nr_pages,
		      u32 stream)
{
	if (stream >= ftl->nr_open - 1)
		stream = 0;

	guard(mutex)(&ftl->mutex);
	for (; nr_pages; nr_pages--, page++) {
		if (ftl->open[stream] == CLOSED)
			labblk_make_room(ftl);
		labblk_invalidate(ftl, page);
		labblk_append(ftl, stream, page);
		ftl->host_pages++;
	}
}

/**
 * labblk_ftl_discard - take pages for garbage
 * @ftl: where
 * @page: first page
 * @nr_pages: how many
 *
 * Context: Process context, may sleep.
 */
void labblk_ftl_discard(struct labblk_ftl *ftl, u64 page, u64 nr_pages)
{
	guard(mutex)(&ftl->mutex);
	for (; nr_pages; nr_pages--, page++)
		labblk_invalidate(ftl, page);
}

/**
 * labblk_ftl_counts - tell what has been written so far
 * @ftl: where
 * @host_pages: out, pages that the host has written
 * @media_pages: out, pages written to flash for it
 *
 * Context: Process context, may sleep.
 */
void labblk_ftl_counts(struct labblk_ftl *ftl, u64 *host_pages,
		       u64 *media_pages)
{
	guard(mutex)(&ftl->mutex);
	*host_pages = ftl->host_pages;
	*media_pages = ftl->media_pages;
}
