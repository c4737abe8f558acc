// SPDX-License-Identifier: GPL-2.0
/*
 * Affinity: which writeback context an inode belongs to.
 *
 * An inode gets a context when it is first dirtied, by the policy of its BDI,
 * and keeps it: a choice that holds needs no lock and no memory but ->i_wb.
 * It moves when its context is no longer in use, or, while the device is under
 * pressure, from a context with work queued to one that has none: by whatever
 * rule inodes are dealt out, one flusher must not do the work of all.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/string.h>
#include <linux/sysfs.h>

static const char * const wb_affinity_names[] = {
	[WB_AFFINITY_FS]		= "fs",
	[WB_AFFINITY_INO]		= "ino",
};

/* By the filesystem's own judgement where it has one. */
static unsigned int wb_affinity_fs_index(struct inode *inode, int nr_wb_ctx)
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

/* Context of an inode that has none, or none that is in use. */
static unsigned int wb_affinity_new_index(struct inode *inode, int nr_wb_ctx,
					  enum wb_affinity affinity)
{
	if (affinity == WB_AFFINITY_INO)
		return wb_ctx_index(inode->i_ino, nr_wb_ctx);

	return wb_affinity_fs_index(inode, nr_wb_ctx);
}

/* How many contexts the inodes of a filesystem may be spread over. */
static int sb_nr_wb_ctx(struct super_block *sb, enum wb_affinity affinity)
{
	int nr_wb_ctx = READ_ONCE(sb->s_bdi->nr_wb_ctx);

	if (affinity != WB_AFFINITY_FS || !sb->s_op->get_max_wb_ctx)
		return nr_wb_ctx;

	return clamp(sb->s_op->get_max_wb_ctx(sb), 1, nr_wb_ctx);
}

/**
 * wb_affinity_index - index of the context that an inode belongs to
 * @inode: inode of a filesystem that spreads its inodes over contexts
 *
 * Where it is, as long as that context is in use, but for the policy "ino",
 * which always goes by the number. Called with spinlocks held and interrupts
 * off.
 *
 * Return: an index below the number of contexts of the BDI.
 */
unsigned int wb_affinity_index(struct inode *inode)
{
	enum wb_affinity affinity = READ_ONCE(inode_to_bdi(inode)->wb_affinity);
	int nr_wb_ctx;

	/* common, and asked of every inode that is dirtied or was written */
	if (!sb_has_parallel_writeback(inode->i_sb))
		return 0;

	nr_wb_ctx = sb_nr_wb_ctx(inode->i_sb, affinity);
	if (affinity != WB_AFFINITY_INO && READ_ONCE(inode->i_wb)) {
		unsigned int index = inode_wb_ctx(inode)->index;

		if (index < nr_wb_ctx)
			return index;
	}
	return wb_affinity_new_index(inode, nr_wb_ctx, affinity);
}

static bool wb_ctx_is_idle(struct bdi_writeback *throttle, unsigned int index)
{
	struct bdi_writeback_ctx *ctx = bdi_wb_ctx(throttle->bdi, index);
	struct bdi_writeback *wb = ctx ? throttle_wb(throttle, ctx) : NULL;

	return !wb || !wb_has_dirty_io(wb);
}

/* First context without dirty inodes of a throttle from @home on, or NULL. */
static struct bdi_writeback_ctx *wb_next_idle_ctx(struct bdi_writeback *throttle,
						  unsigned int home,
						  unsigned int nr_wb_ctx)
{
	struct bdi_writeback_ctx *ctx = NULL;

	for (unsigned int i = 0; i < nr_wb_ctx && !ctx; i++)
		if (wb_ctx_is_idle(throttle, (home + i) % nr_wb_ctx))
			ctx = bdi_fetch_wb_ctx(throttle->bdi,
					       (home + i) % nr_wb_ctx);
	/* without memory for it that is context 0, which may have work */
	return ctx && wb_ctx_is_idle(throttle, ctx->index) ? ctx : NULL;
}

/*
 * Two flushers that allocate side by side mix up the blocks of their files; an
 * inode that has none yet stays where the filesystem has put it for that.
 */
static bool inode_is_placed_by_fs(struct inode *inode, enum wb_affinity affinity)
{
	const struct super_operations *op = inode->i_sb->s_op;

	return affinity == WB_AFFINITY_FS && op->inode_has_delalloc &&
	       op->inode_has_delalloc(inode);
}

/* Index of the context that the filesystem wants an inode in. */
static unsigned int wb_affinity_home(struct inode *inode)
{
	return wb_affinity_fs_index(inode, sb_nr_wb_ctx(inode->i_sb,
							WB_AFFINITY_FS));
}

