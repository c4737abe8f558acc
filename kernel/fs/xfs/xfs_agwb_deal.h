/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AG-aware writeback: how hints are packed, and who is dealt which folios.
 *
 * Nothing here knows of inodes or mounts, so that it can be tested by itself.
 */
#ifndef __XFS_AGWB_DEAL_H__
#define __XFS_AGWB_DEAL_H__

#include <linux/bits.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/pagemap.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/xarray.h>

/* AGs that a hint can tell apart; further ones share these slots */
#define XFS_AGWB_SLOTS		64

#define XFS_AGWB_HINT_BITS	8
#define XFS_AGWB_HINT_DELALLOC	BIT(7)
#define XFS_AGWB_HINT_VALID	BIT(6)
#define XFS_AGWB_HINT_SLOT	(XFS_AGWB_SLOTS - 1)

/* a value entry of an xarray has one bit less than a long */
#define XFS_AGWB_HINTS_PER_ENTRY	(BITS_PER_LONG / XFS_AGWB_HINT_BITS / 2)

/* folios of one stretch, 4 MiB of them, go to one worker where no AG counts */
#define XFS_AGWB_STRETCH_SHIFT	(22 - PAGE_SHIFT)

/**
 * xfs_agwb_slot - slot of an AG
 * @agno: number of the AG
 *
 * Return: a number below %XFS_AGWB_SLOTS.
 */
static inline unsigned int xfs_agwb_slot(unsigned int agno)
{
	return agno % XFS_AGWB_SLOTS;
}

/**
 * xfs_agwb_make_hint - where a folio will probably be written to
 * @agno: number of the AG
 * @delalloc: there are no blocks for it yet
 *
 * Return: a hint, never 0, which stands for none.
 */
static inline u8 xfs_agwb_make_hint(unsigned int agno, bool delalloc)
{
	return XFS_AGWB_HINT_VALID | xfs_agwb_slot(agno) |
	       (delalloc ? XFS_AGWB_HINT_DELALLOC : 0);
}

/* Bit that the hint of a folio begins at in its entry. */
static inline unsigned int xfs_agwb_hint_shift(pgoff_t index)
{
	return index % XFS_AGWB_HINTS_PER_ENTRY * XFS_AGWB_HINT_BITS;
}

/**
 * xfs_agwb_get_hint - hint of a folio
 * @entry: entry of the hints, or %NULL
 * @index: of the folio, whose hint the entry has if there is one
 *
 * Return: the hint, or 0.
 */
static inline u8 xfs_agwb_get_hint(const void *entry, pgoff_t index)
{
	unsigned long word = entry ? xa_to_value(entry) : 0;

	return word >> xfs_agwb_hint_shift(index);
}

/**
 * xfs_agwb_set_hint - entry with another hint for a folio
 * @entry: present entry, or %NULL
 * @index: of the folio
 * @hint: the hint, or 0 for none
 *
 * Return: the entry; %NULL if there is no hint left in it.
 */
static inline void *xfs_agwb_set_hint(const void *entry, pgoff_t index, u8 hint)
{
	unsigned long word = entry ? xa_to_value(entry) : 0;
	unsigned int shift = xfs_agwb_hint_shift(index);

	word &= ~((unsigned long)U8_MAX << shift);
	word |= (unsigned long)hint << shift;
	return word ? xa_mk_value(word) : NULL;
}

/**
 * xfs_agwb_cut_entry - entry without the hints from a folio on
 * @entry: present entry, or %NULL
 * @index: of the first folio that loses its hint
 *
 * Return: the entry; %NULL if there is no hint left in it.
 */
static inline void *xfs_agwb_cut_entry(const void *entry, pgoff_t index)
{
	unsigned long word = entry ? xa_to_value(entry) : 0;

	word &= BIT(xfs_agwb_hint_shift(index)) - 1;
	return word ? xa_mk_value(word) : NULL;
}

/**
 * xfs_agwb_next_hint - first folio with a hint
 * @hints: hints of an inode
 * @index: where to begin; set to the index of the folio
 *
 * May sleep: a pass may have to look at very many.
 *
 * Return: its hint, or 0 if there is none from @index on.
 */
static inline u8 xfs_agwb_next_hint(struct xarray *hints, pgoff_t *index)
{
	unsigned long key = *index / XFS_AGWB_HINTS_PER_ENTRY;
	pgoff_t begin = *index;
	void *entry;

	cond_resched();
	for (entry = xa_find(hints, &key, ULONG_MAX, XA_PRESENT); entry;
	     entry = xa_find_after(hints, &key, ULONG_MAX, XA_PRESENT)) {
		pgoff_t first = key * XFS_AGWB_HINTS_PER_ENTRY;

		for (int i = 0; i < XFS_AGWB_HINTS_PER_ENTRY; i++) {
			u8 hint = xfs_agwb_get_hint(entry, first + i);

			if (hint && first + i >= begin) {
				*index = first + i;
				return hint;
			}
		}
	}
	return 0;
}

/**
 * xfs_agwb_next_dirty - first dirty folio that begins at an index or after it
 * @folios: folios of a mapping
 * @index: where to begin; set to the index of the folio
 *
 * Return: %false if there is none.
 */
