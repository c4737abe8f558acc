// SPDX-License-Identifier: GPL-2.0
/*
 * AG-aware writeback: hints, and where they are kept.
 *
 * A hint says in which AG a dirty folio will probably end up. It is a word
 * about the order of writeback and nothing else: it may be wrong, stale or
 * missing, and may be dropped at any time. So it is stored where memory can be
 * had at once, and never waited for.
 *
 * A hint belongs to an index of the page cache, so it stays with a folio that
 * migrates, and a folio that reclaim takes has none, because it is clean.
 */
#include "xfs_platform.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_inode.h"
#include "xfs_ag.h"
#include "xfs_agwb_priv.h"
#include <linux/iomap.h>

/* entries that are dropped with the lock held, at most */
#define XFS_AGWB_DROP_BATCH	1024

#define XFS_AGWB_GFP		(GFP_NOWAIT | __GFP_NOWARN)

/**
 * xfs_agwb_inode - what an inode has for AG-aware writeback
 * @ip: inode of a mount where a mode is on
 *
 * Made at the first call, and kept until the inode is evicted.
 *
 * Return: it, or %NULL where there is no memory for it.
 */
struct xfs_agwb_inode *xfs_agwb_inode(struct xfs_inode *ip)
{
	struct xfs_agwb_inode	*ai = READ_ONCE(ip->i_agwb);
	struct xfs_agwb_inode	*old;

	if (likely(ai))
		return ai;

	ai = kzalloc_obj(*ai, XFS_AGWB_GFP);
	if (!ai)
		return NULL;

	ai->ip = ip;
	ai->agno = XFS_INO_TO_AGNO(ip->i_mount, VFS_I(ip)->i_ino);
	xa_init(&ai->hints);
	INIT_LIST_HEAD(&ai->list);
	old = cmpxchg(&ip->i_agwb, NULL, ai);
	if (old) {
		kfree(ai);
		return old;
	}
	return ai;
}

/* Returns the hint that the folio had. Without memory it keeps what it has. */
static u16 xfs_agwb_exchange_hint(struct xfs_agwb *agwb,
				  struct xfs_agwb_inode *ai, pgoff_t index,
				  u16 hint)
{
	XA_STATE(xas, &ai->hints, index / XFS_AGWB_HINTS_PER_ENTRY);
	void *old, *new;

	do {
		xas_lock(&xas);
		old = xas_load(&xas);
		new = xfs_agwb_set_hint(old, index, hint);
		if (new != old)
			xas_store(&xas, new);
		if (!xas_error(&xas))
			atomic_long_add(!!new - !!old, &agwb->nr_entries);
		xas_unlock(&xas);
	} while (xas_nomem(&xas, XFS_AGWB_GFP));

	return xas_error(&xas) ? hint : xfs_agwb_get_hint(old, index);
}

/* Drops the hints from an index on, and returns how many entries they had. */
static unsigned long xfs_agwb_drop(struct xfs_agwb *agwb,
				   struct xfs_agwb_inode *ai, pgoff_t first)
{
	XA_STATE(xas, &ai->hints, first / XFS_AGWB_HINTS_PER_ENTRY);
	unsigned long dropped = 0, seen = 0;
	void *entry, *left;

	xas_lock(&xas);
	xas_for_each(&xas, entry, ULONG_MAX) {
		left = NULL;
		if (xas.xa_index == first / XFS_AGWB_HINTS_PER_ENTRY)
			left = xfs_agwb_cut_entry(entry, first);
		xas_store(&xas, left);
		dropped += !left;
		if (++seen % XFS_AGWB_DROP_BATCH)
			continue;

		xas_pause(&xas);
		xas_unlock(&xas);
		cond_resched();
		xas_lock(&xas);
	}
	atomic_long_sub(dropped, &agwb->nr_entries);
	xas_unlock(&xas);
	return dropped;
}

/*
 * The AG that the allocator will probably take for a delayed allocation: it
 * goes on where the inode's blocks are, or from there to the first AG that has
 * room. What other delayed allocations will take of that is known for the
 * filesystem as a whole only, so the guess cannot know it.
 */
