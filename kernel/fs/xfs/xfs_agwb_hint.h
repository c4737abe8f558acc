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

struct folio;
struct iomap;
struct iomap_writepage_ctx;
struct xfs_inode;

#ifdef CONFIG_XFS_AGWB_HINTS
void xfs_agwb_hint_dirtied(struct xfs_inode *ip, loff_t offset,
			   ssize_t written, const struct iomap *iomap);
void xfs_agwb_hint_placed(const struct iomap_writepage_ctx *wpc,
			  struct folio *folio, int error, pgoff_t *uncounted);
void xfs_agwb_hint_truncated(struct xfs_inode *ip, loff_t newsize);
void xfs_agwb_hint_evict(struct xfs_inode *ip);
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

static inline void xfs_agwb_hint_evict(struct xfs_inode *ip)
{
}
#endif /* CONFIG_XFS_AGWB_HINTS */

#endif /* __XFS_AGWB_HINT_H__ */
