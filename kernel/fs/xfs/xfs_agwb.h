/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AG-aware writeback
 * ==================
 *
 * The flusher hands background and periodic writeback of a large file over to
 * workers of the filesystem, one per allocation group (AG), and goes on to the
 * next file. The worker of the inode's AG writes the whole file, or all workers
 * write a part of it each.
 *
 * These are the calls that the rest of XFS makes. They do nothing for a mount
 * where no mode was ever switched on.
 */
#ifndef __XFS_AGWB_H__
#define __XFS_AGWB_H__

struct folio;
struct writeback_control;
struct xfs_inode;
struct xfs_mount;

int xfs_agwb_mount(struct xfs_mount *mp);
void xfs_agwb_unmount(struct xfs_mount *mp);

bool xfs_agwb_hand_over(struct xfs_inode *ip, struct writeback_control *wbc);
void xfs_agwb_reached(struct writeback_control *wbc, struct folio *folio);
void xfs_agwb_evict(struct xfs_inode *ip);

#endif /* __XFS_AGWB_H__ */
