// SPDX-License-Identifier: GPL-2.0
/*
 * AG-aware writeback: how a pass is written.
 *
 * A pass is written by calling ->writepages() for the range of each of its
 * runs, which does not hand over again. It has no reference on its inode:
 * eviction waits for the round, as it waits for I_SYNC.
 */
#include "xfs_platform.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_inode.h"
#include "xfs_agwb_priv.h"
#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/writeback.h>

/*
 * What a pass is written by. ->writepages() knows it by handed_over, which is
 * set from the start for no other: a flusher clears the flag before each inode,
 * and writes nothing once it has set it.
 */
struct xfs_agwb_wbc {
	struct writeback_control wbc;
	pgoff_t reached;		/* end of the last folio */
};

/**
 * xfs_agwb_reached - a folio of a pass is written
 * @wbc: of the pass
 * @folio: locked folio
 */
void xfs_agwb_reached(struct writeback_control *wbc, struct folio *folio)
{
	container_of(wbc, struct xfs_agwb_wbc, wbc)->reached =
		folio_next_index(folio);
}

/**
 * xfs_agwb_pages_on_disk - pages up to the size that a file has on disk
 * @ip: its inode; no lock is needed, for it may change at any time
 *
 * Return: their number.
 */
pgoff_t xfs_agwb_pages_on_disk(struct xfs_inode *ip)
{
	return DIV_ROUND_UP_ULL(READ_ONCE(ip->i_disk_size), PAGE_SIZE);
}

static void xfs_agwb_write_runs(struct xfs_agwb_pass *pass,
				struct writeback_control *wbc)
{
	struct xfs_agwb_round	*round = pass->round;
	struct address_space	*mapping = VFS_I(round->ip)->i_mapping;
	struct blk_plug		plug;
	pgoff_t			first = round->start;
	pgoff_t			last;

	blk_start_plug(&plug);
	while (wbc->nr_to_write > 0) {
		if (!xfs_agwb_next_run(&pass->share,
				       xfs_agwb_pages_on_disk(round->ip),
				       &mapping->i_pages, &first, &last))
			break;
		wbc->range_start = (loff_t)first << PAGE_SHIFT;
		wbc->range_end = last == ULONG_MAX ? LLONG_MAX :
				 ((loff_t)(last + 1) << PAGE_SHIFT) - 1;
		pass->failed = mapping->a_ops->writepages(mapping, wbc);
		if (pass->failed || last == ULONG_MAX)
			break;
		first = last + 1;
	}
	blk_finish_plug(&plug);
}

/**
 * xfs_agwb_write_pass - write the share of a pass
 * @pass: that its worker has come to
 *
 * Leaves in it how far it has come.
 */
void xfs_agwb_write_pass(struct xfs_agwb_pass *pass)
{
	struct xfs_agwb_round	*round = pass->round;
	struct inode		*inode = VFS_I(round->ip);
	struct bdi_writeback	*wb;
	struct xfs_agwb_wbc	ctl = {
		.wbc = {
			.sync_mode	= WB_SYNC_NONE,
			.nr_to_write	= pass->share.budget,
			.for_kupdate	= round->kupdate,
			.for_background	= !round->kupdate,
			.handed_over	= 1,
		},
		.reached = round->start,
	};

	wbc_attach_fdatawrite_inode(&ctl.wbc, inode);
	wb = xfs_agwb_wb(inode, &ctl.wbc);
	/* of another cgroup or context by now: not in this queue */
	if (wb == round->wb) {
		xfs_agwb_write_runs(pass, &ctl.wbc);
		pass->written = pass->share.budget - ctl.wbc.nr_to_write;
		pass->stop = ctl.wbc.nr_to_write > 0 ? ULONG_MAX : ctl.reached;
		wb_add_flushed(wb, pass->written);
		atomic64_add(pass->written, &pass->worker->submitted);
	}
	wbc_detach_inode(&ctl.wbc);
	atomic64_inc(&pass->worker->nr_passes);
}
