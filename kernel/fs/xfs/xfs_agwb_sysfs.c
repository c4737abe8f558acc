// SPDX-License-Identifier: GPL-2.0
/*
 * AG-aware writeback: modes in sysfs, counters in debugfs, one set per mount.
 */
#include "xfs_platform.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_mount.h"
#include "xfs_sysfs.h"
#include "xfs_agwb_priv.h"

DEFINE_STATIC_KEY_FALSE(xfs_agwb_used);

static const char * const xfs_agwb_modes[] = {
	[XFS_AGWB_OFF]		= "off",
	[XFS_AGWB_AG_HINT]	= "ag-hint",
	[XFS_AGWB_ROTOR]	= "rotor",
	[XFS_AGWB_GENERIC]	= "generic",
};

static const char * const xfs_agwb_classes[] = {
	[XFS_AGWB_OVERWRITE]	= "overwrite",
	[XFS_AGWB_DELALLOC]	= "delalloc",
};

static struct xfs_agwb *xfs_agwb_of(struct kobject *kobject)
{
	return container_of(to_kobj(kobject), struct xfs_agwb, kobj);
}

static void xfs_agwb_stop(struct xfs_agwb *agwb)
{
	shrinker_free(agwb->shrinker);
	xfs_agwb_stop_workers(agwb);
	free_percpu(agwb->counts);
}

/* What a mode needs is made when the first one is switched on, and stays. */
static int xfs_agwb_start(struct xfs_agwb *agwb)
{
	lockdep_assert_held(&agwb->mode_lock);
	if (agwb->workers)
		return 0;

	agwb->counts = alloc_percpu(struct xfs_agwb_counts);
	if (!agwb->counts)
		return -ENOMEM;
	agwb->shrinker = shrinker_alloc(0, "xfs-agwb:%s",
					agwb->mp->m_super->s_id);
	if (!agwb->shrinker)
		goto out_free_counts;
	if (xfs_agwb_start_workers(agwb))
		goto out_free_shrinker;

	/* hints cost nothing to make again, so they go first */
	agwb->shrinker->seeks = 0;
	agwb->shrinker->count_objects = xfs_agwb_shrink_count;
	agwb->shrinker->scan_objects = xfs_agwb_shrink_scan;
	agwb->shrinker->private_data = agwb;
	shrinker_register(agwb->shrinker);
	return 0;

out_free_shrinker:
	shrinker_free(agwb->shrinker);
	agwb->shrinker = NULL;
out_free_counts:
	free_percpu(agwb->counts);
	agwb->counts = NULL;
	return -ENOMEM;
}

static int xfs_agwb_set_mode(struct xfs_agwb *agwb, enum xfs_agwb_class class,
			     enum xfs_agwb_mode mode)
{
	int error;

	lockdep_assert_held(&agwb->mode_lock);
	if (mode != XFS_AGWB_OFF) {
		error = xfs_agwb_start(agwb);
		if (error)
			return error;
		static_branch_enable(&xfs_agwb_used);
	}

	/* pairs with the acquire in xfs_agwb_mode() */
	smp_store_release(&agwb->mode[class], mode);
	if (agwb->mode[XFS_AGWB_OVERWRITE] != XFS_AGWB_AG_HINT &&
	    agwb->mode[XFS_AGWB_DELALLOC] != XFS_AGWB_AG_HINT) {
		mutex_lock(&agwb->lock);
		xfs_agwb_drop_all(agwb);
		mutex_unlock(&agwb->lock);
	}
	return 0;
}

static ssize_t xfs_agwb_show_mode(struct kobject *kobject,
				  enum xfs_agwb_class class, char *buf)
{
	enum xfs_agwb_mode mode = xfs_agwb_mode(xfs_agwb_of(kobject), class);
	int len = 0;

	for (int i = 0; i < ARRAY_SIZE(xfs_agwb_modes); i++)
		len += sysfs_emit_at(buf, len, i == mode ? "%s[%s]" : "%s%s",
				     i ? " " : "", xfs_agwb_modes[i]);
	return len + sysfs_emit_at(buf, len, "\n");
}

static ssize_t xfs_agwb_store_mode(struct kobject *kobject,
				   enum xfs_agwb_class class, const char *buf,
				   size_t count)
{
	struct xfs_agwb *agwb = xfs_agwb_of(kobject);
	int mode = sysfs_match_string(xfs_agwb_modes, buf);
	int error;

	if (mode < 0)
		return mode;

	mutex_lock(&agwb->mode_lock);
	error = xfs_agwb_set_mode(agwb, class, mode);
	mutex_unlock(&agwb->mode_lock);
	return error ?: count;
}

static ssize_t overwrite_show(struct kobject *kobject,
			      struct kobj_attribute *attr, char *buf)
{
	return xfs_agwb_show_mode(kobject, XFS_AGWB_OVERWRITE, buf);
}

