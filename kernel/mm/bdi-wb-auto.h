/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What mm/bdi-wb-auto-loop.c has for mm/bdi-wb-auto.c, and for the test, which has
 * a clock of its own.
 */
#ifndef _MM_BDI_WB_AUTO_H
#define _MM_BDI_WB_AUTO_H

#include <linux/bdi-wb-auto.h>
#include <linux/jiffies.h>

/* From a new number to when nearly every inode has moved. */
#define WB_AUTO_SETTLE_TIME	(HZ / 10)
/* A flusher leaves an inode after what it writes in half a second: two such. */
#define WB_AUTO_PATIENCE	HZ
/* Pages are counted for as long as for an estimate of the bandwidth. */
#define WB_AUTO_WINDOW		(HZ / 5)
/* When no writer was throttled for so long, the load may be another. */
#define WB_AUTO_LULL		HZ
/* Between a trial that failed and the next one: doubled after each, to a most. */
#define WB_AUTO_MIN_BACKOFF	(10 * HZ)
#define WB_AUTO_MAX_BACKOFF	(160 * HZ)
/* Rates that differ by less than one part in so many are the same. */
#define WB_AUTO_TOLERANCE	32
/* Fewer pages cannot tell them apart: n of them are n +- sqrt(n) by chance. */
#define WB_AUTO_MIN_PAGES	(WB_AUTO_TOLERANCE * WB_AUTO_TOLERANCE)

unsigned long bdi_written(struct backing_dev_info *bdi);
void bdi_wb_auto_use(struct backing_dev_info *bdi, unsigned int nr);
void bdi_wb_auto_restart(struct backing_dev_info *bdi, unsigned long now);
enum wb_auto_verdict wb_auto_judge(u64 kept_rate, u64 rate);
void bdi_wb_auto_step(struct backing_dev_info *bdi, unsigned long now,
		      u64 now_ns, unsigned long written, unsigned int cpus,
		      bool lull);

#endif	/* _MM_BDI_WB_AUTO_H */
