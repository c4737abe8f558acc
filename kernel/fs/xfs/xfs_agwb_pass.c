// SPDX-License-Identifier: GPL-2.0
/*
 * AG-aware writeback: the flusher deals, workers write.
 *
 * In one call the flusher hands over a round of an inode: one pass for each
 * worker concerned, each with a part of the pages that the call may write. It
 * does not wait for them, it goes on to its next inode; when it comes back to
 * this one, it collects the round and deals the next. What a pass writes is
 * counted when it is written, and the flusher's call as having written nothing.
 *
 * A worker has a queue for each bdi_writeback, that is for each cgroup, and
 * writes one pass of each at a time. So a cgroup that has used up its share of
 * the device holds up itself only. No queue has more than a few passes: a
 * flusher waits for room as it waits for a round.
 *
 * Only background and periodic writeback is handed over, for which nobody
 * waits. Whatever is waited for is written by the task that does, as if there
 * were no workers; both meet at the folio lock, as a flusher and fsync() do.
 *
 * A worker writes a run of folios by calling ->writepages() for its range. In a
 * worker that takes the ordinary path.
 *
 * A round has no reference on its inode. Eviction waits for it, as it waits for
 * I_SYNC.
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
#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/iomap.h>
#include <linux/writeback.h>

/* pages in memory that make a file worth a round: a flusher's least piece */
#define XFS_AGWB_MIN_PAGES	(SZ_4M / PAGE_SIZE)

/* how long a flusher waits for any round before it goes to other inodes */
#define XFS_AGWB_PATIENCE	(HZ / 10)

/* passes of one bdi_writeback that a worker has: one to write, one to follow */
#define XFS_AGWB_MOST_OUT	2

/* what a worker does of a round */
struct xfs_agwb_pass {
	struct work_struct work;
	struct list_head list;		/* in worker->passes; pass_lock */
	bool has_begun;			/* its work is queued; pass_lock */
	struct xfs_agwb_worker *worker;
	struct xfs_agwb_round *round;
	struct xfs_agwb_share share;
	long budget;			/* pages */
	long written;			/* pages */
	pgoff_t reached;		/* end of the last folio */
	pgoff_t stop;			/* where to go on, if not done */
};

/* what a flusher handed over of an inode */
struct xfs_agwb_round {
	struct xfs_agwb *agwb;
	struct xfs_agwb_inode *ai;
	/* the flusher's; to compare, for there is no reference on it */
	struct bdi_writeback *wb;
	pgoff_t start;
	bool kupdate;
	atomic_t pending;		/* passes that have not ended */
	unsigned int nr_passes;
	struct xfs_agwb_pass passes[] __counted_by(nr_passes);
};

/*
 * A slot without a hint for its pass may have none at all: let no further round
 * have a pass for it. A hint is stored before its bit is set, so one that comes
 * now is either found here or sets the bit after it is cleared.
 */
static void xfs_agwb_recheck_slot(struct xfs_agwb_inode *ai, unsigned int slot)
{
	pgoff_t index = 0;
	u64 scanned = 0;

	clear_bit(slot, ai->dirty);
	/* pairs with the barrier in xfs_agwb_dirtied() */
	smp_mb__after_atomic();
	if (xfs_agwb_find_hint(&ai->hints, &index, ULONG_MAX, BIT_ULL(slot),
			       true, &scanned))
		set_bit(slot, ai->dirty);
}

/* Returns the pass that the caller runs, NULL in any other task. */
static struct xfs_agwb_pass *xfs_agwb_current_pass(struct xfs_agwb *agwb)
{
	return xa_load(&agwb->running, current->pid);
}

static pgoff_t xfs_agwb_pages_on_disk(struct xfs_inode *ip)
{
	return DIV_ROUND_UP_ULL(READ_ONCE(ip->i_disk_size), PAGE_SIZE);
}

static void xfs_agwb_write(struct xfs_agwb_pass *pass,
			   struct writeback_control *wbc)
{
	struct xfs_agwb_round	*round = pass->round;
	struct xfs_agwb_inode	*ai = round->ai;
	struct address_space	*mapping = VFS_I(ai->ip)->i_mapping;
	struct blk_plug		plug;
	pgoff_t			first = round->start;
	pgoff_t			last, on_disk;
	u64			scanned = 0;