static xfs_agnumber_t xfs_agwb_guess(struct xfs_agwb_inode *ai,
				     xfs_filblks_t blocks)
{
	struct xfs_mount	*mp = ai->ip->i_mount;
	xfs_agnumber_t		agcount = mp->m_sb.sb_agcount;
	xfs_agnumber_t		start = READ_ONCE(ai->agno);
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

/**
 * xfs_agwb_agno - the AG that a mapping is in
 * @mp: mount
 * @iomap: mapping of blocks of the data device
 *
 * Return: its number.
 */
xfs_agnumber_t xfs_agwb_agno(struct xfs_mount *mp, const struct iomap *iomap)
{
	return xfs_daddr_to_agno(mp, BTOBB(iomap->addr));
}

/* The shrinker finds the inodes that have hints in the order of their age. */
static void xfs_agwb_list(struct xfs_agwb *agwb, struct xfs_agwb_inode *ai)
{
	/* the caller may be one that must not wait; the next write lists it */
	if (!list_empty_careful(&ai->list) || !mutex_trylock(&agwb->lock))
		return;

	if (list_empty(&ai->list))
		list_add_tail(&ai->list, &agwb->inodes);
	mutex_unlock(&agwb->lock);
}

static void xfs_agwb_hint_folio(struct xfs_agwb *agwb,
				struct xfs_agwb_inode *ai,
				struct folio *folio, u16 hint)
{
	enum xfs_agwb_class class = hint & XFS_AGWB_HINT_DELALLOC ?
				    XFS_AGWB_DELALLOC : XFS_AGWB_OVERWRITE;

	if (!xfs_agwb_exchange_hint(agwb, ai, folio->index, hint))
		this_cpu_inc(agwb->counts->predicted[class]);
	/*
	 * The folio is not locked any more: whoever has written it meanwhile
	 * found no hint to erase. Pairs with the full barrier of the bit
	 * operation by which the writer made the folio clean.
	 */
	smp_mb();
	if (!folio_test_dirty(folio))
		xfs_agwb_exchange_hint(agwb, ai, folio->index, 0);
}

/**
 * xfs_agwb_dirtied - folios of a file were written to
 * @ip: inode of the file
 * @offset: where, in bytes
 * @written: how many bytes, or an error
 * @iomap: mapping that holds for all of them
 *
 * The folios get their hints here, when the mapping that they were written
 * under is known and no lock of the inode is held.
 */
void xfs_agwb_dirtied(struct xfs_inode *ip, loff_t offset, ssize_t written,
		      const struct iomap *iomap)
{
	struct xfs_agwb		*agwb = ip->i_mount->m_agwb;
	bool			delalloc = iomap->type == IOMAP_DELALLOC;
	enum xfs_agwb_class	class = delalloc ? XFS_AGWB_DELALLOC :
						   XFS_AGWB_OVERWRITE;
	struct xfs_agwb_inode	*ai;
	struct folio_batch	fbatch;
	struct folio		*folio;
	xfs_agnumber_t		agno;
	pgoff_t			index, last;

	if (!static_branch_unlikely(&xfs_agwb_used) ||
	    xfs_agwb_mode(agwb, class) != XFS_AGWB_AG_HINT)
		return;
	if (written <= 0 || XFS_IS_REALTIME_INODE(ip))
		return;
	if (!delalloc && iomap->addr == IOMAP_NULL_ADDR)
		return;
	ai = xfs_agwb_inode(ip);
	if (!ai)
		return;

	agno = delalloc ?
	       xfs_agwb_guess(ai, XFS_B_TO_FSB(ip->i_mount, iomap->length)) :
	       xfs_agwb_agno(ip->i_mount, iomap);
	if (agno >= XFS_AGWB_HINT_AGS)
		return;
	index = offset >> PAGE_SHIFT;
	last = (offset + written - 1) >> PAGE_SHIFT;
	folio_batch_init(&fbatch);
	while (filemap_get_folios_tag(VFS_I(ip)->i_mapping, &index, last,
				      PAGECACHE_TAG_DIRTY, &fbatch)) {
		while ((folio = folio_batch_next(&fbatch)))
			xfs_agwb_hint_folio(agwb, ai, folio,
					    xfs_agwb_make_hint(agno, delalloc));
		folio_batch_release(&fbatch);
		cond_resched();
	}

	/* a hint comes before its bit, so that the bit is never missing */
	smp_mb__before_atomic();
	set_bit(xfs_agwb_slot(agno), ai->dirty);
	xfs_agwb_list(agwb, ai);
}

/**
 * xfs_agwb_take_hint - the hint of a folio that needs it no longer
 * @agwb: of the mount
 * @ai: of its inode
 * @index: of the folio
 *
 * Return: the hint, 0 if there was none.
 */
u16 xfs_agwb_take_hint(struct xfs_agwb *agwb, struct xfs_agwb_inode *ai,
		       pgoff_t index)
{
	if (xa_empty(&ai->hints))
		return 0;

	return xfs_agwb_exchange_hint(agwb, ai, index, 0);
}

/**
 * xfs_agwb_truncated - the page cache of a file ends earlier
 * @ip: its inode
 * @newsize: size in bytes; a folio that holds the end stays
 */
void xfs_agwb_truncated(struct xfs_inode *ip, loff_t newsize)
{
	struct xfs_agwb_inode	*ai = READ_ONCE(ip->i_agwb);

	if (ai && !xa_empty(&ai->hints))
		xfs_agwb_drop(ip->i_mount->m_agwb, ai,
			      DIV_ROUND_UP_ULL(newsize, PAGE_SIZE));
}

/**
 * xfs_agwb_free_inode - undo xfs_agwb_inode()
 * @agwb: of the mount
 * @ai: of an inode that is being evicted
 */
void xfs_agwb_free_inode(struct xfs_agwb *agwb, struct xfs_agwb_inode *ai)
{
	mutex_lock(&agwb->lock);
	list_del(&ai->list);
	mutex_unlock(&agwb->lock);
	xfs_agwb_drop(agwb, ai, 0);
	ai->ip->i_agwb = NULL;
	kfree(ai);
}

/* Drops the hints of the inode that got hints first; lock is held. */
static unsigned long xfs_agwb_drop_oldest(struct xfs_agwb *agwb)
{
	struct xfs_agwb_inode *ai;

	lockdep_assert_held(&agwb->lock);
	ai = list_first_entry(&agwb->inodes, struct xfs_agwb_inode, list);
	list_del_init(&ai->list);
	return xfs_agwb_drop(agwb, ai, 0);
}

/**
 * xfs_agwb_drop_all - drop the hints of every inode
 * @agwb: of a mount where no hint is wanted any more
 */
void xfs_agwb_drop_all(struct xfs_agwb *agwb)
{
	lockdep_assert_held(&agwb->lock);
	while (!list_empty(&agwb->inodes))
		xfs_agwb_drop_oldest(agwb);
}

/**
 * xfs_agwb_shrink_count - how many entries memory pressure may drop
 * @shrinker: that of a mount
 * @sc: not used
 *
 * Return: their number.
 */
unsigned long xfs_agwb_shrink_count(struct shrinker *shrinker,
				    struct shrink_control *sc)
{
	struct xfs_agwb *agwb = shrinker->private_data;

	return atomic_long_read(&agwb->nr_entries);
}

/**
 * xfs_agwb_shrink_scan - drop hints
 * @shrinker: that of a mount
 * @sc: says how many entries are to be dropped; whole inodes are
 *
 * Return: how many were.
 */
unsigned long xfs_agwb_shrink_scan(struct shrinker *shrinker,
				   struct shrink_control *sc)
{
	struct xfs_agwb *agwb = shrinker->private_data;
	unsigned long dropped = 0;

	if (!mutex_trylock(&agwb->lock))
		return SHRINK_STOP;
	while (dropped < sc->nr_to_scan && !list_empty(&agwb->inodes))
		dropped += xfs_agwb_drop_oldest(agwb);
	mutex_unlock(&agwb->lock);
	return dropped ?: SHRINK_STOP;
}
