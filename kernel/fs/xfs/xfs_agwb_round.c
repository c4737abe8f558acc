// SPDX-License-Identifier: GPL-2.0
/*
 * AG-aware writeback: what the flusher hands over of an inode, and when.
 *
 * In one call the flusher hands over a round: one pass for each worker
 * concerned, each with a part of the pages that the call may write. It does not
 * wait for them, it goes on to its next inode; when it comes back to this one,
 * it collects the round and begins the next. Where a queue is full, it waits as
 * it waits for a round that is out.
 *
 * Only background and periodic writeback is handed over, for which nobody
 * waits. What somebody waits for is written by the flusher (sync) or by the task
 * itself (fsync), as if there were no workers; they meet workers at the folio
 * lock, as a flusher and fsync() do.
 */
#include "xfs_platform.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_inode.h"
#include "xfs_agwb_priv.h"
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/writeback.h>

/* pages in memory that make a file worth a round: a flusher's least piece */
#define XFS_AGWB_MIN_PAGES	(SZ_4M / PAGE_SIZE)

/* how long a flusher waits for any round before it goes to other inodes */
#define XFS_AGWB_ROUND_TIMEOUT	(HZ / 10)

/*
 * Passes of a round that have not begun by then are taken back: it may be that
 * there is no memory for workers, and the rescuer is held up by another pass.
 */
#define XFS_AGWB_TAKE_BACK_TIME	(5 * HZ)

/*
 * Waits for the end of any round, unless one has ended since the last call for
 * this inode: the flusher may find that at the next inode. So it does not spin,
 * for it passes an inode by only once for each round that ends.
 */
static void xfs_agwb_wait_for_round(struct xfs_agwb *agwb,
				    struct xfs_agwb_inode *ai)
{
	int nr_ended = atomic_read(&agwb->nr_ended);

	if (nr_ended == ai->seen_ended)
		wait_event_timeout(agwb->waitq,
				   atomic_read(&agwb->nr_ended) != nr_ended,
				   XFS_AGWB_ROUND_TIMEOUT);
	ai->seen_ended = nr_ended;
}

/*
 * A round has ended. The next one begins at the first place where a pass ran
 * out of budget, so that no folio is left out between the places where passes
 * ended.
 *
 * Returns false if the flusher shall write, and so find out what state the
 * inode is in: after a round that wrote nothing or met an error, which delays the
 * inode, and after one of periodic writeback that came to the end of the file.
 * Without the latter, a file that is written to all the time would never be done.
 */
static bool xfs_agwb_collect(struct xfs_inode *ip)
{
	struct xfs_agwb_round	*round = ip->i_agwb->round;
	pgoff_t			stop = ULONG_MAX;
	long			written = 0;
	bool			failed = false;
	bool			again;

	for (unsigned int i = 0; i < round->nr_passes; i++) {
		struct xfs_agwb_pass *pass = &round->passes[i];

		written += pass->written;
		failed |= pass->failed;
		stop = min(stop, pass->stop);
	}
	VFS_I(ip)->i_mapping->writeback_index = stop == ULONG_MAX ? 0 : stop;
	again = written && !failed &&
		(stop != ULONG_MAX || !round->kupdate);
	ip->i_agwb->round = NULL;
	kfree(round);
	return again;
}

static void xfs_agwb_make_plan(struct xfs_inode *ip, enum xfs_agwb_mode mode,
			       struct xfs_agwb_plan *plan)
{
	struct xfs_agwb	*agwb = ip->i_mount->m_agwb;
	struct inode	*inode = VFS_I(ip);
	pgoff_t		stretches;

	plan->kind = XFS_AGWB_SHARE_ALL;
	plan->nr_passes = 1;
	plan->worker = mode == XFS_AGWB_GENERIC ?
		       atomic_inc_return(&agwb->next_worker) :
		       XFS_INO_TO_AGNO(agwb->mp, inode->i_ino);
	/*
	 * What lies beyond the size on disk is for one worker, which writes it
	 * in order: the size must not come to cover what another has yet to
	 * write.
	 */
	if (i_size_read(inode) > READ_ONCE(ip->i_disk_size))
		return;

	switch (mode) {
	case XFS_AGWB_GENERIC:
		stretches = DIV_ROUND_UP_ULL(i_size_read(inode), SZ_4M);
		plan->kind = XFS_AGWB_SHARE_STRETCHES;
		plan->nr_passes = clamp_t(pgoff_t, stretches, 1,
					  xfs_agwb_nr_workers(agwb));
		break;
	default:
		break;
	}
}

/* Returns the number of the worker that gets the share. */
static unsigned int xfs_agwb_make_share(const struct xfs_agwb_plan *plan,
					unsigned int i,
					struct xfs_agwb_share *share)
{
	share->kind = plan->kind;
	switch (plan->kind) {
	case XFS_AGWB_SHARE_ALL:
		break;
	case XFS_AGWB_SHARE_STRETCHES:
		share->modulus = plan->nr_passes;
		share->remainder = i;
		break;
	}
	return plan->worker + i;
}

/* Issues what the caller has gathered; no module may call blk_flush_plug(). */
static void xfs_agwb_submit_plugged(void)
{
	struct blk_plug		*plug = current->plug;

	if (plug) {
		blk_finish_plug(plug);
		blk_start_plug(plug);
	}
}