	blk_start_plug(&plug);
	while (wbc->nr_to_write > 0) {
		/* without its lock: it may change while the run is written */
		on_disk = xfs_agwb_pages_on_disk(ai->ip);
		if (!xfs_agwb_next_run(&pass->share, wbc->nr_to_write, on_disk,
				       &mapping->i_pages, &ai->hints, &first,
				       &last, &scanned))
			break;
		wbc->range_start = (loff_t)first << PAGE_SHIFT;
		wbc->range_end = last == ULONG_MAX ? LLONG_MAX :
				 ((loff_t)(last + 1) << PAGE_SHIFT) - 1;
		/* an error is in the mapping, and ends the pass as ever */
		if (mapping->a_ops->writepages(mapping, wbc) ||
		    last == ULONG_MAX)
			break;
		first = last + 1;
	}
	blk_finish_plug(&plug);
	atomic64_add(scanned, &pass->worker->scanned);
}

static void xfs_agwb_run_pass(struct xfs_agwb *agwb, struct xfs_agwb_pass *pass)
{
	struct xfs_agwb_round	*round = pass->round;
	struct inode		*inode = VFS_I(round->ai->ip);
	struct bdi_writeback	*wb;
	struct writeback_control wbc = {
		.sync_mode	= WB_SYNC_NONE,
		.nr_to_write	= pass->budget,
		.for_kupdate	= round->kupdate,
		.for_background	= !round->kupdate,
	};

	wbc_attach_fdatawrite_inode(&wbc, inode);
	wb = inode_to_wb_wbc(inode, &wbc);
	/* not in this queue what is charged to another cgroup by now */
	if (wb == round->wb) {
		pass->reached = round->start;
		xfs_agwb_write(pass, &wbc);
		pass->written = pass->budget - wbc.nr_to_write;
		pass->stop = wbc.nr_to_write > 0 ? ULONG_MAX : pass->reached;
		if (pass->share.kind == XFS_AGWB_SHARE_SLOT && !pass->written)
			xfs_agwb_recheck_slot(round->ai, pass->share.number);
		wb_add_flushed(wb, pass->written);
		atomic64_add(pass->written, &pass->worker->submitted);
	}
	wbc_detach_inode(&wbc);
	atomic64_inc(&pass->worker->nr_passes);
}

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

	spin_lock(&agwb->pass_lock);
	list_del_init(&pass->list);
	next = xfs_agwb_first_of(pass->worker, pass->round->wb);
	/* it has begun if the pass was taken back from the middle */
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
	struct xfs_agwb *agwb = pass->round->agwb;

	/* without memory, the flusher writes */
	if (!xa_insert(&agwb->running, current->pid, pass,
		       GFP_NOWAIT | __GFP_NOWARN)) {
		xfs_agwb_run_pass(agwb, pass);
		xa_erase(&agwb->running, current->pid);
	}
	xfs_agwb_end_pass(agwb, pass);
}

/**
 * xfs_agwb_placed - a folio has got its place on disk
 * @wpc: what is known of the pass over its mapping
 * @folio: locked folio that is being written back
 * @error: its range has no mapping because of this error
 * @uncounted: first index of this pass that is not counted yet
 *
 * Whoever writes the folio back: here its hint ends. The first range of it that
 * is written decides whether the hint was right.
 */
void xfs_agwb_placed(const struct iomap_writepage_ctx *wpc,
		     struct folio *folio, int error, pgoff_t *uncounted)
{
	const struct iomap	*iomap = &wpc->iomap;
	struct xfs_inode	*ip = XFS_I(wpc->inode);
	struct xfs_agwb		*agwb = ip->i_mount->m_agwb;
	struct xfs_agwb_inode	*ai = READ_ONCE(ip->i_agwb);
	struct xfs_agwb_pass	*pass;
	enum xfs_agwb_class	class;
	xfs_agnumber_t		agno;
	u16			hint = 0;
	bool			is_on;

	if (!static_branch_unlikely(&xfs_agwb_used))
		return;

	is_on = xfs_agwb_is_on(agwb);
	if ((!is_on && !ai) || folio->index < *uncounted)
		return;

	*uncounted = folio_next_index(folio);
	pass = xfs_agwb_current_pass(agwb);
	if (pass)
		pass->reached = *uncounted;
	if (ai)
		hint = xfs_agwb_take_hint(agwb, ai, folio->index);
	if (!is_on || error || iomap->addr == IOMAP_NULL_ADDR ||
	    XFS_IS_REALTIME_INODE(ip))
		return;

