// SPDX-License-Identifier: GPL-2.0
/*
 * Which writeback context an inode belongs to.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/export.h>
#include <linux/fs.h>
#include <linux/writeback.h>

/*
 * The place of an inode under the present number of contexts. It is where the
 * inode goes next, not necessarily where it is.
 */
static unsigned int inode_wb_ctx_index(struct inode *inode)
{
	if (!(inode->i_sb->s_iflags & SB_I_WB_CTX))
		return 0;

	return wb_ctx_index(inode->i_ino,
			    READ_ONCE(inode_to_bdi(inode)->nr_wb_ctx));
}

/**
 * fetch_bdi_writeback_ctx - context that an inode is to be written back by
 * @inode: inode of interest
 *
 * Creates the context if this is its first inode. The inode of a block device
 * stays in context 0: it is one inode, and its place must not depend on what
 * is mounted.
 *
 * Return: the context, or context 0 where there is no memory for it.
 */
struct bdi_writeback_ctx *fetch_bdi_writeback_ctx(struct inode *inode)
{
	return bdi_fetch_wb_ctx(inode_to_bdi(inode), inode_wb_ctx_index(inode));
}

/**
 * inode_wb_ctx - context that an inode is in
 * @inode: inode with a writeback
 *
 * Return: the context. Without a lock of the inode it may have changed.
 */
struct bdi_writeback_ctx *inode_wb_ctx(struct inode *inode)
{
	struct bdi_writeback_ctx *ctx;

	rcu_read_lock();
	ctx = READ_ONCE(inode->i_wb)->ctx;
	rcu_read_unlock();

	return ctx;
}

/**
 * inode_next_wb_ctx - context that an inode has to move to
 * @inode: inode with a writeback
 * @wb: its writeback, list_lock is held
 *
 * Return: the context; %NULL if the inode belongs where it is.
 */
struct bdi_writeback_ctx *inode_next_wb_ctx(struct inode *inode,
					    struct bdi_writeback *wb)
{
	unsigned int index = inode_wb_ctx_index(inode);

	return index == wb->ctx->index ? NULL : bdi_fetch_wb_ctx(wb->bdi, index);
}

#ifndef CONFIG_CGROUP_WRITEBACK
/**
 * inode_attach_root_wb - associate an inode with the writeback of its context
 * @inode: inode that is dirtied for the first time
 */
void inode_attach_root_wb(struct inode *inode)
{
	struct bdi_writeback *wb = &fetch_bdi_writeback_ctx(inode)->wb;

	/* several callers may race to attach the same inode */
	cmpxchg(&inode->i_wb, NULL, wb);
}
EXPORT_SYMBOL_GPL(inode_attach_root_wb);
#endif
