// SPDX-License-Identifier: GPL-2.0
/*
 * Which inodes of ext4 can be written back in parallel.
 */

#include "ext4.h"

/*
 * Flex groups take turns, as inodes of theirs get dirty: those that are written to
 * are some of many, and by their numbers two could share a context while another
 * has none. A turn is set once, without a lock, and kept for as long as the
 * filesystem is mounted.
 */
static unsigned int ext4_wb_turn(struct ext4_sb_info *sbi, ext4_group_t group)
{
	struct flex_groups *fg = sbi_array_rcu_deref(sbi, s_flex_groups, group);
	int turn = atomic_read(&fg->wb_turn);

	if (unlikely(!turn)) {
		int next = atomic_inc_return(&sbi->s_wb_turn);

		/* of two that come at once the second keeps the turn of the first */
		turn = atomic_cmpxchg(&fg->wb_turn, 0, next) ?: next;
	}
	return turn - 1;
}

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
	struct ext4_sb_info *sbi = EXT4_SB(inode->i_sb);
	ext4_group_t group = ext4_flex_group(sbi, EXT4_I(inode)->i_block_group);

	/* nothing is kept where each group is one, nor early in a mount */
	if (!rcu_access_pointer(sbi->s_flex_groups))
		return group % nr_wb_ctx;

	return ext4_wb_turn(sbi, group) % nr_wb_ctx;
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
