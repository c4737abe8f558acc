// SPDX-License-Identifier: GPL-2.0
/*
 * Affinity: which writeback context an inode belongs to, by the filesystem's
 * own judgement where it has one.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/fs.h>

/**
 * wb_affinity_index - index of the context that an inode belongs to
 * @inode: inode of a filesystem that spreads its inodes over contexts
 * @nr_wb_ctx: number of contexts in use, at least 1
 *
 * Called with spinlocks held and interrupts off.
 *
 * Return: an index below @nr_wb_ctx.
 */
unsigned int wb_affinity_index(struct inode *inode, int nr_wb_ctx)
{
	const struct super_operations *op = inode->i_sb->s_op;
	unsigned int index;

	if (!op->get_inode_wb_ctx_idx)
		return wb_ctx_index(inode->i_ino, nr_wb_ctx);

	index = op->get_inode_wb_ctx_idx(inode, nr_wb_ctx);
	if (WARN_ONCE(index >= nr_wb_ctx,
		      "%s: writeback context %u of %d for inode %llu\n",
		      inode->i_sb->s_id, index, nr_wb_ctx,
		      (unsigned long long)inode->i_ino))
		return 0;

	return index;
}
