// SPDX-License-Identifier: GPL-2.0
/*
 * Hints of AG-aware writeback: what they predict, and what becomes of them.
 *
 * A hint says in which AG a dirty folio will probably end up. It belongs to an
 * index of the page cache, so it stays with a folio that migrates, and a folio
 * that reclaim takes has none, because it is clean.
 */
#include "xfs_platform.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_inode.h"
#include "xfs_ag.h"
#include "xfs_agwb_hint.h"
#include "xfs_agwb_hint_priv.h"
#include <linux/iomap.h>

DEFINE_STATIC_KEY_FALSE(xfs_agwb_hints_used);

/*
 * The AG that the allocator will probably take for a delayed allocation: it
 * goes on where the inode's blocks are, or from there to the first AG that has
 * room. What other delayed allocations will take of that is known for the
 * filesystem as a whole only, so the guess cannot know it.
 */
static xfs_agnumber_t xfs_agwb_guess(struct xfs_agwb_hint_inode *hi,
				     xfs_filblks_t blocks)
{
	struct xfs_mount	*mp = hi->ip->i_mount;
	xfs_agnumber_t		agcount = mp->m_sb.sb_agcount;
	xfs_agnumber_t		start = READ_ONCE(hi->agno);
	xfs_agnumber_t		i;

	for (i = 0; i < agcount; i++) {
		xfs_agnumber_t		agno = (start + i) % agcount;
		struct xfs_perag	*pag = xfs_perag_get(mp, agno);
		bool			has_room;

		if (!pag)
			break;
		has_room = !xfs_perag_initialised_agf(pag) ||
			   READ_ONCE(pag->pagf_freeblks) >= blocks;
		xfs_perag_put(pag);
		if (has_room)
			return agno;
	}
	return start;
}

static xfs_agnumber_t xfs_agwb_iomap_to_agno(struct xfs_mount *mp,
					     const struct iomap *iomap)
{
	return xfs_daddr_to_agno(mp, BTOBB(iomap->addr));
}

static void xfs_agwb_hint_folio(struct xfs_agwb_hint_mount *hm,
				struct xfs_agwb_hint_inode *hi,
				struct folio *folio, u16 hint)
{
	enum xfs_agwb_class class = hint & XFS_AGWB_HINT_DELALLOC ?
				    XFS_AGWB_DELALLOC : XFS_AGWB_OVERWRITE;

	if (!xfs_agwb_exchange_hint(hm, hi, folio->index, hint))
		this_cpu_inc(hm->counts->predicted[class]);
	/*
	 * The folio is not locked any more: whoever has written it meanwhile
	 * found no hint to erase. Pairs with the full barrier of the bit
	 * operation by which the writer made the folio clean.
	 */
	smp_mb();
	if (!folio_test_dirty(folio))
		xfs_agwb_exchange_hint(hm, hi, folio->index, 0);
}

/* xfs_agwb_hint_dirtied(), once there are hints */
void __xfs_agwb_hint_dirtied(struct xfs_inode *ip, loff_t offset,
			     ssize_t written, const struct iomap *iomap)
{
	struct xfs_agwb			*agwb = ip->i_mount->m_agwb;
	bool				delalloc = iomap->type == IOMAP_DELALLOC;
	struct xfs_agwb_hint_inode	*hi;
	struct folio_batch		fbatch;
	struct folio			*folio;
	xfs_agnumber_t			agno;
	pgoff_t				index, last;

	if (xfs_agwb_mode(agwb, delalloc ? XFS_AGWB_DELALLOC :
				XFS_AGWB_OVERWRITE) != XFS_AGWB_AG_HINT)
		return;
	if (written <= 0 || XFS_IS_REALTIME_INODE(ip))
		return;
	if (!delalloc && iomap->addr == IOMAP_NULL_ADDR)
		return;
	hi = xfs_agwb_hint_inode(ip);
	if (!hi)
		return;

	agno = delalloc ?
	       xfs_agwb_guess(hi, XFS_B_TO_FSB(ip->i_mount, iomap->length)) :
	       xfs_agwb_iomap_to_agno(ip->i_mount, iomap);
	if (agno >= XFS_AGWB_HINT_AGS)
		return;
	index = offset >> PAGE_SHIFT;
	last = (offset + written - 1) >> PAGE_SHIFT;
	folio_batch_init(&fbatch);
	while (filemap_get_folios_tag(VFS_I(ip)->i_mapping, &index, last,
				      PAGECACHE_TAG_DIRTY, &fbatch)) {
		while ((folio = folio_batch_next(&fbatch)))
			xfs_agwb_hint_folio(agwb->hints, hi, folio,
					    xfs_agwb_make_hint(agno, delalloc));
		folio_batch_release(&fbatch);
		cond_resched();
	}

	/* a hint comes before its bit, so that the bit is never missing */
	smp_mb__before_atomic();
	set_bit(xfs_agwb_slot(agno), hi->dirty);
	xfs_agwb_hint_list(agwb->hints, hi);
}

