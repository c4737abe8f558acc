/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writeback contexts: parallel writeback of one backing device.
 *
 * A backing_dev_info (BDI) has one or more contexts. Each context has its own
 * flusher worker, dirty lists and cgroup writebacks. An inode belongs to one
 * context at a time, so no inode's pages are ever written by two flushers.
 *
 * What steers the writers is not per context. Dirty counts, completions, the
 * bandwidth estimate and the rate limit exist once per device, and once per
 * memcg and device. They live in the bdi_writeback of context 0, which the
 * others of the same memcg reach through their ->throttle. So do references:
 * one on any of a memcg's writebacks is one on its throttle, and the others
 * live as long as that.
 *
 * The number of contexts changes at any time. An inode follows when a flusher
 * is done with it for the moment, see inode_follow_wb_ctx(). It then still
 * counts at the same throttle, so nothing but its place in the lists changes.
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
 *	          bdi->wb_ctx_lock	leaf: contexts and wbs appear; also below
 *					cgwb_lock
 *	          throttle->dirty_lock	leaf
 */
#ifndef _LINUX_BDI_WRITEBACK_CTX_H
#define _LINUX_BDI_WRITEBACK_CTX_H

#include <linux/backing-dev-defs.h>
#include <linux/fs/super_types.h>

struct device_attribute;
struct inode;
struct super_block;

/**
 * struct bdi_writeback_ctx - one flusher of a BDI and all that is its own
 * @bdi: the BDI that this context belongs to
 * @index: place in bdi->wb_ctx_arr
 * @wb: writeback of the root cgroup, and of everything without a cgroup
 * @nr_dirty_wb: writebacks in this context that have dirty inodes
 *
 * A context lives as long as its BDI. Only context 0 exists from the start.
 */
struct bdi_writeback_ctx {
	struct backing_dev_info *bdi;
	unsigned int index;
	struct bdi_writeback wb;
	atomic_t nr_dirty_wb;
};

/*
 * Contexts per possible CPU that an administrator may ask for: a flusher that
 * waits for storage leaves its CPU to another.
 */
#define BDI_WB_CTX_PER_CPU	4

extern struct device_attribute dev_attr_nwritebacks;

int bdi_init_first_wb_ctx(struct backing_dev_info *bdi);
void bdi_enable_wb_ctx(struct backing_dev_info *bdi);
void bdi_free_wb_ctx(struct backing_dev_info *bdi);
void bdi_shutdown_wb_ctx(struct backing_dev_info *bdi);

void sb_enable_wb_ctx(struct super_block *sb);

struct bdi_writeback_ctx *bdi_fetch_wb_ctx(struct backing_dev_info *bdi,
					   unsigned int index);
struct bdi_writeback_ctx *fetch_bdi_writeback_ctx(struct inode *inode);
struct bdi_writeback_ctx *inode_wb_ctx(struct inode *inode);
struct bdi_writeback_ctx *inode_next_wb_ctx(struct inode *inode,
					    struct bdi_writeback *wb);
void inode_attach_root_wb(struct inode *inode);
struct bdi_writeback *wb_in_ctx(struct bdi_writeback *wb,
				struct bdi_writeback_ctx *ctx);
#ifdef CONFIG_CGROUP_WRITEBACK
struct bdi_writeback *wb_get_create_in_ctx(struct bdi_writeback_ctx *ctx,
					   struct cgroup_subsys_state *memcg_css,
					   gfp_t gfp);
#endif

void wb_init_ctx(struct bdi_writeback *wb, struct bdi_writeback_ctx *ctx,
		 struct bdi_writeback *throttle);
void wb_dirty_io_start(struct bdi_writeback *wb);
void wb_dirty_io_end(struct bdi_writeback *wb);
void wb_set_avg_write_bandwidth(struct bdi_writeback *throttle,
				unsigned long avg);
long throttle_share(struct bdi_writeback *throttle, long nr);
unsigned long wb_bandwidth_share(struct bdi_writeback *wb);
struct bdi_writeback *throttle_wb(struct bdi_writeback *throttle,
				  struct bdi_writeback_ctx *ctx);
struct bdi_writeback *throttle_next_wb(struct bdi_writeback *throttle,
				       struct bdi_writeback *wb);
void throttle_wake_flushers(struct bdi_writeback *throttle);

/**
 * wb_ctx_index - context of an inode number
 * @ino: inode number
 * @nr_wb_ctx: number of contexts in use, at least 1
 *
 * Return: the index of the context that writes the inode back.
 */
static inline unsigned int wb_ctx_index(u64 ino, unsigned int nr_wb_ctx)
{
	return do_div(ino, nr_wb_ctx);
}

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
 * bdi_has_wb_ctx - does a filesystem spread its inodes over contexts of a BDI?
 * @bdi: BDI of interest
 *
 * Return: %true once one has enabled it, and there was memory.
 */
static inline bool bdi_has_wb_ctx(const struct backing_dev_info *bdi)
{
	return READ_ONCE(bdi->wb_ctx_arr) != &bdi->first_wb_ctx;
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

/**
 * wb_add_flushed - count pages that others wrote for a flusher
 * @wb: writeback whose flusher handed them over
 * @pages: their number
 */
static inline void wb_add_flushed(struct bdi_writeback *wb, unsigned long pages)
{
	spin_lock(&wb->list_lock);
	wb->nr_flushed += pages;
	spin_unlock(&wb->list_lock);
}

/**
 * sb_has_parallel_writeback - may two flushers write to a filesystem at once?
 * @sb: mounted superblock
 *
 * Return: %true if the inodes of @sb are spread over several contexts.
 */
static inline bool sb_has_parallel_writeback(const struct super_block *sb)
{
	return (sb->s_iflags & SB_I_WB_CTX) &&
	       READ_ONCE(sb->s_bdi->nr_wb_ctx) > 1;
}

/**
 * bdi_next_wb_ctx - iterate over every context that exists
 * @bdi: BDI of interest
 * @ctx: present context, or %NULL for the first
 *
 * Return: the context behind @ctx, or %NULL at the end.
 */
static inline struct bdi_writeback_ctx *
bdi_next_wb_ctx(const struct backing_dev_info *bdi,
		const struct bdi_writeback_ctx *ctx)
{
	unsigned int index = ctx ? ctx->index + 1 : 0;
	/* pairs with the release in bdi_create_wb_ctx() */
	unsigned int end = smp_load_acquire(&bdi->end_wb_ctx);
	struct bdi_writeback_ctx *next = NULL;

	while (!next && index < end)
		next = bdi_wb_ctx(bdi, index++);

	return next;
}

#endif	/* _LINUX_BDI_WRITEBACK_CTX_H */
