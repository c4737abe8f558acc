/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AG-aware writeback: which folios of a file a pass writes by their hints.
 */
#ifndef __XFS_AGWB_HINT_SHARE_H__
#define __XFS_AGWB_HINT_SHARE_H__

#include <linux/types.h>

struct xarray;
struct xfs_agwb_share;

#ifdef CONFIG_XFS_AGWB_HINTS
bool xfs_agwb_next_hinted_run(const struct xfs_agwb_share *share,
			      struct xarray *folios, pgoff_t *first,
			      pgoff_t *last);
#else
static inline bool xfs_agwb_next_hinted_run(const struct xfs_agwb_share *share,
					    struct xarray *folios,
					    pgoff_t *first, pgoff_t *last)
{
	return false;
}
#endif

#endif /* __XFS_AGWB_HINT_SHARE_H__ */
