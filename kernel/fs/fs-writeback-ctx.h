/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work items for all contexts of one throttle. Included by fs/fs-writeback.c
 * only, where struct wb_writeback_work is private.
 */
#ifndef _FS_FS_WRITEBACK_CTX_H
#define _FS_FS_WRITEBACK_CTX_H

#ifdef CONFIG_CGROUP_WRITEBACK

/**
 * throttle_queue_work - queue a work item for every context of a throttle
 * @throttle: writeback that throttles
 * @work: item to be freed on completion, its ->done is shared by the copies
 *
 * A context for which there is no memory for a copy is left to its own
 * background writeback: the caller asked for a best effort.
 */
static void throttle_queue_work(struct bdi_writeback *throttle,
				struct wb_writeback_work *work)
{
	struct bdi_writeback_ctx *ctx;

	rcu_read_lock();
	for (ctx = bdi_next_wb_ctx(throttle->bdi, NULL); ctx;
	     ctx = bdi_next_wb_ctx(throttle->bdi, ctx)) {
		struct bdi_writeback *wb = throttled_wb_rcu(throttle, ctx);
		struct wb_writeback_work *copy;

		if (!wb || wb == throttle || !wb_has_dirty_io(wb))
			continue;

		copy = kmemdup(work, sizeof(*work), GFP_NOWAIT);
		if (copy)
			wb_queue_work(wb, copy);
	}
	rcu_read_unlock();

	wb_queue_work(throttle, work);
}

#endif	/* CONFIG_CGROUP_WRITEBACK */

#endif	/* _FS_FS_WRITEBACK_CTX_H */
