// SPDX-License-Identifier: GPL-2.0
/*
 * Hints of AG-aware writeback: where those of an inode are kept.
 *
 * A hint is a word about the order of writeback and nothing else: it may be
 * wrong, stale or missing, and may be dropped at any time. So it is stored where
 * memory can be had at once, and never waited for.
 */
#include "xfs_platform.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_inode.h"
#include "xfs_agwb_hint_priv.h"

/* entries that are dropped with the lock held, at most */
#define XFS_AGWB_DROP_BATCH	1024

/**
 * xfs_agwb_hint_inode - hints of an inode
 * @ip: inode of a mount that is ready for hints
 *
 * Made at the first call, and kept until the inode is evicted. Tasks that write
 * to the file call this at the same time.
 *
 * Return: the hints, or %NULL where there is no memory for them.
 */
struct xfs_agwb_hint_inode *xfs_agwb_hint_inode(struct xfs_inode *ip)
{
	struct xfs_agwb_hint_inode	*hi = READ_ONCE(ip->i_agwb_hints);
	struct xfs_agwb_hint_inode	*old;

	if (likely(hi))
		return hi;

	hi = kzalloc_obj(*hi, GFP_NOWAIT);
	if (!hi)
		return NULL;

	hi->ip = ip;
	hi->agno = XFS_INO_TO_AGNO(ip->i_mount, VFS_I(ip)->i_ino);
	xa_init(&hi->hints);
	INIT_LIST_HEAD(&hi->list);
	old = cmpxchg(&ip->i_agwb_hints, NULL, hi);
	if (old) {
		kfree(hi);
		return old;
	}
	return hi;
}

/**
 * xfs_agwb_exchange_hint - give a folio another hint
 * @hm: hints of the mount
 * @hi: hints of the inode
 * @index: of the folio
 * @hint: the hint, or 0 for none
 *
 * Without memory it keeps what it has.
 *
 * Return: the hint that it had; @hint if it keeps that.
 */
u16 xfs_agwb_exchange_hint(struct xfs_agwb_hint_mount *hm,
			   struct xfs_agwb_hint_inode *hi, pgoff_t index,
			   u16 hint)
{
	XA_STATE(xas, &hi->hints, index / XFS_AGWB_HINTS_PER_ENTRY);
	void *old, *new;

	do {
		xas_lock(&xas);
		old = xas_load(&xas);
		new = xfs_agwb_set_hint(old, index, hint);
		if (new != old)
			xas_store(&xas, new);
		if (!xas_error(&xas))
			atomic_long_add(!!new - !!old, &hm->nr_entries);
		xas_unlock(&xas);
	} while (xas_nomem(&xas, GFP_NOWAIT));

	return xas_error(&xas) ? hint : xfs_agwb_get_hint(old, index);
}

/**
 * xfs_agwb_hint_drop - drop the hints of an inode from an index on
 * @hm: of the mount
 * @hi: of the inode
 * @first: the index
 *
 * Return: how many entries they had.
 */
unsigned long xfs_agwb_hint_drop(struct xfs_agwb_hint_mount *hm,
				 struct xfs_agwb_hint_inode *hi, pgoff_t first)
{
	XA_STATE(xas, &hi->hints, first / XFS_AGWB_HINTS_PER_ENTRY);
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
	atomic_long_sub(dropped, &hm->nr_entries);
	xas_unlock(&xas);
	return dropped;
}

/**
 * xfs_agwb_hint_list - put an inode where the shrinker finds it
 * @hm: hints of the mount
 * @hi: hints of the inode
 *
 * The shrinker takes the inodes that have hints in the order of their age.
 */
void xfs_agwb_hint_list(struct xfs_agwb_hint_mount *hm,
			struct xfs_agwb_hint_inode *hi)
{
	/* the caller may be one that must not wait; the next write lists it */
	if (!list_empty_careful(&hi->list) || !mutex_trylock(&hm->lock))
		return;

	if (list_empty(&hi->list))
		list_add_tail(&hi->list, &hm->inodes);
	mutex_unlock(&hm->lock);
}

/**
 * xfs_agwb_hint_evict - an inode leaves memory
 * @ip: inode that has no round
 */
void xfs_agwb_hint_evict(struct xfs_inode *ip)
{
	struct xfs_agwb_hint_inode	*hi = ip->i_agwb_hints;
	struct xfs_agwb_hint_mount	*hm;

	if (!hi)
		return;

	hm = ip->i_mount->m_agwb->hints;
	mutex_lock(&hm->lock);
	list_del(&hi->list);
	mutex_unlock(&hm->lock);
	xfs_agwb_hint_drop(hm, hi, 0);
	/* nodes without an entry, left where memory ran out below them */
	xa_destroy(&hi->hints);
	ip->i_agwb_hints = NULL;
	kfree(hi);
}
