// SPDX-License-Identifier: GPL-2.0
/*
 * Writeback contexts: see include/linux/bdi-writeback-ctx.h for what they are
 * and for the lock order. Here is how they live and die with their BDI.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/slab.h>
#include "bdi-writeback-ctx.h"

/**
 * wb_init_ctx - tie a new bdi_writeback to its context and its throttle
 * @wb: bdi_writeback being initialised
 * @ctx: context that it will flush in
 * @throttle: bdi_writeback that steers the writers on behalf of @wb, and lives
 *	longer; @wb itself in context 0
 */
void wb_init_ctx(struct bdi_writeback *wb, struct bdi_writeback_ctx *ctx,
		 struct bdi_writeback *throttle)
{
	wb->bdi = ctx->bdi;
	wb->ctx = ctx;
	wb->throttle = throttle;
	wb->root = wb == &ctx->wb;
	spin_lock_init(&wb->dirty_lock);
}

/**
 * wb_init_root - initialise the writeback that throttles a BDI's root cgroup
 * @ctx: context 0 of the BDI
 *
 * Return: 0, or -ENOMEM.
 */
int wb_init_root(struct bdi_writeback_ctx *ctx)
{
	return wb_init(&ctx->wb, ctx, &ctx->wb, GFP_KERNEL);
}

/**
 * bdi_alloc_wb_ctx - allocate a context that nobody can find yet
 * @bdi: BDI that it is for
 * @index: its place there
 * @gfp: allocation mask
 *
 * Return: the context with a writeback still to be initialised, or %NULL.
 */
struct bdi_writeback_ctx *bdi_alloc_wb_ctx(struct backing_dev_info *bdi,
					   unsigned int index, gfp_t gfp)
{
	struct bdi_writeback_ctx *ctx;

	ctx = kzalloc_obj(*ctx, gfp);
	if (!ctx)
		return NULL;

	ctx->bdi = bdi;
	ctx->index = index;
	return ctx;
}

/**
 * bdi_init_first_wb_ctx - give a new BDI its context 0
 * @bdi: BDI being initialised
 *
 * Return: 0, or -ENOMEM.
 */
int bdi_init_first_wb_ctx(struct backing_dev_info *bdi)
{
	int ret;

	init_rwsem(&bdi->wb_switch_rwsem);
	bdi->nr_wb_ctx = 1;
	bdi->max_wb_ctx = 1;
	bdi->wb_ctx_arr = &bdi->first_wb_ctx;
	bdi->first_wb_ctx = bdi_alloc_wb_ctx(bdi, 0, GFP_KERNEL);
	if (!bdi->first_wb_ctx)
		return -ENOMEM;

	ret = cgwb_bdi_init(bdi);
	if (ret) {
		kfree(bdi->first_wb_ctx);
		return ret;
	}
	bdi->end_wb_ctx = 1;
	return 0;
}

/**
 * bdi_free_wb_ctx - free the contexts of a BDI
 * @bdi: unregistered BDI without users
 */
void bdi_free_wb_ctx(struct backing_dev_info *bdi)
{
	/* context 0 goes last: it holds the throttle of the others */
	for (int i = bdi->end_wb_ctx - 1; i >= 0; i--) {
		struct bdi_writeback_ctx *ctx = bdi_wb_ctx(bdi, i);

		if (!ctx)
			continue;

		WARN_ON_ONCE(test_bit(WB_registered, &ctx->wb.state));
		wb_exit(&ctx->wb);
		kfree(ctx);
	}
	if (bdi->wb_ctx_arr != &bdi->first_wb_ctx)
		kfree(bdi->wb_ctx_arr);
}
