// SPDX-License-Identifier: GPL-2.0
/*
 * Write streams of XFS: which a file can have, what the device hears of it, and
 * which allocation groups (AGs) its blocks come from.
 *
 * If the device has streams, those are the file's (hardware streams). If not, XFS
 * offers some of its own (software streams), which only place. Either way the
 * stream is kept apart from the others by AGs of its own, see xfs_ag_set.c and
 * xfs_write_stream_alloc.c.
 *
 * Realtime files have no AGs, and files with a filestream have the AG of their
 * directory; for both only hardware streams are left. The AGs that inode32 keeps
 * for inodes belong to no stream.
 */
#include "xfs_platform.h"
#include "xfs_fs.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_inode.h"
#include "xfs_filestream.h"
#include "xfs_ag.h"
#include "xfs_ag_set.h"

static unsigned int xfs_hardware_streams(struct xfs_inode *ip)
{
	struct block_device	*bdev = xfs_inode_buftarg(ip)->bt_bdev;

	if (!READ_ONCE(ip->i_mount->m_write_streams.hardware))
		return 0;

	return bdev_max_write_streams(bdev);
}

static bool xfs_has_stream_ags(struct xfs_inode *ip)
{
	return READ_ONCE(ip->i_mount->m_write_streams.stream_ags) &&
	       !XFS_IS_REALTIME_INODE(ip) && !xfs_inode_is_filestream(ip);
}

/**
 * xfs_max_write_streams - the greatest stream that a file can be given
 * @inode: a regular file
 *
 * Return: as many streams as make a difference now, 0 for none.
 */
unsigned int xfs_max_write_streams(struct inode *inode)
{
	struct xfs_inode	*ip = XFS_I(inode);
	unsigned int		hardware = xfs_hardware_streams(ip);

	if (hardware)
		return min(hardware, U8_MAX);
	if (!xfs_has_stream_ags(ip))
		return 0;

	return READ_ONCE(ip->i_mount->m_write_streams.software);
}

/* xfs_device_write_stream() of a file that names a stream */
u8 __xfs_device_write_stream(struct inode *inode, u8 stream)
{
	return stream <= xfs_hardware_streams(XFS_I(inode)) ? stream : 0;
}

/**
 * xfs_limit_write_stream - forget a stream in a write that the device lacks
 * @iocb: a direct write
 *
 * What names such a stream, or one of a device that is not to hear of them, is
 * written as if it named none, as buffered writes are.
 */
void xfs_limit_write_stream(struct kiocb *iocb)
{
	if (iocb->ki_write_stream)
		iocb->ki_write_stream =
			__xfs_device_write_stream(file_inode(iocb->ki_filp),
						  iocb->ki_write_stream);
}

/**
 * xfs_write_stream_key - what a file chooses one of several AGs by
 * @ip: its inode
 *
 * Inodes follow each other, in one AG as well as from directory to directory.
 *
 * Return: a number, of which files that follow each other have the next.
 */
u32 xfs_write_stream_key(struct xfs_inode *ip)
{
	return XFS_INODE_TO_AGNO(ip) + XFS_INODE_TO_AGINO(ip);
}

/* How many AGs inode32 keeps for inodes: the first ones. Where all are, none is. */
static xfs_agnumber_t xfs_kept_ags(struct xfs_mount *mp)
{
	xfs_agnumber_t		agcount = mp->m_sb.sb_agcount;

	if (likely(!xfs_is_inode32(mp)))
		return 0;

	for (xfs_agnumber_t agno = 0; agno < agcount; agno++) {
		struct xfs_perag	*pag = xfs_perag_get(mp, agno);
		bool			kept = pag && xfs_perag_prefers_metadata(pag);

		if (pag)
			xfs_perag_put(pag);
		if (!kept)
			return agno;
	}
	return 0;
}

/**
 * xfs_write_stream_ags - the AGs of a file with a stream
 * @ip: a file of the data device
 * @set: gets them
 *
 * Context: Any, spinlocks may be held.
 *
 * Return: %false if no stream places the file.
 */
bool xfs_write_stream_ags(struct xfs_inode *ip, struct xfs_ag_set *set)
{
	struct xfs_mount	*mp = ip->i_mount;
	u8			stream = READ_ONCE(VFS_I(ip)->i_write_stream);
	unsigned int		nr_streams;
	xfs_agnumber_t		kept, mounted;

	if (likely(!stream) || !xfs_has_stream_ags(ip))
		return false;
	/* The maximum may have been lowered since the stream was set. */
	nr_streams = xfs_max_write_streams(VFS_I(ip));
	if (stream > nr_streams)
		return false;

	kept = xfs_kept_ags(mp);
	/* a filesystem that has grown since may keep more than it had */
	mounted = max(mp->m_write_streams.agcount, kept);
	xfs_ag_set_of_stream(set, mp->m_sb.sb_agcount - kept, mounted - kept,
			     nr_streams, stream);
	xfs_ag_set_shift(set, kept);
	return true;
}

/**
 * xfs_write_stream_agno - the AG that the stream of a file tries first
 * @ip: a file of the data device
 *
 * Context: Any, spinlocks may be held.
 *
 * Return: an AG, %NULLAGNUMBER if no stream places the file.
 */
xfs_agnumber_t xfs_write_stream_agno(struct xfs_inode *ip)
{
	struct xfs_ag_set	set;

	if (!xfs_write_stream_ags(ip, &set))
		return NULLAGNUMBER;

	return xfs_ag_set_nth(&set, xfs_write_stream_key(ip) % set.nr);
}

/**
 * xfs_generic_agno - the AG that the search for a file without a stream begins in
 * @ip: a file of the data device, without blocks next to the request
 *
 * Context: Any, spinlocks may be held.
 *
 * Return: an AG.
 */
xfs_agnumber_t xfs_generic_agno(struct xfs_inode *ip)
{
	struct xfs_mount	*mp = ip->i_mount;

	return xfs_ag_set_generic(mp->m_sb.sb_agcount, XFS_INODE_TO_AGNO(ip),
				  READ_ONCE(mp->m_write_streams.generic_ags),
				  XFS_INODE_TO_AGINO(ip));
}
