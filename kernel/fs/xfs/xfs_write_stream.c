// SPDX-License-Identifier: GPL-2.0
/*
 * Write streams of XFS: which a file can have, what the device hears of it, and
 * which allocation groups (AGs) its blocks come from.
 *
 * If the device has streams, those are the file's (hardware streams). If not, XFS
 * offers some of its own (software streams), which only place. Either way the
 * stream is kept apart from the others by AGs of its own, see xfs_ag_set.c.
 *
 * A stream keeps to its AGs as long as one of them takes the request well, and
 * waits for the lock of the AG where a file without a stream would go on to the
 * next one: to be apart is what it is for. When they are nearly full, in a
 * transaction that holds a higher AG, or with little space left over all, the
 * ordinary search takes over, so a stream never runs out of space first.
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
#include "xfs_trans.h"
#include "xfs_alloc.h"
#include "xfs_bmap.h"
#include "xfs_bmap_util.h"
#include "xfs_filestream.h"
#include "xfs_ag.h"
#include "xfs_ag_set.h"

/* A request is not cut smaller than this part of an AG to stay in it. */
#define XFS_STREAM_PIECES	64

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

/* Asked for each folio that is written back, so files without a stream go first. */
static u8 xfs_stream_of_device(struct xfs_inode *ip, u8 stream)
{
	return stream && stream <= xfs_hardware_streams(ip) ? stream : 0;
}

/**
 * xfs_device_write_stream - the stream that the bios of a file name
 * @ip: a regular file
 *
 * Return: its stream if that is one of the device, or else 0.
 */
u8 xfs_device_write_stream(struct xfs_inode *ip)
{
	return xfs_stream_of_device(ip, READ_ONCE(VFS_I(ip)->i_write_stream));
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
	iocb->ki_write_stream =
		xfs_stream_of_device(XFS_I(file_inode(iocb->ki_filp)),
				     iocb->ki_write_stream);
}

/* Inodes follow each other, in one AG as well as from directory to directory. */
static u32 xfs_ag_set_key(struct xfs_inode *ip)
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

/* The AGs of a file with a stream. */
static bool xfs_stream_ag_set(struct xfs_inode *ip, struct xfs_ag_set *set)
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

/* As far into the AG as the inode is into its own: files keep their distance. */
static xfs_fsblock_t xfs_target_in_ag(struct xfs_inode *ip,
				      xfs_agnumber_t agno)
{
	struct xfs_mount	*mp = ip->i_mount;

	return XFS_AGB_TO_FSB(mp, agno, XFS_INO_TO_AGBNO(mp, VFS_I(ip)->i_ino));
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

	if (!xfs_stream_ag_set(ip, &set))
		return NULLAGNUMBER;

	return xfs_ag_set_nth(&set, xfs_ag_set_key(ip) % set.nr);
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

/**
 * xfs_write_stream_target - where the search for blocks begins
 * @ap: request of a file or a directory without blocks next to it
 *
 * Return: a block, for metadata the one that the inode is in.
 */
xfs_fsblock_t xfs_write_stream_target(struct xfs_bmalloca *ap)
{
	struct xfs_inode	*ip = ap->ip;
	xfs_agnumber_t		agno = XFS_INODE_TO_AGNO(ip);

	if (ap->datatype & XFS_ALLOC_USERDATA) {
		agno = xfs_write_stream_agno(ip);
		if (agno == NULLAGNUMBER)
			agno = xfs_generic_agno(ip);
	}
	return xfs_target_in_ag(ip, agno);
}

/*
 * Take an AG if it has room for a good part of the request: its perag goes to
 * @args, and its longest free extent to @longest.
 */
static int xfs_stream_try_ag(struct xfs_bmalloca *ap,
			     struct xfs_alloc_arg *args, xfs_agnumber_t agno,
			     xfs_extlen_t *longest)
{
	struct xfs_mount	*mp = args->mp;
	xfs_extlen_t		wanted = max(1U, mp->m_sb.sb_agblocks /
						 XFS_STREAM_PIECES);
	struct xfs_perag	*pag = xfs_perag_grab(mp, agno);
	int			error;

	if (!pag)
		return 0;

	*longest = 0;
	error = xfs_bmap_longest_free_extent(pag, ap->tp, longest);
	if (!error && *longest >= min(args->maxlen, wanted) &&
	    *longest >= ap->minlen) {
		args->pag = pag;
		return 0;
	}
	xfs_perag_rele(pag);
	/* Its header is not in memory yet and somebody reads it. */
	return error == -EAGAIN ? 0 : error;
}

/*
 * Choose an AG of the stream and a block of it to look around: that of the
 * file's blocks next to the request, or else the one that the inode chooses, or
 * the next one with room. Without room in any, @args gets none.
 */
static int xfs_stream_select_ag(struct xfs_bmalloca *ap,
				struct xfs_alloc_arg *args,
				const struct xfs_ag_set *set,
				xfs_extlen_t *longest)
{
	struct xfs_mount	*mp = args->mp;
	u32			key = xfs_ag_set_key(ap->ip);
	xfs_agnumber_t		agno;
	int			error = 0;

	ap->blkno = xfs_target_in_ag(ap->ip,
				     xfs_ag_set_nth(set, key % set->nr));
	if (xfs_bmap_adjacent(ap)) {
		agno = XFS_FSB_TO_AGNO(mp, ap->blkno);
		if (xfs_ag_set_has(set, agno))
			error = xfs_stream_try_ag(ap, args, agno, longest);
		if (error || args->pag)
			return error;
	}

	ap->eof = false;
	for (u32 n = 0; n < set->nr && !error && !args->pag; n++) {
		agno = xfs_ag_set_nth(set, (key + n) % set->nr);
		ap->blkno = xfs_target_in_ag(ap->ip, agno);
		error = xfs_stream_try_ag(ap, args, agno, longest);
	}
	return error;
}

/**
 * xfs_write_stream_alloc - allocate from the AGs of a file's stream
 * @ap: the request
 * @args: gets the blocks in @args->fsbno, NULLFSBLOCK if the ordinary search has
 *	to find them: the file has no stream, or its AGs no room
 * @stripe_align: alignment of a new extent, in blocks
 *
 * Return: 0 or a negative error.
 */
int xfs_write_stream_alloc(struct xfs_bmalloca *ap, struct xfs_alloc_arg *args,
			   int stripe_align)
{
	xfs_extlen_t		alignment = args->alignment;
	bool			eof = ap->eof;
	xfs_extlen_t		longest = 0;
	struct xfs_ag_set	set;
	int			error;

	if (!(ap->datatype & XFS_ALLOC_USERDATA) ||
	    (ap->tp->t_flags & XFS_TRANS_LOWMODE) ||
	    !xfs_stream_ag_set(ap->ip, &set))
		return 0;

	error = xfs_stream_select_ag(ap, args, &set, &longest);
	if (!error && args->pag) {
		args->total = ap->total;
		args->minlen = xfs_bmap_select_minlen(ap, args, longest);
		if (ap->aeof)
			error = xfs_bmap_btalloc_at_eof(ap, args, longest,
							stripe_align, true);
		if (!error && args->fsbno == NULLFSBLOCK)
			error = xfs_alloc_vextent_near_bno(args, ap->blkno);
		xfs_perag_rele(args->pag);
		args->pag = NULL;
	}
	if (!error && args->fsbno == NULLFSBLOCK) {
		ap->eof = eof;
		args->alignment = alignment;
	}
	return error;
}
