// SPDX-License-Identifier: GPL-2.0
/*
 * Which inodes of XFS can be written back in parallel.
 *
 * Delayed allocation takes its blocks from the allocation group (AG) of the
 * inode, with the AGF buffer held. It only tries to lock that, and goes to the
 * next AG when somebody else has it: two flushers in one AG would not wait for
 * each other, they would scatter the blocks of their files over all AGs. So the
 * inodes of one AG go to one writeback context, and there are no more contexts
 * in use than AGs.
 *
 * Data on the realtime device, zoned or not, is not bound to the AG of its
 * inode: realtime groups are dealt out in turn, and zones as they are opened.
 * There the inode number decides, and any number of contexts is of use.
 */
#include "xfs_platform.h"
#include "xfs_fs.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_inode.h"
#include "xfs_wb_affinity.h"

/**
 * xfs_get_inode_wb_ctx_idx - writeback context of an inode
 * @inode: inode of interest
 * @nr_wb_ctx: number of contexts in use
 *
 * Return: an index below @nr_wb_ctx.
 */
unsigned int xfs_get_inode_wb_ctx_idx(struct inode *inode, int nr_wb_ctx)
{
	struct xfs_inode	*ip = XFS_I(inode);

	if (XFS_IS_REALTIME_INODE(ip))
		return wb_ctx_index(inode->i_ino, nr_wb_ctx);

	return XFS_INO_TO_AGNO(ip->i_mount, inode->i_ino) % nr_wb_ctx;
}

/**
 * xfs_inode_has_delalloc - does writing an inode back take blocks of its AG?
 * @inode: inode of interest
 *
 * Return: %true while it has blocks that are reserved and not allocated.
 */
bool xfs_inode_has_delalloc(struct inode *inode)
{
	struct xfs_inode	*ip = XFS_I(inode);

	return !XFS_IS_REALTIME_INODE(ip) && READ_ONCE(ip->i_delayed_blks);
}

/**
 * xfs_get_max_wb_ctx - number of writeback contexts that are of use
 * @sb: mounted superblock
 *
 * Return: the number of AGs, which changes when the filesystem is grown.
 */
int xfs_get_max_wb_ctx(struct super_block *sb)
{
	struct xfs_mount	*mp = XFS_M(sb);

	return xfs_has_realtime(mp) ? INT_MAX : mp->m_sb.sb_agcount;
}