static ssize_t overwrite_store(struct kobject *kobject,
			       struct kobj_attribute *attr, const char *buf,
			       size_t count)
{
	return xfs_agwb_store_mode(kobject, XFS_AGWB_OVERWRITE, buf, count);
}

static ssize_t delalloc_show(struct kobject *kobject,
			     struct kobj_attribute *attr, char *buf)
{
	return xfs_agwb_show_mode(kobject, XFS_AGWB_DELALLOC, buf);
}

static ssize_t delalloc_store(struct kobject *kobject,
			      struct kobj_attribute *attr, const char *buf,
			      size_t count)
{
	return xfs_agwb_store_mode(kobject, XFS_AGWB_DELALLOC, buf, count);
}

static struct kobj_attribute xfs_agwb_attr_overwrite = __ATTR_RW(overwrite);
static struct kobj_attribute xfs_agwb_attr_delalloc = __ATTR_RW(delalloc);

static struct attribute *xfs_agwb_attrs[] = {
	&xfs_agwb_attr_overwrite.attr,
	&xfs_agwb_attr_delalloc.attr,
	NULL,
};
ATTRIBUTE_GROUPS(xfs_agwb);

static const struct kobj_type xfs_agwb_ktype = {
	.release	= xfs_sysfs_release,
	.sysfs_ops	= &kobj_sysfs_ops,
	.default_groups	= xfs_agwb_groups,
};

static void xfs_agwb_show_counts(struct seq_file *m, struct xfs_agwb *agwb,
				 enum xfs_agwb_class class)
{
	u64 predicted = 0, right = 0, wrong = 0, unhinted = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct xfs_agwb_counts *counts = per_cpu_ptr(agwb->counts, cpu);

		predicted += counts->predicted[class];
		right += counts->right[class];
		wrong += counts->wrong[class];
		unhinted += counts->unhinted[class];
	}
	seq_printf(m, "%s: predicted %llu right %llu wrong %llu unhinted %llu\n",
		   xfs_agwb_classes[class], predicted, right, wrong, unhinted);
}

static void xfs_agwb_show_worker(struct seq_file *m, struct xfs_agwb *agwb,
				 unsigned int number)
{
	struct xfs_agwb_worker *worker = &agwb->workers[number];

	seq_printf(m, "worker %u: passes %lld out %u scanned %lld submitted %lld\n",
		   number, atomic64_read(&worker->nr_passes),
		   xfs_agwb_nr_out(agwb, worker),
		   atomic64_read(&worker->scanned),
		   atomic64_read(&worker->submitted));
}

static int xfs_agwb_counters_show(struct seq_file *m, void *unused)
{
	struct xfs_agwb *agwb = m->private;

	mutex_lock(&agwb->mode_lock);
	if (agwb->workers) {
		for (int class = 0; class < XFS_AGWB_NR_CLASSES; class++)
			xfs_agwb_show_counts(m, agwb, class);
		seq_printf(m, "hints: entries %ld\n",
			   atomic_long_read(&agwb->nr_entries));
		for (unsigned int i = 0; i < xfs_agwb_nr_workers(agwb); i++)
			xfs_agwb_show_worker(m, agwb, i);
	}
	mutex_unlock(&agwb->mode_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(xfs_agwb_counters);

/**
 * xfs_agwb_mount - give a mount its AG-aware writeback, switched off
 * @mp: mount whose directory in sysfs exists
 *
 * Return: 0 or a negative error.
 */
int xfs_agwb_mount(struct xfs_mount *mp)
{
	struct xfs_agwb	*agwb;
	int		error;

	agwb = kzalloc_obj(*agwb);
	if (!agwb)
		return -ENOMEM;

	agwb->mp = mp;
	mutex_init(&agwb->mode_lock);
	mutex_init(&agwb->lock);
	spin_lock_init(&agwb->pass_lock);
	xa_init(&agwb->running);
	init_waitqueue_head(&agwb->waitq);
	INIT_LIST_HEAD(&agwb->inodes);
	error = xfs_sysfs_init(&agwb->kobj, &xfs_agwb_ktype, &mp->m_kobj,
			       "writeback");
	if (error) {
		kfree(agwb);
		return error;
	}
	if (mp->m_debugfs)
		agwb->dentry = debugfs_create_file("writeback", 0444,
						   mp->m_debugfs, agwb,
						   &xfs_agwb_counters_fops);
	mp->m_agwb = agwb;
	return 0;
}

/**
 * xfs_agwb_unmount - the end of a mount's AG-aware writeback
 * @mp: mount whose inodes are all evicted, or that failed
 */
void xfs_agwb_unmount(struct xfs_mount *mp)
{
	struct xfs_agwb *agwb = mp->m_agwb;

	if (!agwb)
		return;

	debugfs_remove(agwb->dentry);
	xfs_sysfs_del(&agwb->kobj);
	if (agwb->workers)
		xfs_agwb_stop(agwb);
	mp->m_agwb = NULL;
	kfree(agwb);
}
