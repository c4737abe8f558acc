/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writeback contexts: parallel writeback of one backing device.
 *
 * A backing_dev_info (BDI) has one or more contexts. Each context has its own
 * flusher worker, dirty lists and cgroup writebacks. An inode belongs to one
 * context at a time, so no inode's pages are ever written by two flushers.
 *
 * What steers the writers is not per context: it is in the bdi_writeback of
 * context 0, see bdi-wb-throttle.h.
 *
 * Lock order, outermost first:
 *
 *	sb->s_umount
 *	  bdi->wb_switch_rwsem		held for writing for a whole sync: no inode
 *					leaves its wb; a flusher only tries, with
 *					list_lock held
 *	    wb->list_lock		one at a time but in process_inode_switch_wbs()
 *	      inode->i_lock
 *	        mapping->i_pages	interrupts off
 *	          throttle->dirty_lock	leaf
 */
#ifndef _LINUX_BDI_WRITEBACK_CTX_H
#define _LINUX_BDI_WRITEBACK_CTX_H

#include <linux/backing-dev-defs.h>
#include <linux/bdi-wb-throttle.h>

/**
 * struct bdi_writeback_ctx - one flusher of a BDI and all that is its own
 * @bdi: the BDI that this context belongs to
 * @index: place in bdi->wb_ctx_arr
 * @wb: writeback of the root cgroup, and of everything without a cgroup
 *
 * A context lives as long as its BDI. Only context 0 exists from the start.
 */
struct bdi_writeback_ctx {
	struct backing_dev_info *bdi;
	unsigned int index;
	struct bdi_writeback wb;
};

/**
 * bdi_wb_ctx - context of a BDI by its index
 * @bdi: BDI of interest
 * @index: from 0 to bdi->end_wb_ctx - 1, or, for a BDI with a filesystem that
 *	has enabled contexts, to bdi->max_wb_ctx - 1
 *
 * Return: the context, %NULL if it does not exist yet. Context 0 always does.
 * A context stays valid for as long as @bdi does.
 */
static inline struct bdi_writeback_ctx *
bdi_wb_ctx(const struct backing_dev_info *bdi, unsigned int index)
{
	/* pairs with the release in bdi_grow_wb_ctx_arr() */
	struct bdi_writeback_ctx **arr = smp_load_acquire(&bdi->wb_ctx_arr);

	/* pairs with the release in bdi_create_wb_ctx() */
	return smp_load_acquire(&arr[index]);
}

/**
 * bdi_root_wb - writeback of context 0 and the root cgroup
 * @bdi: BDI of interest
 *
 * It exists for as long as @bdi does, throttles the writers of the root
 * cgroup and says with %WB_registered whether @bdi is registered.
 *
 * Return: the bdi_writeback.
 */
static inline struct bdi_writeback *
bdi_root_wb(const struct backing_dev_info *bdi)
{
	return &bdi_wb_ctx(bdi, 0)->wb;
}

#endif	/* _LINUX_BDI_WRITEBACK_CTX_H */
