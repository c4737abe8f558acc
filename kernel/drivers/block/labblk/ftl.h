/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LABBLK_FTL_H
#define _LABBLK_FTL_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

/**
 * struct labblk_unit - a reclaim unit, what flash erases at a time
 * @list: on the free list, or with those that have as many valid pages
 * @written: pages written since it was erased
 * @valid: how many of them still count
 */
struct labblk_unit {
	struct list_head list;
	u32 written;
	u32 valid;
};

/**
 * struct labblk_ftl - a flash translation layer that counts
 * @mutex: held for all that follows; commands may sleep
 * @unit_pages: pages of a reclaim unit
 * @nr_pages: pages that the host sees
 * @nr_units: reclaim units
 * @nr_open: units that can be open: one for each stream, 0 among them, and
 *	the last for the garbage collector
 * @nr_free: units on @free
 * @host_pages: pages that the host has written
 * @media_pages: pages that were written, those moved among them
 * @where: for each page of the host, its page on the media
 * @what: for each page on the media, the page of the host written there
 * @units: the reclaim units
 * @open: index of the unit that is being written to
 * @free: erased units
 * @by_valid: full units, by the number of their valid pages
 */
struct labblk_ftl {
	/* Protects all else. */
	struct mutex mutex;
	u32 unit_pages;
	u32 nr_pages;
	u32 nr_units;
	u32 nr_open;
	u32 nr_free;
	u64 host_pages;
	u64 media_pages;
	u32 *where;
	u32 *what;
	struct labblk_unit *units;
	u32 *open;
	struct list_head free;
	struct list_head *by_valid;
};

int labblk_ftl_init(struct labblk_ftl *ftl, u64 nr_pages, u32 unit_pages,
		    u32 op_percent, u32 max_streams);
void labblk_ftl_free(struct labblk_ftl *ftl);
void labblk_ftl_write(struct labblk_ftl *ftl, u64 page, u32 nr_pages,
		      u32 stream);
void labblk_ftl_discard(struct labblk_ftl *ftl, u64 page, u64 nr_pages);
void labblk_ftl_counts(struct labblk_ftl *ftl, u64 *host_pages,
		       u64 *media_pages);

#endif /* _LABBLK_FTL_H */
