/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Several flusher workers for one bdi_writeback.
 *
 * A worker that waits, for a lock of the allocator or for the device, holds up
 * one inode, and not every other inode of its bdi_writeback: its siblings go
 * on. The first worker is wb->dwork; the others exist once they are of use.
 *
 * The rules:
 *
 * - At most one worker writes an inode. It has I_SYNC meanwhile, as it has
 *   while write_inode_now() writes it, and stays on b_io or b_more_io, where a
 *   sibling finds it.
 * - Background writeback is for all: they share one list, which is filled again
 *   when it is empty. All else is the first worker's: what is on work_list,
 *   periodic writeback and requests to write everything.
 * - A work item that somebody waits for is exclusive: the first worker waits
 *   for what its siblings have in hand and keeps them from starting more. What
 *   was dirty before is then on the lists, with the age it had; nothing is
 *   between two lists, or with a sibling that would put it back as younger than
 *   it is.
 * - All take the oldest inode of b_io next, under list_lock.
 * - What steers the writers counts at the throttle, whoever wrote.
 * - Once the bdi_writeback is unregistered no worker starts, and
 *   wb_flush_workers() waits for those that run. Those beyond a smaller number
 *   end after the batch that they are writing.
 *
 * Lock order, outermost first, beside bdi-writeback-ctx.h:
 *
 *	wb->exclusive_rwsem		the first worker holds it for writing for a
 *					whole item, each for reading for a batch of
 *					shared work: only if it gets it at once
 *	  wb->list_lock
 *	wb->work_lock			below it only those of workqueues and of
 *					wb_waitq
 */
#ifndef _LINUX_BDI_WB_WORKERS_H
#define _LINUX_BDI_WB_WORKERS_H

#include <linux/bitops.h>
#include <linux/workqueue.h>

struct bdi_writeback;
struct device_attribute;

/* More would write the same inodes in smaller chunks. */
#define WB_MAX_WORKERS	8

/**
 * struct wb_worker - a flusher worker beside the first
 * @work: runs wb_sibling_workfn()
 * @wb: the bdi_writeback that it flushes
 * @index: its bit in wb->busy_workers
 */
struct wb_worker {
	struct work_struct work;
	struct bdi_writeback *wb;
	unsigned int index;
};

extern struct device_attribute dev_attr_wb_workers;

void wb_sibling_workfn(struct work_struct *work);

void wb_wake_worker(struct bdi_writeback *wb);
void wb_wake_sibling(struct bdi_writeback *wb);
bool wb_has_idle_sibling(struct bdi_writeback *wb);
void wb_worker_begin(struct bdi_writeback *wb, unsigned int index);
void wb_worker_end(struct bdi_writeback *wb, unsigned int index);
void wb_flush_workers(struct bdi_writeback *wb);

/**
 * wb_pick_worker - worker that gets a wake-up
 * @busy: a bit for each worker that has been woken or runs
 * @nr: number of workers, at least 1
 * @turn: counts the wake-ups that found every worker busy
 *
 * Return: the index of the first idle worker, or else of each in turn.
 */
static inline unsigned int wb_pick_worker(unsigned long busy, unsigned int nr,
					  unsigned int *turn)
{
	unsigned int index = find_first_zero_bit(&busy, nr);

	return index < nr ? index : (*turn)++ % nr;
}

#endif	/* _LINUX_BDI_WB_WORKERS_H */