/* The first range of a folio that is written decides if its hint was right. */
static void xfs_agwb_count(struct xfs_agwb_hint_mount *hm, u16 hint,
			   xfs_agnumber_t agno, const struct iomap *iomap)
{
	enum xfs_agwb_class class;

	if (!hint) {
		/* new blocks are unwritten until their I/O is done */
		class = iomap->type == IOMAP_UNWRITTEN ? XFS_AGWB_DELALLOC :
							 XFS_AGWB_OVERWRITE;
		this_cpu_inc(hm->counts->unhinted[class]);
		return;
	}

	class = hint & XFS_AGWB_HINT_DELALLOC ? XFS_AGWB_DELALLOC :
						XFS_AGWB_OVERWRITE;
	if (xfs_agwb_hint_agno(hint) == agno)
		this_cpu_inc(hm->counts->right[class]);
	else
		this_cpu_inc(hm->counts->wrong[class]);
}

/* xfs_agwb_hint_placed(), once there are hints */
void __xfs_agwb_hint_placed(const struct iomap_writepage_ctx *wpc,
			    struct folio *folio, int error, pgoff_t *uncounted)
{
	const struct iomap		*iomap = &wpc->iomap;
	struct xfs_inode		*ip = XFS_I(wpc->inode);
	struct xfs_agwb			*agwb = ip->i_mount->m_agwb;
	struct xfs_agwb_hint_mount	*hm;
	struct xfs_agwb_hint_inode	*hi;
	xfs_agnumber_t			agno;
	u16				hint = 0;

	/* pairs with the release in xfs_agwb_hint_start() */
	hm = smp_load_acquire(&agwb->hints);
	if (!hm || folio->index < *uncounted)
		return;

	*uncounted = folio_next_index(folio);
	hi = READ_ONCE(ip->i_agwb_hints);
	if (hi && !xa_empty(&hi->hints))
		hint = xfs_agwb_exchange_hint(hm, hi, folio->index, 0);
	if (error || iomap->addr == IOMAP_NULL_ADDR ||
	    XFS_IS_REALTIME_INODE(ip) || !xfs_agwb_hints_wanted(agwb))
		return;

	agno = xfs_agwb_iomap_to_agno(ip->i_mount, iomap);
	if (hi)
		WRITE_ONCE(hi->agno, agno);
	xfs_agwb_count(hm, hint, agno, iomap);
}

/**
 * xfs_agwb_hint_truncated - the page cache of a file ends earlier
 * @ip: its inode
 * @newsize: size in bytes; a folio that holds the end stays
 */
void xfs_agwb_hint_truncated(struct xfs_inode *ip, loff_t newsize)
{
	struct xfs_agwb_hint_inode	*hi = READ_ONCE(ip->i_agwb_hints);

	if (hi && !xa_empty(&hi->hints))
		xfs_agwb_hint_drop(ip->i_mount->m_agwb->hints, hi,
				   DIV_ROUND_UP_ULL(newsize, PAGE_SIZE));
}
