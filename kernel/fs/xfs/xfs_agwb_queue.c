// SPDX-License-Identifier: GPL-2.0
/*
 * AG-aware writeback: workers and their queues.
 *
 * A worker has a queue for each bdi_writeback, that is for each cgroup, and
 * writes one pass of each queue at a time. So a cgroup that has used up its
 * budget at the device holds up itself only. No queue has more than
 * XFS_AGWB_QUEUE_DEPTH passes.
 */
#include "xfs_platform.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_inode.h"
#include "xfs_super.h"
#include "xfs_agwb_priv.h"

#define CREATE_TRACE_POINTS
#include "xfs_agwb_trace.h"

/* passes of one bdi_writeback in a worker: one to write, one to follow */
#define XFS_AGWB_QUEUE_DEPTH	2

/* The head of a queue, which alone may be written. */
static struct xfs_agwb_pass *xfs_agwb_first_of(struct xfs_agwb_worker *worker,
					       struct bdi_writeback *wb)
{
	struct xfs_agwb_pass *pass;

	list_for_each_entry(pass, &worker->passes, list) {
		if (pass->round->wb == wb)
			return pass;
	}
	return NULL;
}

static void xfs_agwb_begin_pass(struct xfs_agwb *agwb,
				struct xfs_agwb_pass *pass)
{
	lockdep_assert_held(&agwb->pass_lock);
	pass->has_begun = true;
	queue_work(agwb->wq, &pass->work);
}

/* After the last pass of a round has ended the round may be gone. */
static void xfs_agwb_end_pass(struct xfs_agwb *agwb, struct xfs_agwb_pass *pass)
{
	struct xfs_agwb_pass *next;

	trace_xfs_agwb_end(pass);
	spin_lock(&agwb->pass_lock);
	list_del(&pass->list);
	next = xfs_agwb_first_of(pass->worker, pass->round->wb);
	/* it has begun if a pass behind it was cancelled */
	if (next && !next->has_begun)
		xfs_agwb_begin_pass(agwb, next);
	spin_unlock(&agwb->pass_lock);

	if (atomic_dec_and_test(&pass->round->pending)) {
		atomic_inc(&agwb->nr_ended);
		wake_up_all(&agwb->waitq);
	}
}

static void xfs_agwb_work(struct work_struct *work)
{
	struct xfs_agwb_pass *pass = container_of(work, struct xfs_agwb_pass,
						  work);

	trace_xfs_agwb_begin(pass);
	xfs_agwb_write_pass(pass);
	xfs_agwb_end_pass(pass->round->agwb, pass);
}

static bool xfs_agwb_has_room(struct xfs_agwb_round *round)
{
	lockdep_assert_held(&round->agwb->pass_lock);
	for (unsigned int i = 0; i < round->nr_passes; i++) {
		struct xfs_agwb_pass	*pass;
		unsigned int		nr = 0;

		list_for_each_entry(pass, &round->passes[i].worker->passes,
				    list)
			nr += pass->round->wb == round->wb;
		if (nr >= XFS_AGWB_QUEUE_DEPTH)
			return false;
	}
	return true;
}

/**
 * xfs_agwb_queue_round - give workers the passes of a round
 * @round: with passes that have their worker and their share
 *
 * Return: %false if the queue of one is full; then none has been queued.
 */
bool xfs_agwb_queue_round(struct xfs_agwb_round *round)
{
	struct xfs_agwb *agwb = round->agwb;

	atomic_set(&round->pending, round->nr_passes);
	for (unsigned int i = 0; i < round->nr_passes; i++)
		INIT_WORK(&round->passes[i].work, xfs_agwb_work);

	spin_lock(&agwb->pass_lock);
	if (!xfs_agwb_has_room(round)) {
		spin_unlock(&agwb->pass_lock);
		return false;
	}
	for (unsigned int i = 0; i < round->nr_passes; i++) {
		struct xfs_agwb_pass	*pass = &round->passes[i];
		bool			is_first;

		is_first = !xfs_agwb_first_of(pass->worker, round->wb);
		list_add_tail(&pass->list, &pass->worker->passes);
		trace_xfs_agwb_queue(pass);
		if (is_first)
			xfs_agwb_begin_pass(agwb, pass);
	}
	spin_unlock(&agwb->pass_lock);
	return true;
}

/**
 * xfs_agwb_round_is_done - have all passes of a round ended?
 * @round: that has been queued
 *
 * Return: %true if so; what they left in it may be read.
 */
bool xfs_agwb_round_is_done(struct xfs_agwb_round *round)
{
	/* pairs with the decrement in xfs_agwb_end_pass() */
	return !atomic_read_acquire(&round->pending);
}

/**
 * xfs_agwb_cancel_round - end the passes of a round that nobody writes yet
 * @round: that has been queued
 */
void xfs_agwb_cancel_round(struct xfs_agwb_round *round)
{
	struct xfs_agwb *agwb = round->agwb;

	for (unsigned int i = 0; i < round->nr_passes; i++) {
		struct xfs_agwb_pass	*pass = &round->passes[i];
		bool			has_begun;

		spin_lock(&agwb->pass_lock);
		has_begun = pass->has_begun;
		pass->has_begun = true;
		spin_unlock(&agwb->pass_lock);
		if (!has_begun || cancel_work(&pass->work))
			xfs_agwb_end_pass(agwb, pass);
	}
}

/**
 * xfs_agwb_nr_out - passes of a worker that have not ended
 * @agwb: of the mount
 * @worker: one of its workers
 *
 * Return: their number.
 */
unsigned int xfs_agwb_nr_out(struct xfs_agwb *agwb,
			     struct xfs_agwb_worker *worker)
{
	unsigned int nr;

	spin_lock(&agwb->pass_lock);
	nr = list_count_nodes(&worker->passes);
	spin_unlock(&agwb->pass_lock);
	return nr;
}

/**
 * xfs_agwb_start_workers - get ready for rounds
 * @agwb: of a mount, not started
 *
 * Return: 0 or -ENOMEM.
 */
int xfs_agwb_start_workers(struct xfs_agwb *agwb)
{
	struct xfs_agwb_worker *workers;

	workers = kvcalloc(XFS_AGWB_MAX_WORKERS, sizeof(*workers), GFP_KERNEL);
	if (!workers)
		return -ENOMEM;
	/* as many as may be: passes of a cgroup without budget take long */
	agwb->wq = alloc_workqueue("xfs-agwb/%s",
				   XFS_WQFLAGS(WQ_UNBOUND | WQ_MEM_RECLAIM),
				   WQ_UNBOUND_MAX_ACTIVE,
				   agwb->mp->m_super->s_id);
	if (!agwb->wq) {
		kvfree(workers);
		return -ENOMEM;
	}

	for (unsigned int i = 0; i < XFS_AGWB_MAX_WORKERS; i++)
		INIT_LIST_HEAD(&workers[i].passes);
	agwb->workers = workers;
	return 0;
}

/**
 * xfs_agwb_stop_workers - the end of the workers
 * @agwb: of a mount whose inodes are all evicted
 */
void xfs_agwb_stop_workers(struct xfs_agwb *agwb)
{
	if (!agwb->workers)
		return;

	destroy_workqueue(agwb->wq);
	kvfree(agwb->workers);
}