	agno = xfs_agwb_agno(ip->i_mount, iomap);
	if (ai)
		WRITE_ONCE(ai->agno, agno);
	if (!hint) {
		/* new blocks are unwritten until their I/O is done */
		class = iomap->type == IOMAP_UNWRITTEN ? XFS_AGWB_DELALLOC :
							 XFS_AGWB_OVERWRITE;
		this_cpu_inc(agwb->counts->unhinted[class]);
		return;
	}

	class = hint & XFS_AGWB_HINT_DELALLOC ? XFS_AGWB_DELALLOC :
						XFS_AGWB_OVERWRITE;
	if (xfs_agwb_hint_agno(hint) == agno)
		this_cpu_inc(agwb->counts->right[class]);
	else
		this_cpu_inc(agwb->counts->wrong[class]);
}

static bool xfs_agwb_round_is_done(struct xfs_agwb_round *round)
{
	/* what the passes left in the round is read after this */
	return !atomic_read_acquire(&round->pending);
}

/*
 * Waits for the round of an inode, or for room, but not while a round has ended
 * that the flusher may find at the next inode. For each round that ends it
 * passes by an inode once, so it does not spin.
 */
static void xfs_agwb_await(struct xfs_agwb *agwb, struct xfs_agwb_inode *ai)
{
	int nr_ended = atomic_read(&agwb->nr_ended);

	if (nr_ended == ai->seen_ended)
		wait_event_timeout(agwb->waitq,
				   atomic_read(&agwb->nr_ended) != nr_ended,
				   XFS_AGWB_PATIENCE);
	ai->seen_ended = nr_ended;
}

/*
 * A round has ended: go on where the first pass ran out of budget, so that
 * nothing between the passes' ends is left out. Returns false if the flusher
 * shall write, and so find out what state the inode is in: after a round that
 * found nothing, and after one of periodic writeback that came to the end of
 * the file, or else a file that is written to all the time would never be done.
 */
static bool xfs_agwb_collect(struct xfs_agwb_inode *ai)
{
	struct xfs_agwb_round	*round = ai->round;
	pgoff_t			stop = ULONG_MAX;
	long			written = 0;
	bool			again;

	for (unsigned int i = 0; i < round->nr_passes; i++) {
		struct xfs_agwb_pass *pass = &round->passes[i];

		written += pass->written;
		if (pass->stop == ULONG_MAX)
			continue;
		stop = min(stop, pass->stop);
		if (pass->share.kind == XFS_AGWB_SHARE_SLOT)
			set_bit(pass->share.number, ai->dirty);
	}
	VFS_I(ai->ip)->i_mapping->writeback_index =
		stop == ULONG_MAX ? 0 : stop;
	again = written && (stop != ULONG_MAX || !round->kupdate);
	ai->round = NULL;
	kfree(round);
	return again;
}

/* Takes back the passes of a round that no worker writes yet. */
static void xfs_agwb_take_back(struct xfs_agwb_round *round)
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

/*
 * Lets nothing of a round be left. What has not begun is taken back, so that
 * this waits only for what runs: an inode that memory reclaim evicts has no
 * folios, so its passes have nothing left to do that needs memory.
 */
static void xfs_agwb_end_round(struct xfs_agwb *agwb,
			       struct xfs_agwb_inode *ai)
{
	struct xfs_agwb_round *round = ai->round;

	if (!round)
		return;

	xfs_agwb_take_back(round);
	wait_event(agwb->waitq, xfs_agwb_round_is_done(round));
	ai->round = NULL;
	kfree(round);
}

/**
 * xfs_agwb_evict - an inode leaves memory
 * @ip: inode that no flusher writes, nor will
 */
