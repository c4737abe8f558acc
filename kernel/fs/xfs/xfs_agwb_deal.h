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
#include <linux/rcupdate_wait.h>
#include <linux/sched.h>
#include <linux/xarray.h>

/* workers; beyond as many AGs, several share one */
#define XFS_AGWB_SLOTS		64U

#define XFS_AGWB_HINT_BITS	15
#define XFS_AGWB_HINT_MASK	(BIT(XFS_AGWB_HINT_BITS) - 1)
#define XFS_AGWB_HINT_DELALLOC	BIT(14)
#define XFS_AGWB_HINT_VALID	BIT(13)
#define XFS_AGWB_HINT_AGNO	(BIT(13) - 1)

/* AGs that a hint can name */
#define XFS_AGWB_HINT_AGS	(XFS_AGWB_HINT_AGNO + 1)

/* a value entry of an xarray has one bit less than a long */
#define XFS_AGWB_HINTS_PER_ENTRY	((BITS_PER_LONG - 1) / \
					 XFS_AGWB_HINT_BITS)

/* entries or folios that are looked at before others may run */
#define XFS_AGWB_LOOK_BATCH	1024

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
 * @agno: number of the AG, below %XFS_AGWB_HINT_AGS
 * @delalloc: there are no blocks for it yet
 *
 * Return: a hint, never 0, which stands for none.
 */
static inline u16 xfs_agwb_make_hint(unsigned int agno, bool delalloc)
{
	return XFS_AGWB_HINT_VALID | agno |
	       (delalloc ? XFS_AGWB_HINT_DELALLOC : 0);
}

/**
 * xfs_agwb_hint_agno - the AG that a hint names
 * @hint: a hint, not 0
 *
 * Return: the number of the AG.
 */
