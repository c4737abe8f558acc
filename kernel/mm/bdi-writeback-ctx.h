/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What mm/backing-dev.c and mm/bdi-writeback-ctx.c lend each other.
 */
#ifndef _MM_BDI_WRITEBACK_CTX_H
#define _MM_BDI_WRITEBACK_CTX_H

#include <linux/bdi-writeback-ctx.h>

struct seq_file;

/* mm/backing-dev.c */
int wb_init(struct bdi_writeback *wb, struct bdi_writeback_ctx *ctx,
	    struct bdi_writeback *throttle, gfp_t gfp);
void wb_shutdown(struct bdi_writeback *wb);
void wb_exit(struct bdi_writeback *wb);
int cgwb_bdi_init(struct backing_dev_info *bdi);

/* mm/bdi-writeback-ctx.c */
int wb_init_root(struct bdi_writeback_ctx *ctx);
void bdi_register_wb_ctx(struct backing_dev_info *bdi);
void bdi_add_wb(struct bdi_writeback *wb);
void bdi_del_wb(struct bdi_writeback *wb);
void bdi_show_wb_ctx(struct seq_file *m, struct backing_dev_info *bdi);
#ifdef CONFIG_CGROUP_WRITEBACK
void cgwb_shutdown_ctx_wbs(struct bdi_writeback *throttle);
void cgwb_free_ctx_wbs(struct bdi_writeback *throttle);
bool cgwb_cleanup_offline_ctx_wbs(struct bdi_writeback *throttle);
#endif

#endif	/* _MM_BDI_WRITEBACK_CTX_H */