void xfs_agwb_evict(struct xfs_inode *ip)
{
	struct xfs_agwb		*agwb = ip->i_mount->m_agwb;
	struct xfs_agwb_inode	*ai = ip->i_agwb;

	if (!ai)
		return;

	xfs_agwb_end_round(agwb, ai);
	xfs_agwb_free_inode(agwb, ai);
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

static bool xfs_agwb_has_room(struct xfs_agwb_round *round)
{
	lockdep_assert_held(&round->agwb->pass_lock);
	for (unsigned int i = 0; i < round->nr_passes; i++) {
		struct xfs_agwb_pass	*pass;
		unsigned int		nr = 0;

		list_for_each_entry(pass, &round->passes[i].worker->passes,
				    list)
			nr += pass->round->wb == round->wb;
		if (nr >= XFS_AGWB_MOST_OUT)
			return false;
	}
	return true;
}

/*
 * The slots that have passes in this round: those with hints, and the home of
 * the inode, whose pass takes what has no hint.
 */
static u64 xfs_agwb_slots(struct xfs_agwb_inode *ai, unsigned int home)
{
	u64 slots = BIT_ULL(home);

	for (unsigned int slot = 0; slot < XFS_AGWB_SLOTS; slot++) {
		if (test_bit(slot, ai->dirty))
			slots |= BIT_ULL(slot);
	}
	return slots;
}

/* A round that does not begin at the start of a file leaves hints behind. */
static void xfs_agwb_clear_slots(struct xfs_agwb_inode *ai, u64 slots)
{
	if (VFS_I(ai->ip)->i_mapping->writeback_index)
		return;

	for (; slots; slots &= slots - 1)
		clear_bit(__ffs64(slots), ai->dirty);
	/* hints are looked up after their bits are cleared */
	smp_mb__after_atomic();
}

/* Queues all passes of a round, or none where a queue is full. */
static bool xfs_agwb_queue_round(struct xfs_agwb_round *round, u64 slots)
{
	struct xfs_agwb *agwb = round->agwb;

	spin_lock(&agwb->pass_lock);
	if (!xfs_agwb_has_room(round)) {
		spin_unlock(&agwb->pass_lock);
		return false;
	}
	xfs_agwb_clear_slots(round->ai, slots);
	for (unsigned int i = 0; i < round->nr_passes; i++) {
		struct xfs_agwb_pass	*pass = &round->passes[i];
		bool			is_first;

		is_first = !xfs_agwb_first_of(pass->worker, round->wb);
		list_add_tail(&pass->list, &pass->worker->passes);
		if (is_first)
			xfs_agwb_begin_pass(agwb, pass);
	}
	spin_unlock(&agwb->pass_lock);
	return true;
}

/* Says who gets which share, and how many workers it takes. */
struct xfs_agwb_deal {
	enum xfs_agwb_mode mode;
	bool in_order;			/* one pass writes all */
	unsigned int nr_passes;
	unsigned int home;		/* slot of the inode's own AG */
	unsigned int turn;		/* first worker, where no AG counts */
	u64 slots;			/* that have a pass */
};

static void xfs_agwb_make_deal(struct xfs_agwb *agwb, struct xfs_agwb_inode *ai,
			       struct xfs_agwb_deal *deal)
{
	struct inode	*inode = VFS_I(ai->ip);
	pgoff_t		stretches;

	deal->home = xfs_agwb_slot(XFS_INO_TO_AGNO(agwb->mp, inode->i_ino));
	deal->turn = atomic_inc_return(&agwb->turn);
	deal->nr_passes = 1;
	/*
	 * What lies beyond the size on disk is for one, who writes it in order:
	 * the size must not come to cover what somebody has yet to write.
	 */
	deal->in_order = i_size_read(inode) > READ_ONCE(ai->ip->i_disk_size);
	if (deal->in_order)
		return;

	switch (deal->mode) {
	case XFS_AGWB_AG_HINT:
		deal->slots = xfs_agwb_slots(ai, deal->home);
		deal->nr_passes = hweight64(deal->slots);
		break;
	case XFS_AGWB_GENERIC:
		stretches = DIV_ROUND_UP_ULL(i_size_read(inode), SZ_4M);
		deal->nr_passes = clamp_t(pgoff_t, stretches, 1,
					  xfs_agwb_nr_workers(agwb));
		break;
	default:
		break;
	}
}

/* Returns the number of the worker that is dealt the share. */
static unsigned int xfs_agwb_deal_share(struct xfs_agwb_deal *deal,
					unsigned int i,
					struct xfs_agwb_share *share)
{
	unsigned int slot;
	u64 slots = deal->slots;

	if (deal->in_order) {
		share->kind = XFS_AGWB_SHARE_ALL;
		return deal->mode == XFS_AGWB_GENERIC ? deal->turn : deal->home;
	}
	switch (deal->mode) {
	case XFS_AGWB_AG_HINT:
		while (i--)
			slots &= slots - 1;
		slot = __ffs64(slots);
		share->number = slot;
		if (slot != deal->home) {
			share->kind = XFS_AGWB_SHARE_SLOT;
		} else {
			share->kind = XFS_AGWB_SHARE_REST;
			share->others = deal->slots & ~BIT_ULL(slot);
		}
		return slot;
	case XFS_AGWB_GENERIC:
		share->kind = XFS_AGWB_SHARE_STRETCHES;
		share->number = i;
		share->of = deal->nr_passes;
		return deal->turn + i;
	default:
		share->kind = XFS_AGWB_SHARE_ALL;
		return deal->home;
	}
}

/* Returns 0, -ENOMEM, or -EAGAIN where a worker has no room for it. */
static int xfs_agwb_begin_round(struct xfs_agwb *agwb,
				struct xfs_agwb_inode *ai,
				enum xfs_agwb_mode mode,
				struct writeback_control *wbc)
{
	struct xfs_agwb_deal	deal = { .mode = mode };
	struct xfs_agwb_round	*round;

	xfs_agwb_make_deal(agwb, ai, &deal);
	round = kzalloc_flex(*round, passes, deal.nr_passes,
			     GFP_NOWAIT | __GFP_NOWARN);
	if (!round)
		return -ENOMEM;

	round->nr_passes = deal.nr_passes;
	round->agwb = agwb;
	round->ai = ai;
	round->wb = inode_to_wb_wbc(VFS_I(ai->ip), wbc);
	round->start = VFS_I(ai->ip)->i_mapping->writeback_index;
	if (deal.in_order)
		round->start = min(round->start,
				   xfs_agwb_pages_on_disk(ai->ip));
	round->kupdate = wbc->for_kupdate;
	atomic_set(&round->pending, round->nr_passes);
	for (unsigned int i = 0; i < round->nr_passes; i++) {
		struct xfs_agwb_pass	*pass = &round->passes[i];
		unsigned int		number;

		INIT_WORK(&pass->work, xfs_agwb_work);
		INIT_LIST_HEAD(&pass->list);
		number = xfs_agwb_deal_share(&deal, i, &pass->share);
		number %= xfs_agwb_nr_workers(agwb);
		pass->worker = &agwb->workers[number];
		pass->round = round;
		pass->budget = xfs_agwb_budget(wbc->nr_to_write,
					       round->nr_passes, i);
		pass->stop = round->start;
	}
	if (!xfs_agwb_queue_round(round, deal.slots)) {
		kfree(round);
		return -EAGAIN;
	}
	ai->round = round;
	return 0;
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
	struct xfs_agwb		*agwb = ip->i_mount->m_agwb;
	struct xfs_agwb_inode	*ai;
	enum xfs_agwb_mode	mode;
	int			error;

	if (wbc->sync_mode != WB_SYNC_NONE ||
	    !(wbc->for_background || wbc->for_kupdate))
		return false;
	mode = xfs_agwb_mode(agwb, READ_ONCE(ip->i_delayed_blks) ?
				   XFS_AGWB_DELALLOC : XFS_AGWB_OVERWRITE);
	if (mode == XFS_AGWB_OFF || XFS_IS_REALTIME_INODE(ip) ||
	    xfs_agwb_current_pass(agwb))
		return false;
	if (READ_ONCE(VFS_I(ip)->i_mapping->nrpages) < XFS_AGWB_MIN_PAGES)
		return false;
	ai = xfs_agwb_inode(ip);
	if (!ai)
		return false;

	/* another cgroup's budget is not for this one to wait for */
	if (ai->round && ai->round->wb != inode_to_wb_wbc(VFS_I(ip), wbc))
		xfs_agwb_take_back(ai->round);
	if (ai->round && !xfs_agwb_round_is_done(ai->round)) {
		error = -EAGAIN;
	} else {
		if (ai->round && !xfs_agwb_collect(ai))
			return false;
		error = xfs_agwb_begin_round(agwb, ai, mode, wbc);
	}
	if (error == -ENOMEM)
		return false;
	if (error == -EAGAIN)
		xfs_agwb_await(agwb, ai);
	wbc->handed_over = 1;
	return true;
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

	workers = kvcalloc(XFS_AGWB_SLOTS, sizeof(*workers), GFP_KERNEL);
	if (!workers)
		return -ENOMEM;
	/* as many as may be: passes of a cgroup without budget take their time */
	agwb->wq = alloc_workqueue("xfs-agwb/%s",
				   XFS_WQFLAGS(WQ_UNBOUND | WQ_MEM_RECLAIM),
				   WQ_UNBOUND_MAX_ACTIVE,
				   agwb->mp->m_super->s_id);
	if (!agwb->wq) {
		kvfree(workers);
		return -ENOMEM;
	}

	for (unsigned int i = 0; i < XFS_AGWB_SLOTS; i++)
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