/**
 * wb_affinity_is_misplaced - does an inode need blocks in another context?
 * @inode: inode that its flusher writes next
 * @wb: its writeback
 *
 * Two flushers would allocate side by side, see inode_is_placed_by_fs(). So it
 * is with an inode that was moved while it had all of its blocks, and with one
 * that got its context by another policy.
 *
 * Return: %true if it is not where the filesystem wants it for its new blocks.
 */
bool wb_affinity_is_misplaced(struct inode *inode, struct bdi_writeback *wb)
{
	return sb_has_parallel_writeback(inode->i_sb) &&
	       inode_is_placed_by_fs(inode, READ_ONCE(wb->bdi->wb_affinity)) &&
	       wb_affinity_home(inode) != wb->ctx->index;
}

/**
 * wb_affinity_next_ctx - context that an inode moves to
 * @inode: inode that its flusher has just written a part of
 * @wb: its writeback, list_lock is held
 * @pressure: the device is over its background threshold
 *
 * Where contexts with work wait for their flushers while others have none, an
 * inode moves to one of these. Where all have work, one that such a move has
 * misplaced goes back to where the filesystem wants it; where blocks of the
 * inode are yet to be allocated, wb_affinity_handover_ctx() sees to that.
 *
 * Return: the context, %NULL if the inode stays where it is.
 */
struct bdi_writeback_ctx *wb_affinity_next_ctx(struct inode *inode,
					       struct bdi_writeback *wb,
					       bool pressure)
{
	enum wb_affinity affinity = READ_ONCE(wb->bdi->wb_affinity);
	struct bdi_writeback_ctx *ctx = inode_next_wb_ctx(inode, wb);
	unsigned int home = wb->ctx->index;
	int nr_wb_ctx;

	if (ctx || !pressure || affinity == WB_AFFINITY_INO ||
	    !sb_has_parallel_writeback(inode->i_sb) || !wb_has_backlog(wb) ||
	    inode_is_placed_by_fs(inode, affinity))
		return ctx;

	nr_wb_ctx = sb_nr_wb_ctx(inode->i_sb, affinity);
	if (affinity == WB_AFFINITY_FS)
		home = wb_affinity_fs_index(inode, nr_wb_ctx);
	ctx = wb_next_idle_ctx(wb->throttle, home, nr_wb_ctx);
	if (!ctx && home != wb->ctx->index)
		ctx = bdi_fetch_wb_ctx(wb->bdi, home);

	return ctx == wb->ctx ? NULL : ctx;
}

/**
 * wb_affinity_handover_ctx - context that an inode is handed over to, unwritten
 * @inode: inode that its flusher would write next, with pressure on the device
 * @wb: its writeback, list_lock is held
 *
 * An inode whose blocks are yet to be allocated goes to where the filesystem
 * wants it.
 *
 * Any other goes to a context without work. It has to be in the context that
 * the filesystem wants, or it could be handed on for ever, and to have as many
 * pages as a flusher writes of one inode at least: less is soon written.
 *
 * The other policies have no context that an inode belongs to.
 *
 * Return: the context, %NULL if the inode stays where it is.
 */
struct bdi_writeback_ctx *wb_affinity_handover_ctx(struct inode *inode,
						   struct bdi_writeback *wb)
{
	enum wb_affinity affinity = READ_ONCE(wb->bdi->wb_affinity);
	struct super_block *sb = inode->i_sb;
	unsigned int home;

	if (affinity != WB_AFFINITY_FS || !(sb->s_iflags & SB_I_WB_CTX))
		return NULL;

	home = wb_affinity_home(inode);
	if (inode_is_placed_by_fs(inode, affinity))
		return home == wb->ctx->index ? NULL :
						bdi_fetch_wb_ctx(wb->bdi, home);
	if (home != wb->ctx->index || !wb_has_backlog(wb) ||
	    /* about as many: writers change it */
	    data_race(inode->i_mapping->nrpages) < sb->s_min_writeback_pages)
		return NULL;

	return wb_next_idle_ctx(wb->throttle, home, sb_nr_wb_ctx(sb, affinity));
}

static ssize_t wb_affinity_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	struct backing_dev_info *bdi = dev_get_drvdata(dev);
	enum wb_affinity active = READ_ONCE(bdi->wb_affinity);
	int len = 0;

	for (int i = 0; i < ARRAY_SIZE(wb_affinity_names); i++)
		len += sysfs_emit_at(buf, len, i == active ? "%s[%s]" : "%s%s",
				     i ? " " : "", wb_affinity_names[i]);

	return len + sysfs_emit_at(buf, len, "\n");
}

static ssize_t wb_affinity_store(struct device *dev,
				 struct device_attribute *attr,
				 const char *buf, size_t count)
{
	struct backing_dev_info *bdi = dev_get_drvdata(dev);
	int affinity = sysfs_match_string(wb_affinity_names, buf);

	if (affinity < 0)
		return affinity;

	WRITE_ONCE(bdi->wb_affinity, affinity);
	return count;
}
DEVICE_ATTR_RW(wb_affinity);
