/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AG-aware writeback: how hints are packed.
 */
#ifndef __XFS_AGWB_HINT_PACK_H__
#define __XFS_AGWB_HINT_PACK_H__

#include <linux/bits.h>
#include <linux/types.h>
#include <linux/xarray.h>

/* one for each worker; beyond as many AGs, several share one */
#define XFS_AGWB_SLOTS		64U

#define XFS_AGWB_HINT_BITS	15
#define XFS_AGWB_HINT_MASK	(BIT(XFS_AGWB_HINT_BITS) - 1)
#define XFS_AGWB_HINT_DELALLOC	BIT(14)
#define XFS_AGWB_HINT_VALID	BIT(13)
#define XFS_AGWB_HINT_AGNO	(BIT(13) - 1)

/* AGs that a hint can name */
#define XFS_AGWB_HINT_AGS	(XFS_AGWB_HINT_AGNO + 1)

/* entries or folios that are looked at before others may run */
#define XFS_AGWB_LOOK_BATCH	1024

/* a value entry of an xarray has one bit less than a long */
#define XFS_AGWB_HINTS_PER_ENTRY	((BITS_PER_LONG - 1) / \
					 XFS_AGWB_HINT_BITS)

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

/**
 * xfs_agwb_is_of_slots - does a hint name an AG of some slots?
 * @hint: the hint, or 0
 * @slots: a bit for each slot
 *
 * Return: %true if so; %false without a hint.
 */
static inline bool xfs_agwb_is_of_slots(u16 hint, u64 slots)
{
	return hint && slots & BIT_ULL(xfs_agwb_slot(xfs_agwb_hint_agno(hint)));
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

bool xfs_agwb_find_hint(struct xarray *hints, u64 slots, pgoff_t *index,
			pgoff_t end);

#endif /* __XFS_AGWB_HINT_PACK_H__ */