/* Returns 0, -ENOMEM, or -EAGAIN where the queue of a worker is full. */
static int xfs_agwb_begin_round(struct xfs_inode *ip, enum xfs_agwb_mode mode,
				struct writeback_control *wbc)
{
	struct xfs_agwb		*agwb = ip->i_mount->m_agwb;
	struct xfs_agwb_plan	plan;
	struct xfs_agwb_round	*round;

	xfs_agwb_make_plan(ip, mode, &plan);
	round = kzalloc_flex(*round, passes, plan.nr_passes, GFP_NOWAIT);
	if (!round)
		return -ENOMEM;

	round->nr_passes = plan.nr_passes;
	round->agwb = agwb;
	round->ip = ip;
	round->wb = xfs_agwb_wb(VFS_I(ip), wbc);
	round->start = VFS_I(ip)->i_mapping->writeback_index;
	if (plan.kind == XFS_AGWB_SHARE_ALL)
		round->start = min(round->start, xfs_agwb_pages_on_disk(ip));
	round->kupdate = wbc->for_kupdate;
	round->since = jiffies;
	for (unsigned int i = 0; i < round->nr_passes; i++) {
		struct xfs_agwb_pass	*pass = &round->passes[i];
		unsigned int		number;

		number = xfs_agwb_make_share(&plan, i, &pass->share);
		number %= xfs_agwb_nr_workers(agwb);
		pass->share.budget = xfs_agwb_budget(wbc->nr_to_write,
						     round->nr_passes, i);
		pass->worker = &agwb->workers[number];
		pass->round = round;
		pass->stop = round->start;
	}
	/* what this flusher wrote itself comes before what a worker writes */
	xfs_agwb_submit_plugged();
	if (!xfs_agwb_queue_round(round)) {
		kfree(round);
		return -EAGAIN;
	}
	ip->i_agwb->round = round;
	return 0;
}

static enum xfs_agwb_mode xfs_agwb_mode_of(struct xfs_inode *ip)
{
	if (XFS_IS_REALTIME_INODE(ip))
		return XFS_AGWB_OFF;

	return xfs_agwb_mode(ip->i_mount->m_agwb,
			     READ_ONCE(ip->i_delayed_blks) ?
			     XFS_AGWB_DELALLOC : XFS_AGWB_OVERWRITE);
}

/**
 * xfs_agwb_hand_over - have workers write a part of an inode
 * @ip: inode that the caller is to write
 * @wbc: what it is to write of it
 *
 * What the workers write counts when they have written it, so the call counts
 * as having written nothing, and the inode comes again.
 *
 * Return: %true if that is all for this call; %false if the caller writes.
 */
bool xfs_agwb_hand_over(struct xfs_inode *ip, struct writeback_control *wbc)
{
	struct xfs_agwb_inode	*ai;
	enum xfs_agwb_mode	mode;
	bool			again = true;
	int			error;

	if (wbc->sync_mode != WB_SYNC_NONE ||
	    !(wbc->for_background || wbc->for_kupdate))
		return false;
	/* a worker's own */
	if (wbc->handed_over)
		return false;
	ai = ip->i_agwb;
	mode = xfs_agwb_mode_of(ip);
	/* about as many: writers change it */
	if (data_race(VFS_I(ip)->i_mapping->nrpages) < XFS_AGWB_MIN_PAGES)
		mode = XFS_AGWB_OFF;

	if (ai && ai->round) {
		/* another cgroup's budget is not for this one to wait for */
		if (mode == XFS_AGWB_OFF ||
		    ai->round->wb != xfs_agwb_wb(VFS_I(ip), wbc) ||
		    time_after(jiffies,
			       ai->round->since + XFS_AGWB_TAKE_BACK_TIME))
			xfs_agwb_cancel_round(ai->round);
		/* also where the mode is off by now: see xfs_agwb_make_plan() */
		if (!xfs_agwb_round_is_done(ai->round)) {
			xfs_agwb_wait_for_round(ip->i_mount->m_agwb, ai);
			wbc->handed_over = 1;
			return true;
		}
		again = xfs_agwb_collect(ip);
	}
	if (mode == XFS_AGWB_OFF || !again)
		return false;

	if (!ai) {
		ai = kzalloc_obj(*ai, GFP_NOWAIT);
		if (!ai)
			return false;
		ip->i_agwb = ai;
	}
	error = xfs_agwb_begin_round(ip, mode, wbc);
	if (error == -ENOMEM)
		return false;
	if (error == -EAGAIN)
		xfs_agwb_wait_for_round(ip->i_mount->m_agwb, ai);
	wbc->handed_over = 1;
	return true;
}

/**
 * xfs_agwb_evict - an inode leaves memory
 * @ip: inode that no flusher writes, nor will
 *
 * What has not begun is cancelled, so that this waits only for what runs: an
 * inode that memory reclaim evicts has no folios, so its passes have nothing
 * left to do that needs memory.
 */
void xfs_agwb_evict(struct xfs_inode *ip)
{
	struct xfs_agwb_inode	*ai = ip->i_agwb;

	if (ai && ai->round) {
		xfs_agwb_cancel_round(ai->round);
		wait_event(ip->i_mount->m_agwb->waitq,
			   xfs_agwb_round_is_done(ai->round));
		kfree(ai->round);
	}
	kfree(ai);
	ip->i_agwb = NULL;
}
