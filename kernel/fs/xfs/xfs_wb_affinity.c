// SPDX-License-Identifier: GPL-2.0
/*
 * Which inodes of XFS can be written back in parallel.
 *
 * Delayed allocation takes the blocks of a file from one allocation group (AG),
 * that of the inode if nothing else is said, with the AGF buffer held. It only
 * tries to lock that, and goes to the next AG when somebody else has it: two
 * flushers in one AG would not wait for each other, they would scatter the blocks
 * of their files over all AGs. So the files of one AG go to one writeback context,
 * and there are no more contexts in use than AGs.
 *
 * Not every file has its blocks in the AG of its inode. A filestream is in the AG
 * of its directory, which the inode is in too as a rule, and inode32 deals files
 * out to AGs in turn. Nobody can say beforehand which it will be; afterwards the
 * next blocks come from where the last ones did, so that is remembered.
 *
 * Data on the realtime device, zoned or not, is in no AG: realtime groups are
 * dealt out in turn, and zones as they are opened. There the inode number decides,
 * and any number of contexts is of use.
 */
#include "xfs_platform.h"
#include "xfs_fs.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_inode.h"
#include "xfs_alloc.h"
#include "xfs_bmap.h"
#include "xfs_filestream.h"
#include "xfs_wb_affinity.h"

/* The AG that will give a file its next blocks, NULLAGNUMBER: any. */
static xfs_agnumber_t xfs_data_agno(struct xfs_inode *ip)
{
	bool			filestream = xfs_inode_is_filestream(ip);
	xfs_agnumber_t		last = READ_ONCE(ip->i_data_agno);

	if (!filestream && !xfs_is_inode32(ip->i_mount))
		return XFS_INODE_TO_AGNO(ip);
	if (filestream && last == NULLAGNUMBER)
		return XFS_INODE_TO_AGNO(ip);

	return last;
}

/**
 * xfs_note_data_agno - remember where a file got its last blocks
 * @ap: request that was granted, from an AG
 *
 * Context: ILOCK is held for writing; readers do without.
 */
void xfs_note_data_agno(const struct xfs_bmalloca *ap)
{
	if (ap->datatype & XFS_ALLOC_USERDATA)
		WRITE_ONCE(ap->ip->i_data_agno,
			   XFS_FSB_TO_AGNO(ap->ip->i_mount, ap->blkno));
}

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
	xfs_agnumber_t		agno = NULLAGNUMBER;

	if (!XFS_IS_REALTIME_INODE(ip))
		agno = xfs_data_agno(ip);
	if (agno == NULLAGNUMBER)
		return wb_ctx_index(inode->i_ino, nr_wb_ctx);

	return agno % nr_wb_ctx;
}

/**
 * xfs_inode_has_delalloc - does writing an inode back take blocks of an AG?
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
