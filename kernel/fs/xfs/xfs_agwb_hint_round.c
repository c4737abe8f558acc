// SPDX-License-Identifier: GPL-2.0
/*
 * Hints of AG-aware writeback: how a round is shared out by them.
 *
 * A slot with hints has a pass, which writes the folios with a hint of it. The
 * home slot, that of the inode's own AG, always has one, which writes whatever
 * no other pass of the round does. So a folio with a wrong hint, or none, has a
 * writer as any other.
 */
#include "xfs_platform.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_inode.h"
#include "xfs_agwb_hint_priv.h"

/* the number of a slot is that of its worker */
static_assert(XFS_AGWB_SLOTS == XFS_AGWB_MAX_WORKERS);

/**
 * xfs_agwb_hint_plan - share a round out by hints
 * @ip: inode
 * @plan: that has one pass for the worker of the home slot; stays as it is
 *	where there is no memory for hints
 */
void xfs_agwb_hint_plan(struct xfs_inode *ip, struct xfs_agwb_plan *plan)
{
	struct xfs_agwb_hint_inode	*hi = xfs_agwb_hint_inode(ip);

	if (!hi)
		return;

	plan->kind = XFS_AGWB_SHARE_SLOT;
	plan->hints = &hi->hints;
	plan->slots = BIT_ULL(xfs_agwb_slot(plan->worker));
	for (unsigned int slot = 0; slot < XFS_AGWB_SLOTS; slot++) {
		if (test_bit(slot, hi->dirty))
			plan->slots |= BIT_ULL(slot);
	}
	plan->nr_passes = hweight64(plan->slots);
}

/**
 * xfs_agwb_hint_share - the share of one pass
 * @plan: made by xfs_agwb_hint_plan()
 * @i: which pass
 * @share: filled in
 *
 * Return: the number of the worker that gets it, that of the slot.
 */
unsigned int xfs_agwb_hint_share(const struct xfs_agwb_plan *plan,
				 unsigned int i, struct xfs_agwb_share *share)
{
	u64 slots = plan->slots;

	while (i--)
		slots &= slots - 1;
	share->slot = __ffs64(slots);
	share->hints = plan->hints;
	if (share->slot == xfs_agwb_slot(plan->worker)) {
		share->kind = XFS_AGWB_SHARE_REST;
		share->others = plan->slots & ~BIT_ULL(share->slot);
	}
	return share->slot;
}

/**
 * xfs_agwb_hint_queued - a pass is about to be queued
 * @pass: not queued yet
 *
 * It will find all hints of its slot, unless its round does not begin at the
 * start of the file.
 */
void xfs_agwb_hint_queued(struct xfs_agwb_pass *pass)
{
	struct xfs_inode	*ip = pass->round->ip;

	if (pass->share.kind != XFS_AGWB_SHARE_SLOT &&
	    pass->share.kind != XFS_AGWB_SHARE_REST)
		return;
	if (VFS_I(ip)->i_mapping->writeback_index)
		return;

	clear_bit(pass->share.slot, ip->i_agwb_hints->dirty);
	/* hints are looked up after their bit is cleared */
	smp_mb__after_atomic();
}

/*
 * A slot without a hint for its pass may have none at all: let no further round
 * have a pass for it. A hint is stored before its bit is set, so one that comes
 * now is either found here or sets the bit after it is cleared.
 */
static void xfs_agwb_recheck_slot(struct xfs_agwb_hint_inode *hi,
				  unsigned int slot)
{
	pgoff_t index = 0;

	clear_bit(slot, hi->dirty);
	/* pairs with the barrier in xfs_agwb_hint_dirtied() */
	smp_mb__after_atomic();
	if (xfs_agwb_find_hint(&hi->hints, BIT_ULL(slot), &index, ULONG_MAX))
		set_bit(slot, hi->dirty);
}

/**
 * xfs_agwb_hint_collected - a pass has ended, and its round is collected
 * @pass: the pass
 */
void xfs_agwb_hint_collected(struct xfs_agwb_pass *pass)
{
	struct xfs_agwb_hint_inode *hi = pass->round->ip->i_agwb_hints;

	if (pass->share.kind != XFS_AGWB_SHARE_SLOT)
		return;

	if (pass->stop != ULONG_MAX)
		set_bit(pass->share.slot, hi->dirty);
	else if (!pass->written)
		xfs_agwb_recheck_slot(hi, pass->share.slot);
}
