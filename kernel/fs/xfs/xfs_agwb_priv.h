/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AG-aware writeback: what its files share.
 */
#ifndef __XFS_AGWB_PRIV_H__
#define __XFS_AGWB_PRIV_H__

#include "xfs_agwb.h"
#include "xfs_agwb_share.h"
#include <linux/backing-dev.h>
#include <linux/workqueue.h>

/* beyond as many AGs, several share a worker */
#define XFS_AGWB_MAX_WORKERS	64U

enum xfs_agwb_mode {
	XFS_AGWB_OFF,
	XFS_AGWB_ROTOR,
	XFS_AGWB_GENERIC,
};

/* kinds of writeback: each has its mode */
enum xfs_agwb_class {
	XFS_AGWB_OVERWRITE,
	XFS_AGWB_DELALLOC,
	XFS_AGWB_NR_CLASSES,
};

/* of an AG, or of several */
struct xfs_agwb_worker {
	struct list_head passes;	/* not ended; pass_lock */
	atomic64_t nr_passes;		/* that have ended */
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

	/* all below is there from the moment that a mode is not off */
	struct workqueue_struct *wq;
	struct xfs_agwb_worker *workers;	/* XFS_AGWB_MAX_WORKERS */
	spinlock_t pass_lock;		/* all workers' passes */
	atomic_t next_worker;		/* where no AG counts */
	wait_queue_head_t waitq;	/* for the end of a round */
	atomic_t nr_ended;		/* rounds, ever */
};

/* AG-aware writeback of an inode, from its first round until eviction */
struct xfs_agwb_inode {
	struct xfs_agwb_round *round;	/* not collected yet; I_SYNC */
	int seen_ended;			/* nr_ended at the last look; I_SYNC */
};

/* what a worker does of a round */
struct xfs_agwb_pass {
	struct work_struct work;
	struct list_head list;		/* in worker->passes; pass_lock */
	bool has_begun;			/* its work is queued; pass_lock */
	struct xfs_agwb_worker *worker;
	struct xfs_agwb_round *round;
	struct xfs_agwb_share share;
	long written;			/* pages */
	bool failed;			/* the error is in the mapping */
	pgoff_t stop;			/* where to go on; ULONG_MAX if done */
};

/* what a flusher handed over of an inode */
struct xfs_agwb_round {
	struct xfs_agwb *agwb;
	struct xfs_inode *ip;
	/* the flusher's; to compare, for there is no reference on it */
	struct bdi_writeback *wb;
	pgoff_t start;
	unsigned long since;		/* when it was handed over; I_SYNC */
	bool kupdate;
	atomic_t pending;		/* passes that have not ended */
	unsigned int nr_passes;
	struct xfs_agwb_pass passes[] __counted_by(nr_passes);
};

/* how a round is to be shared out */
struct xfs_agwb_plan {
	enum xfs_agwb_share_kind kind;
	unsigned int nr_passes;
	unsigned int worker;		/* of the first pass; others follow */
};

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

/**
 * xfs_agwb_nr_workers - workers in use
 * @agwb: of the mount
 *
 * Return: their number, which grows with the filesystem.
 */
static inline unsigned int xfs_agwb_nr_workers(struct xfs_agwb *agwb)
{
	return min(READ_ONCE(agwb->mp->m_sb.sb_agcount), XFS_AGWB_MAX_WORKERS);
}

/**
 * xfs_agwb_wb - writeback that an inode is written for
 * @inode: inode of interest
 * @wbc: of the flusher or of a pass; where cgroups have no writeback of their
 *	own it names none, whatever context the inode is in
 *
 * Return: the writeback, to compare and to count at.
 */
static inline struct bdi_writeback *xfs_agwb_wb(struct inode *inode,
						struct writeback_control *wbc)
{
	return inode_cgwb_enabled(inode) ? inode_to_wb_wbc(inode, wbc) :
					   READ_ONCE(inode->i_wb);
}

/* xfs_agwb_pass.c */
pgoff_t xfs_agwb_pages_on_disk(struct xfs_inode *ip);
void xfs_agwb_write_pass(struct xfs_agwb_pass *pass);

/* xfs_agwb_queue.c */
bool xfs_agwb_queue_round(struct xfs_agwb_round *round);
bool xfs_agwb_round_is_done(struct xfs_agwb_round *round);
void xfs_agwb_cancel_round(struct xfs_agwb_round *round);
unsigned int xfs_agwb_nr_out(struct xfs_agwb *agwb,
			     struct xfs_agwb_worker *worker);
int xfs_agwb_start_workers(struct xfs_agwb *agwb);
void xfs_agwb_stop_workers(struct xfs_agwb *agwb);

#endif /* __XFS_AGWB_PRIV_H__ */
