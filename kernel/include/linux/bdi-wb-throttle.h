/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The throttle of a bdi_writeback: what steers the writers.
 *
 * Dirty counts, completions, the bandwidth estimate and the rate limit exist
 * once per device, and once per memcg and device. They live in one
 * bdi_writeback, the throttle, which the others of the same memcg reach through
 * their ->throttle. So do references: one on any of a memcg's writebacks is one
 * on its throttle, and the others live as long as that.
 */
#ifndef _LINUX_BDI_WB_THROTTLE_H
#define _LINUX_BDI_WB_THROTTLE_H

#include <linux/backing-dev-defs.h>

void wb_dirty_io_start(struct bdi_writeback *wb);
void wb_dirty_io_end(struct bdi_writeback *wb);
void wb_set_avg_write_bandwidth(struct bdi_writeback *throttle,
				unsigned long avg);
long throttle_share(struct bdi_writeback *throttle, long nr);
unsigned long wb_bandwidth_share(struct bdi_writeback *wb);

#endif	/* _LINUX_BDI_WB_THROTTLE_H */
