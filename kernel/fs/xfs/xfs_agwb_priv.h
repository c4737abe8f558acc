/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AG-aware writeback: what its files share.
 */
#ifndef __XFS_AGWB_PRIV_H__
#define __XFS_AGWB_PRIV_H__

#include "xfs_agwb.h"
#include "xfs_agwb_deal.h"
#include <linux/jump_label.h>

struct xfs_agwb_round;

enum xfs_agwb_mode {
	XFS_AGWB_OFF,
	XFS_AGWB_AG_HINT,
	XFS_AGWB_ROTOR,
	XFS_AGWB_GENERIC,
};

/* kinds of writeback: each has its mode */
enum xfs_agwb_class {
	XFS_AGWB_OVERWRITE,
	XFS_AGWB_DELALLOC,
	XFS_AGWB_NR_CLASSES,
};

/* folios, counted once each however large they are */
struct xfs_agwb_counts {
	u64 predicted[XFS_AGWB_NR_CLASSES];
	u64 right[XFS_AGWB_NR_CLASSES];
	u64 wrong[XFS_AGWB_NR_CLASSES];
	u64 unhinted[XFS_AGWB_NR_CLASSES];
};

/* of an AG, or of all that share a slot */
struct xfs_agwb_worker {
	struct list_head passes;	/* not ended; pass_lock */
	atomic64_t nr_passes;		/* that have ended */
	atomic64_t scanned;		/* hints looked at */
	atomic64_t submitted;		/* pages */
};

/* AG-aware writeback of a mount */
struct xfs_agwb {
	struct xfs_mount *mp;
	struct xfs_kobj kobj;
	struct dentry *dentry;		/* of the counters */
	/* read at any time, see xfs_agwb_mode(); mode_lock sets it */
	enum xfs_agwb_mode mode[XFS_AGWB_NR_CLASSES];
	struct mutex mode_lock;		/* changes of mode, start of workers */
	struct mutex lock;		/* inodes; also taken in reclaim */

	/* all below is there from the moment that a mode is not off */
	struct workqueue_struct *wq;
	struct xfs_agwb_worker *workers;	/* one for each slot */
	spinlock_t pass_lock;		/* all workers' passes */
	struct xarray running;		/* passes, by the pid that runs each */
	atomic_t turn;			/* of the workers, where no AG counts */
	wait_queue_head_t waitq;	/* for the end of a round */
	atomic_t nr_ended;		/* rounds, ever */
	struct xfs_agwb_counts __percpu *counts;
	struct shrinker *shrinker;
	struct list_head inodes;	/* with hints, the oldest first; lock */
	atomic_long_t nr_entries;	/* of all inodes' hints */
};

/* AG-aware writeback of an inode */
struct xfs_agwb_inode {
	struct xfs_inode *ip;
	struct xarray hints;		/* see xfs_agwb_deal.h; xa_lock */
	/* slots with hints; atomic, see xfs_agwb_recheck_slot() */
	DECLARE_BITMAP(dirty, XFS_AGWB_SLOTS);
	xfs_agnumber_t agno;		/* of what was placed last; no lock */
	struct list_head list;		/* in agwb->inodes; agwb->lock */
	struct xfs_agwb_round *round;	/* not collected yet; I_SYNC */
	int seen_ended;			/* nr_ended at the last look; I_SYNC */
};

/* Has a mode been switched on, on any mount? Until then a folio costs nothing. */
DECLARE_STATIC_KEY_FALSE(xfs_agwb_used);

/**
 * xfs_agwb_mode - mode of a kind of writeback
 * @agwb: of the mount
 * @class: kind of interest
 *
 * Return: the mode. When it is not off, what it needs is there.
 */
static inline enum xfs_agwb_mode xfs_agwb_mode(struct xfs_agwb *agwb,
					       enum xfs_agwb_class class)
{
	/* pairs with the release in xfs_agwb_set_mode() */
	return smp_load_acquire(&agwb->mode[class]);
}

static inline bool xfs_agwb_is_on(struct xfs_agwb *agwb)
{
	return xfs_agwb_mode(agwb, XFS_AGWB_OVERWRITE) ||
	       xfs_agwb_mode(agwb, XFS_AGWB_DELALLOC);
}

/**
 * xfs_agwb_nr_workers - workers in use
 * @agwb: of the mount
 *
 * Return: their number, which grows with the filesystem.
 */
static inline unsigned int xfs_agwb_nr_workers(struct xfs_agwb *agwb)
{
	return min(READ_ONCE(agwb->mp->m_sb.sb_agcount), XFS_AGWB_SLOTS);
}

/* xfs_agwb_hint.c */
struct xfs_agwb_inode *xfs_agwb_inode(struct xfs_inode *ip);
void xfs_agwb_free_inode(struct xfs_agwb *agwb, struct xfs_agwb_inode *ai);
xfs_agnumber_t xfs_agwb_agno(struct xfs_mount *mp, const struct iomap *iomap);
u16 xfs_agwb_take_hint(struct xfs_agwb *agwb, struct xfs_agwb_inode *ai,
		       pgoff_t index);
void xfs_agwb_drop_all(struct xfs_agwb *agwb);
unsigned long xfs_agwb_shrink_count(struct shrinker *shrinker,
				    struct shrink_control *sc);
unsigned long xfs_agwb_shrink_scan(struct shrinker *shrinker,
				   struct shrink_control *sc);

/* xfs_agwb_pass.c */
unsigned int xfs_agwb_nr_out(struct xfs_agwb *agwb,
			     struct xfs_agwb_worker *worker);
int xfs_agwb_start_workers(struct xfs_agwb *agwb);
void xfs_agwb_stop_workers(struct xfs_agwb *agwb);

#endif /* __XFS_AGWB_PRIV_H__ */
