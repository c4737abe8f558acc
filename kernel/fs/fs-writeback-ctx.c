// SPDX-License-Identifier: GPL-2.0
/*
 * Writeback contexts as seen by their flushers: inodes that change their
 * context.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/fs.h>
#include <linux/rwsem.h>
#include <linux/writeback.h>
#include "fs-writeback.h"

/*
 * Take an inode off the list of @old, which is locked, and attach it to @new.
 * Its pages and its reference are counted at the throttle, which is the same
 * for both.
 */
static bool inode_leave_wb(struct inode *inode, struct bdi_writeback *old,
			   struct bdi_writeback *new)
{
	bool leave;

	spin_lock(&inode->i_lock);
	leave = !(inode_state_read(inode) &
		  (I_FREEING | I_WILL_FREE | I_WB_SWITCH));
	if (leave) {
		list_del_init(&inode->i_io_list);
		wb_io_lists_depopulated(old);
		WRITE_ONCE(inode->i_wb, new);
	}
	spin_unlock(&inode->i_lock);

	return leave;
}

/*
 * Put an inode that is on no list on one of its writeback. Between the locks of
 * the two lists it may have been switched to another cgroup, so that it need
 * not be in the writeback that inode_leave_wb() has attached it to.
 *
 * Returns the writeback, with its list_lock held.
 */
static struct bdi_writeback *inode_join_wb(struct inode *inode)
	__acquires(&wb->list_lock)
{
	struct bdi_writeback *wb = inode_to_wb_and_lock_list(inode);
	struct inode *youngest;

	spin_lock(&inode->i_lock);
	/* b_dirty is sorted by age, and the inode goes to its youngest end */
	youngest = list_first_entry_or_null(&wb->b_dirty, struct inode,
					    i_io_list);
	if (youngest && time_before(inode->dirtied_when, youngest->dirtied_when))
		inode->dirtied_when = jiffies;
	/* whoever frees the inode has found it on no list */
	if (!(inode_state_read(inode) & I_FREEING) &&
	    inode_io_list_move_locked(inode, wb, &wb->b_dirty))
		wb_wakeup_delayed(wb);
	spin_unlock(&inode->i_lock);

	return wb;
}

/**
 * inode_move_to_wb_ctx - move an inode to its cgroup's writeback of a context
 * @inode: inode with I_SYNC, so that no other flusher writes it meanwhile
 * @old: its writeback, with list_lock held
 * @ctx: context to move to
 *
 * It does not move while its BDI is being synced: a dirty inode between two
 * contexts would be missed.
 *
 * Return: the writeback that @inode is in, with its list_lock held.
 */
struct bdi_writeback *inode_move_to_wb_ctx(struct inode *inode,
					   struct bdi_writeback *old,
					   struct bdi_writeback_ctx *ctx)
	__releases(&old->list_lock)
	__acquires(&wb->list_lock)
{
	struct rw_semaphore *switch_rwsem = &old->bdi->wb_switch_rwsem;
	struct bdi_writeback *new = wb_in_ctx(old, ctx);

	if (!new || new == old || !down_read_trylock(switch_rwsem))
		return old;

	if (inode_leave_wb(inode, old, new)) {
		spin_unlock(&old->list_lock);
		new = inode_join_wb(inode);
	} else {
		new = old;
	}
	up_read(switch_rwsem);
	return new;
}

/**
 * inode_follow_wb_ctx - lock an inode's writeback, after moving it if need be
 * @inode: inode with I_SYNC, which its flusher has just written a part of
 *
 * When the number of contexts has changed, an inode moves to its new one here.
 *
 * Return: the writeback, with its list_lock held; the caller requeues @inode.
 */
struct bdi_writeback *inode_follow_wb_ctx(struct inode *inode)
	__acquires(&wb->list_lock)
{
	struct bdi_writeback *old = inode_to_wb_and_lock_list(inode);
	struct bdi_writeback_ctx *ctx = inode_next_wb_ctx(inode, old);

	return unlikely(ctx) ? inode_move_to_wb_ctx(inode, old, ctx) : old;
}
