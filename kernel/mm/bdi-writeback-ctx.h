/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What mm/backing-dev.c, mm/bdi-writeback-ctx.c and mm/bdi-wb-throttle.c lend
 * each other.
 */
#ifndef _MM_BDI_WRITEBACK_CTX_H
#define _MM_BDI_WRITEBACK_CTX_H

#include <linux/bdi-writeback-ctx.h>

struct seq_file;

/* mm/backing-dev.c: one writeback, and the cgroup side of one context */
int wb_init(struct bdi_writeback *wb, struct bdi_writeback_ctx *ctx,
	    struct bdi_writeback *throttle, gfp_t gfp);
void wb_shutdown(struct bdi_writeback *wb);
void wb_exit(struct bdi_writeback *wb);
int cgwb_bdi_init(struct bdi_writeback_ctx *ctx);
void cgwb_bdi_register(struct bdi_writeback_ctx *ctx);
void cgwb_bdi_unregister(struct bdi_writeback_ctx *ctx);

/* mm/bdi-writeback-ctx.c */
int wb_init_root(struct bdi_writeback_ctx *ctx);
void bdi_register_wb_ctx(struct backing_dev_info *bdi);
void bdi_show_wb_ctx(struct seq_file *m, struct backing_dev_info *bdi);

/* mm/bdi-wb-throttle.c */
#ifdef CONFIG_CGROUP_WRITEBACK
struct bdi_writeback *cgwb_get_throttle(struct bdi_writeback *wb,
					struct bdi_writeback_ctx *ctx,
					struct cgroup_subsys_state *memcg_css,
					gfp_t gfp);
#endif

#endif	/* _MM_BDI_WRITEBACK_CTX_H */
