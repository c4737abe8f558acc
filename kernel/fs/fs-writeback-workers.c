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

/*
 * What somebody waits for promises to write all that was dirty before. The
 * memory controller only looks whether a foreign flush has ended.
 */
static bool wb_work_is_exclusive(const struct wb_writeback_work *work)
{
	return work->done && work->reason != WB_REASON_FOREIGN_FLUSH;
}

/**
 * wb_begin_work - start a work item; exclusive work waits for siblings
 * @wb: writeback of the worker
 * @work: its work item
 *
 * What is dirty now is on the lists of @wb when this returns, unless it is
 * being written by somebody else than a worker.
 */
void wb_begin_work(struct bdi_writeback *wb,
		   const struct wb_writeback_work *work)
	__acquires(&wb->exclusive_rwsem)
{
	if (wb_work_is_exclusive(work)) {
		down_write(&wb->exclusive_rwsem);
		wb_test_point("exclusive");
	}
}

/**
 * wb_end_work - end a work item
 * @wb: writeback of the worker
 * @work: its work item
 */
void wb_end_work(struct bdi_writeback *wb, const struct wb_writeback_work *work)
	__releases(&wb->exclusive_rwsem)
{
	if (wb_work_is_exclusive(work))
		up_write(&wb->exclusive_rwsem);
}

/**
 * wb_begin_batch - start to write some inodes, not beside exclusive work
 * @wb: writeback of the worker
 * @work: its work item
 *
 * A sibling does not wait for exclusive work, for that may take as long as the
 * device likes, and it may run in the rescuer of bdi_wq. Nobody waits for what
 * it leaves: writers wake it again when they need it, and the first worker goes
 * on after its item.
 *
 * Return: %false if exclusive work is under way, to a sibling only.
 */
bool wb_begin_batch(struct bdi_writeback *wb,
		    const struct wb_writeback_work *work)
{
	return wb_work_is_exclusive(work) || down_read_trylock(&wb->exclusive_rwsem);
}

/**
 * wb_end_batch - no inode is in hand any more
 * @wb: writeback of the worker
 * @work: its work item
 */
void wb_end_batch(struct bdi_writeback *wb,
		  const struct wb_writeback_work *work)
{
	if (!wb_work_is_exclusive(work))
		up_read(&wb->exclusive_rwsem);
}
