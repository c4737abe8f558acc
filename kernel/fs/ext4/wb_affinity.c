// SPDX-License-Identifier: GPL-2.0
/*
 * Which inodes of ext4 can be written back in parallel.
 */

#include "ext4.h"

/**
 * ext4_get_inode_wb_ctx_idx - writeback context of an inode
 * @inode: inode of interest
 * @nr_wb_ctx: number of contexts in use
 *
 * Blocks are looked for in the flex group of the inode first. Its inodes go to
 * one context, so that the extents of two files do not interleave because two
 * flushers allocate side by side. The locks are those of single block groups,
 * so more contexts than flex groups are still of use.
 *
 * Return: an index below @nr_wb_ctx.
 */
unsigned int ext4_get_inode_wb_ctx_idx(struct inode *inode, int nr_wb_ctx)
{
	return ext4_flex_group(EXT4_SB(inode->i_sb),
			       EXT4_I(inode)->i_block_group) % nr_wb_ctx;
}

/**
 * ext4_inode_has_delalloc - does writing an inode back allocate blocks?
 * @inode: inode of interest
 *
 * Return: %true while it has blocks that are reserved and not allocated.
 */
bool ext4_inode_has_delalloc(struct inode *inode)
{
	return READ_ONCE(EXT4_I(inode)->i_reserved_data_blocks);
}
