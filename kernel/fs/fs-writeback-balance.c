// SPDX-License-Identifier: GPL-2.0
/*
 * An inode with much to write goes to a context that has nothing to do, and one
 * that needs blocks to where the filesystem wants it, before its own flusher
 * begins with it.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/fs.h>
#include "fs-writeback.h"

/**
 * inode_hand_over - give an inode to another flusher, unwritten
 * @inode: inode with I_SYNC and its i_lock held, next in turn
 * @wb: writeback whose flusher calls
 *
 * Return: %true if another flusher has it now; then i_lock and I_SYNC are
 * dropped, and @inode may be gone. Otherwise both are kept.
 */
bool inode_hand_over(struct inode *inode, struct bdi_writeback *wb)
{
	struct bdi_writeback *old, *new;
	struct bdi_writeback_ctx *ctx;

	if (!sb_has_parallel_writeback(inode->i_sb))
		return false;

	/* at worst it is handed over a chunk later */
	if (!data_race(wb_has_backlog(wb)) && !wb_affinity_is_misplaced(inode, wb))
		return false;

	spin_unlock(&inode->i_lock);
	old = inode_to_wb_and_lock_list(inode);
	ctx = wb_affinity_handover_ctx(inode, old);
	new = ctx ? inode_move_to_wb_ctx(inode, old, ctx) : old;
	spin_lock(&inode->i_lock);
	if (new == old) {
		spin_unlock(&old->list_lock);
		return false;
	}
	/* whoever frees the inode has found it on no list */
	if (!(inode_state_read(inode) & I_FREEING))
		inode_io_list_move_locked(inode, new, &new->b_more_io);
	wb_wakeup(new);
	inode_sync_complete(inode);
	spin_unlock(&inode->i_lock);
	spin_unlock(&new->list_lock);
	return true;
}