static inline unsigned int xfs_agwb_hint_agno(u16 hint)
{
	return hint & XFS_AGWB_HINT_AGNO;
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
static inline u16 xfs_agwb_get_hint(const void *entry, pgoff_t index)
{
	unsigned long word = entry ? xa_to_value(entry) : 0;

	return word >> xfs_agwb_hint_shift(index) & XFS_AGWB_HINT_MASK;
}

/**
 * xfs_agwb_set_hint - entry with another hint for a folio
 * @entry: present entry, or %NULL
 * @index: of the folio
 * @hint: the hint, or 0 for none
 *
 * Return: the entry; %NULL if there is no hint left in it.
 */
static inline void *xfs_agwb_set_hint(const void *entry, pgoff_t index,
				      u16 hint)
{
	unsigned long word = entry ? xa_to_value(entry) : 0;
	unsigned int shift = xfs_agwb_hint_shift(index);

	word &= ~(XFS_AGWB_HINT_MASK << shift);
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

static inline bool xfs_agwb_is_of_slots(u16 hint, u64 slots)
{
	return hint && slots & BIT_ULL(xfs_agwb_slot(xfs_agwb_hint_agno(hint)));
}

/**
 * xfs_agwb_find_hint - first hint of some slots, or of none of them
 * @hints: hints of an inode
 * @index: where to begin; set to the index of the hint if there is one
 * @end: last index to look at
 * @slots: a bit for each slot
 * @of: whether the hint shall be of these
 * @scanned: hints looked at are added
 *
 * May sleep: a pass may have to look at very many.
 *
 * Return: whether there is one.
 */
static inline bool xfs_agwb_find_hint(struct xarray *hints, pgoff_t *index,
				      pgoff_t end, u64 slots, bool of,
				      u64 *scanned)
{
	XA_STATE(xas, hints, *index / XFS_AGWB_HINTS_PER_ENTRY);
	unsigned int seen = 0;
	void *entry;

	rcu_read_lock();
	xas_for_each(&xas, entry, end / XFS_AGWB_HINTS_PER_ENTRY) {
		pgoff_t at = xas.xa_index * XFS_AGWB_HINTS_PER_ENTRY;

		if (xas_retry(&xas, entry))
			continue;
		for (int i = 0; i < XFS_AGWB_HINTS_PER_ENTRY; i++, at++) {
			u16 hint = xfs_agwb_get_hint(entry, at);

			if (!hint || at < *index || at > end)
				continue;
			(*scanned)++;
			if (xfs_agwb_is_of_slots(hint, slots) != of)
				continue;
			rcu_read_unlock();
			*index = at;
			return true;
		}
		if (++seen % XFS_AGWB_LOOK_BATCH == 0) {
			xas_pause(&xas);
			cond_resched_rcu();
		}
	}
	rcu_read_unlock();
	return false;
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

/* Last index of a run that begins at @first and has @most folios at most. */
static inline pgoff_t xfs_agwb_run_end(pgoff_t first, unsigned long most)
{
	return most - 1 > ULONG_MAX - first ? ULONG_MAX : first + most - 1;
}

/* A run of a slot begins with a hint of it, and has no hint of another. */
static inline bool xfs_agwb_run_of_slot(u64 slot, unsigned long most,
					struct xarray *hints, pgoff_t *first,
					pgoff_t *last, u64 *scanned)
{
	pgoff_t index;

	if (!xfs_agwb_find_hint(hints, first, ULONG_MAX, slot, true, scanned))
		return false;

	index = *first;
	*last = xfs_agwb_run_end(*first, most);
	if (xfs_agwb_find_hint(hints, &index, *last, slot, false, scanned))
		*last = index - 1;
	return true;
}

/* First dirty folio that has no hint of @others. */
static inline bool xfs_agwb_first_of_rest(u64 others, struct xarray *folios,
					  struct xarray *hints, pgoff_t *first,
					  u64 *scanned)
{
	XA_STATE(folio, folios, *first);
	unsigned int seen = 0;
	void *entry;

	rcu_read_lock();
	xas_for_each_marked(&folio, entry, ULONG_MAX, PAGECACHE_TAG_DIRTY) {
		pgoff_t index = folio.xa_index;
		void *hint;

		/* a large folio around the first index is found at its own */
		if (xas_retry(&folio, entry) || index < *first)
			continue;
		hint = xa_load(hints, index / XFS_AGWB_HINTS_PER_ENTRY);
		if (!xfs_agwb_is_of_slots(xfs_agwb_get_hint(hint, index),
					  others)) {
			rcu_read_unlock();
			*first = index;
			return true;
		}
		(*scanned)++;
		if (++seen % XFS_AGWB_LOOK_BATCH == 0) {
			xas_pause(&folio);
			cond_resched_rcu();
		}
	}
	rcu_read_unlock();
	return false;
}

/* A run of the rest begins with such a folio and ends before others' hints. */
static inline bool xfs_agwb_run_of_rest(u64 others, unsigned long most,
					struct xarray *folios,
					struct xarray *hints, pgoff_t *first,
					pgoff_t *last, u64 *scanned)
{
	pgoff_t index;

	if (!xfs_agwb_first_of_rest(others, folios, hints, first, scanned))
		return false;

	index = *first;
	*last = xfs_agwb_run_end(*first, most);
	if (xfs_agwb_find_hint(hints, &index, *last, others, true, scanned) &&
	    index > *first)
		*last = index - 1;
	return true;
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
 * @most: folios that the pass may still write, so no run is longer
 * @on_disk: pages up to the size that the file has on disk
 * @folios: folios of the mapping
 * @hints: hints of the inode
 * @first: index to begin at; set to the first of the run
 * @last: set to the last index of the run
 * @scanned: hints looked at are added
 *
 * Folios that are clean, or of nobody in particular, may lie within a run.
 *
 * Only a pass that writes every folio, in order, goes beyond the size on disk:
 * the size would cover what another pass has yet to write.
 *
 * Return: %false if there is no further run.
 */
static inline bool xfs_agwb_next_run(const struct xfs_agwb_share *share,
				     unsigned long most, pgoff_t on_disk,
				     struct xarray *folios,
				     struct xarray *hints, pgoff_t *first,
				     pgoff_t *last, u64 *scanned)
{
	bool found = false;

	switch (share->kind) {
	case XFS_AGWB_SHARE_ALL:
		*last = ULONG_MAX;
		return xfs_agwb_next_dirty(folios, first);
	case XFS_AGWB_SHARE_STRETCHES:
		found = xfs_agwb_run_of_stretches(share, folios, first, last);
		break;
	case XFS_AGWB_SHARE_SLOT:
		found = xfs_agwb_run_of_slot(BIT_ULL(share->number), most,
					     hints, first, last, scanned);
		break;
	case XFS_AGWB_SHARE_REST:
		found = xfs_agwb_run_of_rest(share->others, most, folios, hints,
					     first, last, scanned);
		break;
	}
	if (!found || *first >= on_disk)
		return false;

	*last = min(*last, on_disk - 1);
	return true;
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
