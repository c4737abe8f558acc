// SPDX-License-Identifier: GPL-2.0
/*
 * Several flusher workers for one bdi_writeback: see
 * include/linux/bdi-wb-workers.h for the rules.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-wb-workers.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/slab.h>

/* Workers that may be woken; work_lock is held. */
static unsigned int wb_nr_workers(struct bdi_writeback *wb)
{
	return wb->siblings ? READ_ONCE(wb->bdi->nr_wb_workers) : 1;
}

/* work_lock is held; wb_has_idle_sibling() reads the word without it. */
static void wb_mark_worker(struct bdi_writeback *wb, unsigned int index,
			   bool busy)
{
	unsigned long workers = wb->busy_workers;

	__assign_bit(index, &workers, busy);
	WRITE_ONCE(wb->busy_workers, workers);
}

static void wb_queue_worker(struct bdi_writeback *wb, unsigned int index)
{
	wb_mark_worker(wb, index, true);
	if (index)
		queue_work(bdi_wq, &wb->siblings[index - 1].work);
	else
		mod_delayed_work(bdi_wq, &wb->dwork, 0);
}

/**
 * wb_wake_worker - have a worker look for background writeback
 * @wb: registered writeback, its work_lock is held
 *
 * Where every worker is busy, one of them looks again when it is done.
 */
void wb_wake_worker(struct bdi_writeback *wb)
{
	lockdep_assert_held(&wb->work_lock);
	wb_queue_worker(wb, wb_pick_worker(wb->busy_workers, wb_nr_workers(wb),
					   &wb->worker_turn));
}

/*
 * Does nothing where there are siblings or none are wanted. Only the first
 * worker gets here without any, so they are created once.
 */
static void wb_create_siblings(struct bdi_writeback *wb)
{
	struct wb_worker *siblings;

	if (READ_ONCE(wb->siblings) || !bdi_has_wb_ctx(wb->bdi) ||
	    READ_ONCE(wb->bdi->nr_wb_workers) < 2)
		return;
	/*
	 * Without memory there is one worker, as by default. It does not wait
	 * for memory: others may wait for what it is about to write.
	 */
	siblings = kcalloc(WB_MAX_WORKERS - 1, sizeof(*siblings), GFP_NOWAIT);
	if (!siblings)
		return;

	for (unsigned int i = 0; i < WB_MAX_WORKERS - 1; i++) {
		INIT_WORK(&siblings[i].work, wb_sibling_workfn);
		siblings[i].wb = wb;
		siblings[i].index = i + 1;
	}
	spin_lock_irq(&wb->work_lock);
	WRITE_ONCE(wb->siblings, siblings);
	spin_unlock_irq(&wb->work_lock);
}

/**
 * wb_worker_begin - a worker starts to look for work
 * @wb: its writeback
 * @index: 0 for the first worker, which creates the others when wanted
 */
void wb_worker_begin(struct bdi_writeback *wb, unsigned int index)
{
	if (!index)
		wb_create_siblings(wb);

	spin_lock_irq(&wb->work_lock);
	wb_mark_worker(wb, index, true);
	spin_unlock_irq(&wb->work_lock);
}

/**
 * wb_worker_end - a worker has found no more work
 * @wb: its writeback
 * @index: 0 for the first worker
 *
 * The last one clears what each has set that keeps writers from waking it.
 */
void wb_worker_end(struct bdi_writeback *wb, unsigned int index)
{
	spin_lock_irq(&wb->work_lock);
	wb_mark_worker(wb, index, false);
	if (!wb->busy_workers)
		clear_bit(WB_writeback_running, &wb->state);
	spin_unlock_irq(&wb->work_lock);
}

/**
 * wb_flush_workers - wait for every worker but the first
 * @wb: writeback that is no longer registered, so that no worker starts
 */
void wb_flush_workers(struct bdi_writeback *wb)
{
	if (!wb->siblings)
		return;

	for (unsigned int i = 0; i < WB_MAX_WORKERS - 1; i++)
		flush_work(&wb->siblings[i].work);
}
