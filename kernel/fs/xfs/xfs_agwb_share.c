// SPDX-License-Identifier: GPL-2.0
/*
 * AG-aware writeback: which folios of a file one pass writes.
 *
 * A pass writes its share run by run. Nothing here knows of inodes or mounts,
 * so that it can be tested by itself.
 */
#include <linux/bits.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/xarray.h>
#include "xfs_agwb_share.h"

/**
 * xfs_agwb_next_dirty - first dirty folio that begins at an index or after it
 * @folios: folios of a mapping
 * @index: where to begin; set to the index of the folio
 *
 * Return: %false if there is none.
 */
bool xfs_agwb_next_dirty(struct xarray *folios, pgoff_t *index)
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

static bool xfs_agwb_next_stretch(const struct xfs_agwb_share *share,
				  struct xarray *folios, pgoff_t *first,
				  pgoff_t *last)
{
	while (xfs_agwb_next_dirty(folios, first)) {
		pgoff_t stretch = *first >> XFS_AGWB_STRETCH_SHIFT;
		unsigned int ahead = (share->remainder + share->modulus -
				      stretch % share->modulus) %
				     share->modulus;

		if (!ahead) {
			*last = *first | (BIT(XFS_AGWB_STRETCH_SHIFT) - 1);
			return true;
		}
		/* no further stretch can be indexed on 32-bit */
		if (stretch + ahead > ULONG_MAX >> XFS_AGWB_STRETCH_SHIFT)
			return false;
		*first = (stretch + ahead) << XFS_AGWB_STRETCH_SHIFT;
	}
	return false;
}

/**
 * xfs_agwb_next_run - next folios that a pass writes
 * @share: its share
 * @on_disk: pages up to the size that the file has on disk
 * @folios: folios of the mapping
 * @first: index to begin at; set to the first of the run
 * @last: set to the last index of the run
 *
 * Folios that are clean may lie within a run.
 *
 * Only a pass that writes every folio, in order, goes beyond the size on disk:
 * the size would cover what another pass has yet to write.
 *
 * Return: %false if there is no further run.
 */
bool xfs_agwb_next_run(const struct xfs_agwb_share *share, pgoff_t on_disk,
		       struct xarray *folios, pgoff_t *first, pgoff_t *last)
{
	bool found = false;

	switch (share->kind) {
	case XFS_AGWB_SHARE_ALL:
		*last = ULONG_MAX;
		return xfs_agwb_next_dirty(folios, first);
	case XFS_AGWB_SHARE_STRETCHES:
		found = xfs_agwb_next_stretch(share, folios, first, last);
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
 * Return: its part; all parts add up to @pages.
 */
long xfs_agwb_budget(long pages, unsigned int nr, unsigned int i)
{
	return pages / nr + (i < pages % nr);
}
