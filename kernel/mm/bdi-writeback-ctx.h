/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What mm/backing-dev.c and the files of the writeback contexts lend each
 * other.
 */
#ifndef _MM_BDI_WRITEBACK_CTX_H
#define _MM_BDI_WRITEBACK_CTX_H

#include <linux/bdi-writeback-ctx.h>

/* mm/backing-dev.c */
int wb_init(struct bdi_writeback *wb, struct bdi_writeback_ctx *ctx,
	    struct bdi_writeback *throttle, gfp_t gfp);
void wb_exit(struct bdi_writeback *wb);
int cgwb_bdi_init(struct backing_dev_info *bdi);

/* mm/bdi-writeback-ctx.c */
void wb_init_ctx(struct bdi_writeback *wb, struct bdi_writeback_ctx *ctx,
		 struct bdi_writeback *throttle);
int wb_init_root(struct bdi_writeback_ctx *ctx);
int bdi_init_first_wb_ctx(struct backing_dev_info *bdi);
void bdi_free_wb_ctx(struct backing_dev_info *bdi);
struct bdi_writeback_ctx *bdi_alloc_wb_ctx(struct backing_dev_info *bdi,
					   unsigned int index, gfp_t gfp);

#endif	/* _MM_BDI_WRITEBACK_CTX_H */
