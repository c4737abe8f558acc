/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hints of AG-aware writeback: what the rest of it calls, and what the files of
 * the hints share.
 */
#ifndef __XFS_AGWB_HINT_PRIV_H__
#define __XFS_AGWB_HINT_PRIV_H__

#include "xfs_agwb_hint_pack.h"
#include "xfs_agwb_priv.h"

struct seq_file;

/* folios, counted once each however large they are */
struct xfs_agwb_hint_counts {
	u64 predicted[XFS_AGWB_NR_CLASSES];
	u64 right[XFS_AGWB_NR_CLASSES];
	u64 wrong[XFS_AGWB_NR_CLASSES];
	u64 unhinted[XFS_AGWB_NR_CLASSES];
};

/* hints of a mount, from the moment that its first mode is ag-hint */
struct xfs_agwb_hint_mount {
	struct mutex lock;		/* inodes; also taken in reclaim */
	struct list_head inodes;	/* with hints, the oldest first; lock */
	atomic_long_t nr_entries;	/* of all inodes' hints */
	struct shrinker *shrinker;
	struct xfs_agwb_hint_counts __percpu *counts;
};

/* hints of an inode, from the first one until eviction */
struct xfs_agwb_hint_inode {
	struct xfs_inode *ip;
	struct xarray hints;		/* see xfs_agwb_hint_pack.h; xa_lock */
	/* slots with hints; atomic, see xfs_agwb_recheck_slot() */
	DECLARE_BITMAP(dirty, XFS_AGWB_SLOTS);
	xfs_agnumber_t agno;		/* of what was placed last; no lock */
	struct list_head list;		/* in the mount's inodes; its lock */
};

#ifdef CONFIG_XFS_AGWB_HINTS
/* xfs_agwb_hint_store.c */
struct xfs_agwb_hint_inode *xfs_agwb_hint_inode(struct xfs_inode *ip);
u16 xfs_agwb_exchange_hint(struct xfs_agwb_hint_mount *hm,
			   struct xfs_agwb_hint_inode *hi, pgoff_t index,
			   u16 hint);
unsigned long xfs_agwb_hint_drop(struct xfs_agwb_hint_mount *hm,
				 struct xfs_agwb_hint_inode *hi, pgoff_t first);
void xfs_agwb_hint_list(struct xfs_agwb_hint_mount *hm,
			struct xfs_agwb_hint_inode *hi);
void xfs_agwb_hint_evict(struct xfs_inode *ip);

/* xfs_agwb_hint_round.c */
void xfs_agwb_hint_plan(struct xfs_inode *ip, struct xfs_agwb_plan *plan);
unsigned int xfs_agwb_hint_share(const struct xfs_agwb_plan *plan,
				 unsigned int i, struct xfs_agwb_share *share);
void xfs_agwb_hint_queued(struct xfs_agwb_pass *pass);
void xfs_agwb_hint_collected(struct xfs_agwb_pass *pass);

/* xfs_agwb_hint_mount.c */
int xfs_agwb_hint_start(struct xfs_agwb *agwb);
void xfs_agwb_hint_stop(struct xfs_agwb *agwb);
void xfs_agwb_hint_mode_changed(struct xfs_agwb *agwb);
void xfs_agwb_hint_show(struct seq_file *m, struct xfs_agwb *agwb);
#else
static inline void xfs_agwb_hint_evict(struct xfs_inode *ip)
{
}

static inline void xfs_agwb_hint_plan(struct xfs_inode *ip,
				      struct xfs_agwb_plan *plan)
{
}

static inline unsigned int
xfs_agwb_hint_share(const struct xfs_agwb_plan *plan, unsigned int i,
		    struct xfs_agwb_share *share)
{
	return 0;
}

static inline void xfs_agwb_hint_queued(struct xfs_agwb_pass *pass)
{
}

static inline void xfs_agwb_hint_collected(struct xfs_agwb_pass *pass)
{
}

static inline int xfs_agwb_hint_start(struct xfs_agwb *agwb)
{
	return -EINVAL;
}

static inline void xfs_agwb_hint_stop(struct xfs_agwb *agwb)
{
}

static inline void xfs_agwb_hint_mode_changed(struct xfs_agwb *agwb)
{
}

static inline void xfs_agwb_hint_show(struct seq_file *m, struct xfs_agwb *agwb)
{
}
#endif /* CONFIG_XFS_AGWB_HINTS */

#endif /* __XFS_AGWB_HINT_PRIV_H__ */