static inline bool xfs_agwb_next_dirty(struct xarray *folios, pgoff_t *index)
{
	XA_STATE(xas, folios, *index);
	void *entry;

	rcu_read_lock();
	do {
		/* a large folio around the index is found at its own one */
		entry = xas_find_marked(&xas, ULONG_MAX, PAGECACHE_TAG_DIRTY);
	} while (entry && (xas_retry(&xas, entry) || xas.xa_index < *index));
	rcu_read_unlock();

	if (entry)
		*index = xas.xa_index;
	return entry;
}

/* which folios of a mapping a pass writes */
enum xfs_agwb_share_kind {
	XFS_AGWB_SHARE_ALL,		/* every one */
	XFS_AGWB_SHARE_STRETCHES,	/* each @of-th stretch, from @number on */
	XFS_AGWB_SHARE_SLOT,		/* those with a hint of slot @number */
	XFS_AGWB_SHARE_REST,		/* those without a hint of @others */
};

struct xfs_agwb_share {
	enum xfs_agwb_share_kind kind;
	unsigned int number;
	unsigned int of;
	u64 others;			/* slots that other passes write */
};

static inline bool xfs_agwb_is_of_slots(u8 hint, u64 slots)
{
	return hint && slots & BIT_ULL(hint & XFS_AGWB_HINT_SLOT);
}

/* A run of a slot begins and ends with a hint of it, and has no other in it. */
static inline bool xfs_agwb_run_of_slot(u64 slot, struct xarray *hints,
					pgoff_t *first, pgoff_t *last,
					u64 *scanned)
{
	bool found = false;
	pgoff_t index = *first;
	u8 hint;

	while ((hint = xfs_agwb_next_hint(hints, &index))) {
		(*scanned)++;
		if (xfs_agwb_is_of_slots(hint, slot)) {
			if (!found)
				*first = index;
			*last = index;
			found = true;
		} else if (found) {
			break;
		}
		index++;
	}
	return found;
}

/* A run of the rest begins with a dirty folio and ends before others' hints. */
static inline bool xfs_agwb_run_of_rest(u64 others, struct xarray *folios,
					struct xarray *hints, pgoff_t *first,
					pgoff_t *last, u64 *scanned)
{
	pgoff_t index = *first;
	u8 hint;

	while (xfs_agwb_next_dirty(folios, first)) {
		/* what is not dirty needs no look at its hint */
		index = max(index, *first);
		while ((hint = xfs_agwb_next_hint(hints, &index))) {
			(*scanned)++;
			if (xfs_agwb_is_of_slots(hint, others))
				break;
			index++;
		}
		if (!hint) {
			*last = ULONG_MAX;
			return true;
		}
		if (index > *first) {
			*last = index - 1;
			return true;
		}
		(*first)++;
	}
	return false;
}

static inline bool xfs_agwb_run_of_stretches(const struct xfs_agwb_share *share,
					     struct xarray *folios,
					     pgoff_t *first, pgoff_t *last)
{
	while (xfs_agwb_next_dirty(folios, first)) {
		pgoff_t stretch = *first >> XFS_AGWB_STRETCH_SHIFT;
		unsigned int ahead = (share->number + share->of -
				      stretch % share->of) % share->of;

		if (!ahead) {
			*last = *first | (BIT(XFS_AGWB_STRETCH_SHIFT) - 1);
			return true;
		}
		*first = (stretch + ahead) << XFS_AGWB_STRETCH_SHIFT;
	}
	return false;
}

/**
 * xfs_agwb_next_run - next folios that a pass writes
 * @share: what it was dealt
 * @folios: folios of the mapping
 * @hints: hints of the inode
 * @first: index to begin at; set to the first of the run
 * @last: set to the last index of the run
 * @scanned: hints looked at are added
 *
 * Folios that are clean, or of nobody in particular, may lie within a run.
 *
 * Return: %false if there is no further run.
 */
static inline bool xfs_agwb_next_run(const struct xfs_agwb_share *share,
				     struct xarray *folios,
				     struct xarray *hints, pgoff_t *first,
				     pgoff_t *last, u64 *scanned)
{
	switch (share->kind) {
	case XFS_AGWB_SHARE_STRETCHES:
		return xfs_agwb_run_of_stretches(share, folios, first, last);
	case XFS_AGWB_SHARE_SLOT:
		return xfs_agwb_run_of_slot(BIT_ULL(share->number), hints,
					    first, last, scanned);
	case XFS_AGWB_SHARE_REST:
		return xfs_agwb_run_of_rest(share->others, folios, hints,
					    first, last, scanned);
	case XFS_AGWB_SHARE_ALL:
		break;
	}
	*last = ULONG_MAX;
	return xfs_agwb_next_dirty(folios, first);
}

/**
 * xfs_agwb_budget - pages that one of several passes may write
 * @pages: what all of them may write
 * @nr: number of passes
 * @i: this one
 *
 * Return: its share; all shares add up to @pages.
 */
static inline long xfs_agwb_budget(long pages, unsigned int nr, unsigned int i)
{
	return pages / nr + (i < pages % nr);
}

#endif /* __XFS_AGWB_DEAL_H__ */
