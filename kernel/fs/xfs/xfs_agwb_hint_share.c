// SPDX-License-Identifier: GPL-2.0
/*
 * AG-aware writeback: which folios of a file a pass writes by their hints.
 *
 * As in xfs_agwb_share.c, nothing here knows of inodes or mounts.
 */
#include <linux/pagemap.h>
#include <linux/rcupdate.h>
#include <linux/rcupdate_wait.h>
#include <linux/sched.h>
#include "xfs_agwb_share.h"
#include "xfs_agwb_hint_pack.h"
#include "xfs_agwb_hint_share.h"

/* Last index of a run that begins at @first and has @most folios at most. */
static pgoff_t xfs_agwb_run_end(pgoff_t first, unsigned long most)
{
	return most - 1 > ULONG_MAX - first ? ULONG_MAX : first + most - 1;
}

/* A run of a slot begins with a hint of it, and has no hint of another. */
static bool xfs_agwb_run_of_slot(const struct xfs_agwb_share *share,
				 pgoff_t *first, pgoff_t *last)
{
	u64 slot = BIT_ULL(share->slot);
	pgoff_t index;

	if (!xfs_agwb_find_hint(share->hints, slot, first, ULONG_MAX))
		return false;

	index = *first;
	*last = xfs_agwb_run_end(*first, share->budget);
	/* a hint that is replaced meanwhile does not end a run before it begins */
	if (xfs_agwb_find_hint(share->hints, ~slot, &index, *last) &&
	    index > *first)
		*last = index - 1;
	return true;
}

/* First dirty folio that has no hint of slots that other passes write. */
static bool xfs_agwb_first_of_rest(const struct xfs_agwb_share *share,
				   struct xarray *folios, pgoff_t *first)
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
		hint = xa_load(share->hints, index / XFS_AGWB_HINTS_PER_ENTRY);
		if (!xfs_agwb_is_of_slots(xfs_agwb_get_hint(hint, index),
					  share->others)) {
			rcu_read_unlock();
			*first = index;
			return true;
		}
		if (++seen % XFS_AGWB_LOOK_BATCH == 0) {
			xas_pause(&folio);
			cond_resched_rcu();
		}
	}
	rcu_read_unlock();
	return false;
}

/* A run of the rest begins with such a folio and ends before others' hints. */
static bool xfs_agwb_run_of_rest(const struct xfs_agwb_share *share,
				 struct xarray *folios, pgoff_t *first,
				 pgoff_t *last)
{
	pgoff_t index;

	if (!xfs_agwb_first_of_rest(share, folios, first))
		return false;

	index = *first;
	*last = xfs_agwb_run_end(*first, share->budget);
	if (xfs_agwb_find_hint(share->hints, share->others, &index, *last) &&
	    index > *first)
		*last = index - 1;
	return true;
}

/**
 * xfs_agwb_next_hinted_run - next folios that a pass writes by their hints
 * @share: its share
 * @folios: folios of the mapping
 * @first: index to begin at; set to the first of the run
 * @last: set to the last index of the run
 *
 * Folios without a hint, clean or not, may lie within a run, which has no more
 * folios than the pass may write.
 *
 * Return: %false if there is no further run.
 */
bool xfs_agwb_next_hinted_run(const struct xfs_agwb_share *share,
			      struct xarray *folios, pgoff_t *first,
			      pgoff_t *last)
{
	if (share->kind == XFS_AGWB_SHARE_SLOT)
		return xfs_agwb_run_of_slot(share, first, last);

	return xfs_agwb_run_of_rest(share, folios, first, last);
}
