// SPDX-License-Identifier: GPL-2.0
/*
 * AG-aware writeback: the hints of an inode are looked through.
 */
#include <linux/rcupdate.h>
#include <linux/rcupdate_wait.h>
#include <linux/sched.h>
#include "xfs_agwb_hint_pack.h"

/**
 * xfs_agwb_find_hint - first hint of some slots
 * @hints: hints of an inode
 * @slots: a bit for each slot
 * @index: where to begin; set to the index of the hint if there is one
 * @end: last index to look at
 *
 * May sleep: there may be very many.
 *
 * Return: whether there is one.
 */
bool xfs_agwb_find_hint(struct xarray *hints, u64 slots, pgoff_t *index,
			pgoff_t end)
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

			if (at < *index || at > end ||
			    !xfs_agwb_is_of_slots(hint, slots))
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
