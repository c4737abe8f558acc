// SPDX-License-Identifier: GPL-2.0
/*
 * Hints of AG-aware writeback: those of a mount, its shrinker and counters.
 */
#include "xfs_platform.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_inode.h"
#include "xfs_agwb_hint_priv.h"

static const char * const xfs_agwb_classes[] = {
	[XFS_AGWB_OVERWRITE]	= "overwrite",
	[XFS_AGWB_DELALLOC]	= "delalloc",
};

/* Drops the hints of the inode that got hints first. */
static unsigned long xfs_agwb_drop_oldest(struct xfs_agwb_hint_mount *hm)
{
	struct xfs_agwb_hint_inode *hi;

	lockdep_assert_held(&hm->lock);
	hi = list_first_entry(&hm->inodes, struct xfs_agwb_hint_inode, list);
	list_del_init(&hi->list);
	return xfs_agwb_hint_drop(hm, hi, 0);
}

static unsigned long xfs_agwb_shrink_count(struct shrinker *shrinker,
					   struct shrink_control *sc)
{
	struct xfs_agwb_hint_mount *hm = shrinker->private_data;

	return atomic_long_read(&hm->nr_entries);
}

/* Drops the hints of whole inodes, until they had as many entries as asked. */
static unsigned long xfs_agwb_shrink_scan(struct shrinker *shrinker,
					  struct shrink_control *sc)
{
	struct xfs_agwb_hint_mount *hm = shrinker->private_data;
	unsigned long dropped = 0;

	if (!mutex_trylock(&hm->lock))
		return SHRINK_STOP;
	while (dropped < sc->nr_to_scan && !list_empty(&hm->inodes))
		dropped += xfs_agwb_drop_oldest(hm);
	mutex_unlock(&hm->lock);
	return dropped ?: SHRINK_STOP;
}

/**
 * xfs_agwb_hint_start - get ready for hints
 * @agwb: of the mount; it stays ready
 *
 * Return: 0 or -ENOMEM.
 */
int xfs_agwb_hint_start(struct xfs_agwb *agwb)
{
	struct xfs_agwb_hint_mount *hm;

	lockdep_assert_held(&agwb->mode_lock);
	if (agwb->hints)
		return 0;

	hm = kzalloc_obj(*hm);
	if (!hm)
		return -ENOMEM;
	hm->counts = alloc_percpu(struct xfs_agwb_hint_counts);
	hm->shrinker = shrinker_alloc(0, "xfs-agwb:%s",
				      agwb->mp->m_super->s_id);
	if (!hm->counts || !hm->shrinker) {
		shrinker_free(hm->shrinker);
		free_percpu(hm->counts);
		kfree(hm);
		return -ENOMEM;
	}

	mutex_init(&hm->lock);
	INIT_LIST_HEAD(&hm->inodes);
	/* hints cost nothing to make again, so they go first */
	hm->shrinker->seeks = 0;
	hm->shrinker->count_objects = xfs_agwb_shrink_count;
	hm->shrinker->scan_objects = xfs_agwb_shrink_scan;
	hm->shrinker->private_data = hm;
	shrinker_register(hm->shrinker);
	/* pairs with the acquire in xfs_agwb_hint_placed() */
	smp_store_release(&agwb->hints, hm);
	return 0;
}

/**
 * xfs_agwb_hint_stop - the end of a mount's hints
 * @agwb: of a mount whose inodes are all evicted
 */
void xfs_agwb_hint_stop(struct xfs_agwb *agwb)
{
	if (!agwb->hints)
		return;

	shrinker_free(agwb->hints->shrinker);
	free_percpu(agwb->hints->counts);
	kfree(agwb->hints);
}

/**
 * xfs_agwb_hint_mode_changed - drop all hints if no mode uses them any more
 * @agwb: of the mount
 */
void xfs_agwb_hint_mode_changed(struct xfs_agwb *agwb)
{
	struct xfs_agwb_hint_mount *hm = agwb->hints;

	lockdep_assert_held(&agwb->mode_lock);
	if (!hm || xfs_agwb_hints_wanted(agwb))
		return;

	mutex_lock(&hm->lock);
	while (!list_empty(&hm->inodes))
		xfs_agwb_drop_oldest(hm);
	mutex_unlock(&hm->lock);
}

static void xfs_agwb_show_counts(struct seq_file *m,
				 struct xfs_agwb_hint_mount *hm,
				 enum xfs_agwb_class class)
{
	u64 predicted = 0, right = 0, wrong = 0, unhinted = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct xfs_agwb_hint_counts *counts = per_cpu_ptr(hm->counts,
								  cpu);

		predicted += counts->predicted[class];
		right += counts->right[class];
		wrong += counts->wrong[class];
		unhinted += counts->unhinted[class];
	}
	seq_printf(m, "%s: predicted %llu right %llu wrong %llu unhinted %llu\n",
		   xfs_agwb_classes[class], predicted, right, wrong, unhinted);
}

/**
 * xfs_agwb_hint_show - show what came of a mount's hints
 * @m: file in debugfs
 * @agwb: of the mount
 */
void xfs_agwb_hint_show(struct seq_file *m, struct xfs_agwb *agwb)
{
	struct xfs_agwb_hint_mount *hm = agwb->hints;

	lockdep_assert_held(&agwb->mode_lock);
	if (!hm)
		return;

	for (int class = 0; class < XFS_AGWB_NR_CLASSES; class++)
		xfs_agwb_show_counts(m, hm, class);
	seq_printf(m, "hints: entries %ld\n", atomic_long_read(&hm->nr_entries));
}
