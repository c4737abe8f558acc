/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hints of AG-aware writeback
 * ===========================
 *
 * Each dirty folio carries a hint that names the AG where it will probably end
 * up, and in the mode ag-hint the worker of that AG writes it.
 *
 * These are the calls that the rest of XFS makes. They do nothing as long as
 * that mode was never switched on.
 */
#ifndef __XFS_AGWB_HINT_H__
#define __XFS_AGWB_HINT_H__

#include <linux/jump_label.h>

struct folio;
struct iomap;
struct iomap_writepage_ctx;
struct xfs_inode;

#ifdef CONFIG_XFS_AGWB_HINTS
/* Was ag-hint ever switched on? Until then a folio costs nothing. */
DECLARE_STATIC_KEY_FALSE(xfs_agwb_hints_used);

void __xfs_agwb_hint_dirtied(struct xfs_inode *ip, loff_t offset,
			     ssize_t written, const struct iomap *iomap);
void __xfs_agwb_hint_placed(const struct iomap_writepage_ctx *wpc,
			    struct folio *folio, int error, pgoff_t *uncounted);

/**
 * xfs_agwb_hint_dirtied - folios of a file were written to
 * @ip: inode of the file
 * @offset: where, in bytes
 * @written: how many bytes, or an error
 * @iomap: mapping that holds for all of them
 *
 * The folios get their hints here, when the mapping that they were written
 * under is known and no lock of the inode is held.
 */
static inline void xfs_agwb_hint_dirtied(struct xfs_inode *ip, loff_t offset,
					 ssize_t written,
					 const struct iomap *iomap)
{
	if (static_branch_unlikely(&xfs_agwb_hints_used))
		__xfs_agwb_hint_dirtied(ip, offset, written, iomap);
}

/**
 * xfs_agwb_hint_placed - a folio has got its place on disk
 * @wpc: what is known of the pass over its mapping
 * @folio: locked folio that is being written back
 * @error: its range has no mapping because of this error
 * @uncounted: first index of this pass that is not counted yet
 *
 * Whoever writes the folio back: here its hint ends.
 */
static inline void xfs_agwb_hint_placed(const struct iomap_writepage_ctx *wpc,
					struct folio *folio, int error,
					pgoff_t *uncounted)
{
	if (static_branch_unlikely(&xfs_agwb_hints_used))
		__xfs_agwb_hint_placed(wpc, folio, error, uncounted);
}

void xfs_agwb_hint_truncated(struct xfs_inode *ip, loff_t newsize);
#else
static inline void xfs_agwb_hint_dirtied(struct xfs_inode *ip, loff_t offset,
					 ssize_t written,
					 const struct iomap *iomap)
{
}

static inline void xfs_agwb_hint_placed(const struct iomap_writepage_ctx *wpc,
					struct folio *folio, int error,
					pgoff_t *uncounted)
{
}

static inline void xfs_agwb_hint_truncated(struct xfs_inode *ip,
					   loff_t newsize)
{
}
#endif /* CONFIG_XFS_AGWB_HINTS */

#endif /* __XFS_AGWB_HINT_H__ */
