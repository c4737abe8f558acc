// SPDX-License-Identifier: GPL-2.0
/*
 * Work items for all writebacks of a cgroup on one device.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/slab.h>
#include "fs-writeback.h"

/**
 * throttle_queue_work - queue a work item for every context of a throttle
 * @throttle: writeback that throttles
 * @work: item to be freed on completion, its ->done is shared by the copies
 *
 * A context for which there is no memory for a copy is left to its own
 * background writeback: the caller asked for a best effort.
 */
void throttle_queue_work(struct bdi_writeback *throttle,
			 struct wb_writeback_work *work)
{
	struct bdi_writeback *wb = throttle;

	while ((wb = throttle_next_wb(throttle, wb))) {
		struct wb_writeback_work *copy;

		if (!wb_has_dirty_io(wb))
			continue;

		copy = kmemdup(work, sizeof(*work), GFP_NOWAIT);
		if (copy)
			wb_queue_work(wb, copy);
	}

	wb_queue_work(throttle, work);
}
