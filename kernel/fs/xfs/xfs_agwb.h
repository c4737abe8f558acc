/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AG-aware writeback
 * ==================
 *
 * The flusher hands background and periodic writeback of a large file over to
 * workers of the filesystem, one per allocation group (AG), and goes on to the
 * next file. Which worker writes which folio is decided by a hint that each
 * dirty folio carries, or by simpler rules to compare that with.
 *
 * These are the calls that the rest of XFS makes. They do nothing for a mount
 * where no mode was ever switched on.
 */
#ifndef __XFS_AGWB_H__
#define __XFS_AGWB_H__

struct folio;
struct iomap;
struct iomap_writepage_ctx;
struct writeback_control;
struct xfs_inode;
struct xfs_mount;

int xfs_agwb_mount(struct xfs_mount *mp);
void xfs_agwb_unmount(struct xfs_mount *mp);

void xfs_agwb_dirtied(struct xfs_inode *ip, loff_t offset, ssize_t written,
		      const struct iomap *iomap);
void xfs_agwb_placed(const struct iomap_writepage_ctx *wpc,
		     struct folio *folio, int error, pgoff_t *uncounted);
void xfs_agwb_truncated(struct xfs_inode *ip, loff_t newsize);
void xfs_agwb_evict(struct xfs_inode *ip);

bool xfs_agwb_hand_over(struct xfs_inode *ip, struct writeback_control *wbc);

#endif /* __XFS_AGWB_H__ */
