// SPDX-License-Identifier: GPL-2.0
/*
 * What one of several flusher workers may do beside its siblings: see
 * include/linux/bdi-wb-workers.h for the rules.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-wb-workers.h>
#include <linux/rwsem.h>
#include <linux/wb-test-point.h>
#include "fs-writeback.h"

/* What somebody waits for promises to write all that was dirty before. */
static bool wb_work_runs_alone(const struct wb_writeback_work *work)
{
	return work->done;
}

/**
 * wb_begin_work - start a work item; one that runs alone waits for siblings
 * @wb: writeback of the worker
 * @work: its work item
 *
 * What is dirty now is on the lists of @wb when this returns, unless it is
 * being written by somebody else than a worker.
 */
void wb_begin_work(struct bdi_writeback *wb,
		   const struct wb_writeback_work *work)
	__acquires(&wb->alone_rwsem)
{
	if (wb_work_runs_alone(work)) {
		down_write(&wb->alone_rwsem);
		wb_test_point("alone");
	}
}

/**
 * wb_end_work - end a work item
 * @wb: writeback of the worker
 * @work: its work item
 */
void wb_end_work(struct bdi_writeback *wb, const struct wb_writeback_work *work)
	__releases(&wb->alone_rwsem)
{
	if (wb_work_runs_alone(work))
		up_write(&wb->alone_rwsem);
}

/**
 * wb_begin_piece - start to write some inodes, not beside what runs alone
 * @wb: writeback of the worker
 * @work: its work item
 *
 * A worker does not wait for what runs alone, for that writes everything and
 * may take as long as the device likes: the worker may be the rescuer of
 * bdi_wq, and writers wake it again when they need it.
 *
 * Return: %false if there is nothing to be written beside what runs alone.
 */
bool wb_begin_piece(struct bdi_writeback *wb,
		    const struct wb_writeback_work *work)
{
	return wb_work_runs_alone(work) || down_read_trylock(&wb->alone_rwsem);
}

/**
 * wb_end_piece - no inode is in hand any more
 * @wb: writeback of the worker
 * @work: its work item
 */
void wb_end_piece(struct bdi_writeback *wb,
		  const struct wb_writeback_work *work)
{
	if (!wb_work_runs_alone(work))
		up_read(&wb->alone_rwsem);
}

/**
 * wb_share_work - have another worker write the next inode
 * @wb: writeback of the worker, list_lock is not held
 * @work: its work item
 *
 * Called with an inode of b_io in hand.
 */
void wb_share_work(struct bdi_writeback *wb,
		   const struct wb_writeback_work *work)
{
	/* at worst a worker is woken for nothing, or one inode later */
	if (work->for_background && !data_race(list_is_singular(&wb->b_io)))
		wb_wake_sibling(wb);
}
