/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writeback contexts as seen by their flushers: work items for all contexts of
 * one throttle, and inodes that follow a change of the number of contexts.
 * Included by fs/fs-writeback.c only, for it uses what is private there.
 */
#ifndef _FS_FS_WRITEBACK_CTX_H
#define _FS_FS_WRITEBACK_CTX_H

/* fs/fs-writeback.c creates the events of writeback.h, not these */
#undef CREATE_TRACE_POINTS
#include <trace/events/writeback_ctx.h>

static struct bdi_writeback *inode_to_wb_and_lock_list(struct inode *inode)
	__acquires(&wb->list_lock);

/*
 * Take an inode off the list of @old, which is locked, and attach it to @new.
 * Its pages are counted at the throttle, which is the same for both.
 */
static bool inode_leave_wb(struct inode *inode, struct bdi_writeback *old,
			   struct bdi_writeback *new)
{
	bool leave;

	spin_lock(&inode->i_lock);
	leave = !(inode_state_read(inode) &
		  (I_FREEING | I_WILL_FREE | I_WB_SWITCH));
	if (leave) {
		trace_wb_ctx_switch(inode, old, new);
		list_del_init(&inode->i_io_list);
		wb_io_lists_depopulated(old);
		WRITE_ONCE(inode->i_wb, new);
	}
	spin_unlock(&inode->i_lock);

	return leave;
}

/* Put an inode that came to @new, which is locked, on a list of it. */
static void inode_join_wb(struct inode *inode, struct bdi_writeback *new)
{
	spin_lock(&inode->i_lock);
	/* whoever frees the inode has found it on no list */
	if (!(inode_state_read(inode) & I_FREEING) &&
	    inode_io_list_move_locked(inode, new, &new->b_dirty))
		wb_wakeup_delayed(new);
	spin_unlock(&inode->i_lock);
}

/*
 * Move an inode with I_SYNC from @old, which is locked, to the same cgroup's
 * writeback of @ctx: nobody else writes the inode meanwhile or changes its
 * place in the lists. It does not move while its BDI is being synced: a dirty
 * inode between two contexts would be missed.
 *
 * Returns the writeback that the inode is in, with its list_lock held.
 */
static struct bdi_writeback *inode_move_to_wb_ctx(struct inode *inode,
						  struct bdi_writeback *old,
						  struct bdi_writeback_ctx *ctx)
	__releases(&old->list_lock)
	__acquires(&wb->list_lock)
{
	struct bdi_writeback *new = wb_get_sibling(old, ctx);

	if (!new)
		return old;

	if (new == old || !down_read_trylock(&old->ctx->wb_switch_rwsem))
		goto put_new;

	if (!inode_leave_wb(inode, old, new)) {
		up_read(&old->ctx->wb_switch_rwsem);
		goto put_new;
	}

	spin_unlock(&old->list_lock);
	spin_lock(&new->list_lock);
	inode_join_wb(inode, new);
	up_read(&old->ctx->wb_switch_rwsem);
	wb_put(old);
	return new;

put_new:
	wb_put(new);
	return old;
}

/**
 * inode_follow_wb_ctx - lock an inode's writeback, after moving it if need be
 * @inode: inode with I_SYNC, which its flusher has just written a part of
 *
 * When the number of contexts has changed, an inode moves to its new one here.
 *
 * Return: the writeback, with its list_lock held; the caller requeues @inode.
 */
static struct bdi_writeback *inode_follow_wb_ctx(struct inode *inode)
	__acquires(&wb->list_lock)
{
	struct bdi_writeback *old = inode_to_wb_and_lock_list(inode);
	struct bdi_writeback_ctx *ctx = inode_next_wb_ctx(inode, old);

	return unlikely(ctx) ? inode_move_to_wb_ctx(inode, old, ctx) : old;
}

#ifdef CONFIG_CGROUP_WRITEBACK

/**
 * throttle_queue_work - queue a work item for every context of a throttle
 * @throttle: writeback that throttles
 * @work: item to be freed on completion, its ->done is shared by the copies
 *
 * A context for which there is no memory for a copy is left to its own
 * background writeback: the caller asked for a best effort.
 */
static void throttle_queue_work(struct bdi_writeback *throttle,
				struct wb_writeback_work *work)
{
	struct bdi_writeback_ctx *ctx;

	rcu_read_lock();
	for (ctx = bdi_next_wb_ctx(throttle->bdi, NULL); ctx;
	     ctx = bdi_next_wb_ctx(throttle->bdi, ctx)) {
		struct bdi_writeback *wb = throttled_wb_rcu(throttle, ctx);
		struct wb_writeback_work *copy;

		if (!wb || wb == throttle || !wb_has_dirty_io(wb))
			continue;

		copy = kmemdup(work, sizeof(*work), GFP_NOWAIT);
		if (copy)
			wb_queue_work(wb, copy);
	}
	rcu_read_unlock();

	wb_queue_work(throttle, work);
}

#endif	/* CONFIG_CGROUP_WRITEBACK */

#endif	/* _FS_FS_WRITEBACK_CTX_H */
