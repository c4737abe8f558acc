/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What fs/fs-writeback.c and the files beside it lend each other.
 */
#ifndef _FS_FS_WRITEBACK_H
#define _FS_FS_WRITEBACK_H

#include <linux/backing-dev-defs.h>
#include <linux/list.h>
#include <linux/writeback.h>

/*
 * Passed into wb_writeback(), essentially a subset of writeback_control
 */
struct wb_writeback_work {
	long nr_pages;
	struct super_block *sb;
	enum writeback_sync_modes sync_mode;
	unsigned int tagged_writepages:1;
	unsigned int for_kupdate:1;
	unsigned int range_cyclic:1;
	unsigned int for_background:1;
	unsigned int for_sync:1;	/* sync(2) WB_SYNC_ALL writeback */
	unsigned int auto_free:1;	/* free on completion */
	enum wb_reason reason;		/* why was writeback initiated? */

	struct list_head list;		/* pending work list */
	struct wb_completion *done;	/* set if the caller waits */
};

/* fs-writeback.c */
void wb_queue_work(struct bdi_writeback *wb, struct wb_writeback_work *work);

/* fs-writeback-cgroup.c */
void throttle_queue_work(struct bdi_writeback *throttle,
			 struct wb_writeback_work *work);

#endif	/* _FS_FS_WRITEBACK_H */
