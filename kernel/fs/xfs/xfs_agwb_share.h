/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AG-aware writeback: which folios of a file one pass writes.
 */
#ifndef __XFS_AGWB_SHARE_H__
#define __XFS_AGWB_SHARE_H__

#include <linux/pagemap.h>
#include <linux/types.h>

struct xarray;

/* stretches of 4 MiB, where no AG counts */
#define XFS_AGWB_STRETCH_SHIFT	(22 - PAGE_SHIFT)

enum xfs_agwb_share_kind {
	XFS_AGWB_SHARE_ALL,		/* every folio */
	XFS_AGWB_SHARE_STRETCHES,	/* those of every nth stretch */
};

/**
 * struct xfs_agwb_share - which folios of a file one pass writes
 * @kind: by what they are chosen
 * @budget: how many pages it may write
 * @modulus: of stretches, every so many-th is in the share
 * @remainder: of stretches, the number of the first one
 */
struct xfs_agwb_share {
	enum xfs_agwb_share_kind kind;
	long budget;
	unsigned int modulus;
	unsigned int remainder;
};

bool xfs_agwb_next_dirty(struct xarray *folios, pgoff_t *index);
bool xfs_agwb_next_run(const struct xfs_agwb_share *share, pgoff_t on_disk,
		       struct xarray *folios, pgoff_t *first, pgoff_t *last);
long xfs_agwb_budget(long pages, unsigned int nr, unsigned int i);

#endif /* __XFS_AGWB_SHARE_H__ */
