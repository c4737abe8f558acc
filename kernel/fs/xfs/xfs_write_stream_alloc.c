// SPDX-License-Identifier: GPL-2.0
/*
 * Where the blocks of a file are allocated that has a write stream.
 *
 * A stream keeps to its AGs as long as one of them takes the request well, and
 * waits for the lock of the AG where a file without a stream would go on to the
 * next one: to be apart is what it is for. When they are nearly full, in a
 * transaction that holds a higher AG, or with little space left over all, the
 * ordinary search takes over, so a stream never runs out of space first.
 */
#include "xfs_platform.h"
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
#include "xfs_ag.h"
#include "xfs_ag_set.h"

/* A request is not cut smaller than this part of an AG to stay in it. */
#define XFS_STREAM_PIECES	64

/* As far into the AG as the inode is into its own: files keep their distance. */
static xfs_fsblock_t xfs_target_in_ag(struct xfs_inode *ip,
				      xfs_agnumber_t agno)
{
	struct xfs_mount	*mp = ip->i_mount;

	return XFS_AGB_TO_FSB(mp, agno, XFS_INO_TO_AGBNO(mp, VFS_I(ip)->i_ino));
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
	u32			key = xfs_write_stream_key(ap->ip);
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
	    !xfs_write_stream_ags(ap->ip, &set))
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
