/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __XFS_WB_AFFINITY_H__
#define __XFS_WB_AFFINITY_H__

struct inode;
struct super_block;
struct xfs_bmalloca;

void xfs_note_data_agno(const struct xfs_bmalloca *ap);
unsigned int xfs_get_inode_wb_ctx_idx(struct inode *inode, int nr_wb_ctx);
bool xfs_inode_has_delalloc(struct inode *inode);
int xfs_get_max_wb_ctx(struct super_block *sb);

#endif /* __XFS_WB_AFFINITY_H__ */
