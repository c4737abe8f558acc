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

static const char * const xfs_agwb_modes[] = {
	[XFS_AGWB_OFF]		= "off",
	[XFS_AGWB_ROTOR]	= "rotor",
	[XFS_AGWB_GENERIC]	= "generic",
};

static struct xfs_agwb *xfs_agwb_of(struct kobject *kobject)
{
	return container_of(to_kobj(kobject), struct xfs_agwb, kobj);
}

static int xfs_agwb_set_mode(struct xfs_agwb *agwb, enum xfs_agwb_class class,
			     enum xfs_agwb_mode mode)
{
	int error;

	lockdep_assert_held(&agwb->mode_lock);
	/* made when the first mode is switched on, and kept */
	if (mode != XFS_AGWB_OFF && !agwb->workers) {
		error = xfs_agwb_start_workers(agwb);
		if (error)
			return error;
	}

	/* pairs with the acquire in xfs_agwb_mode() */
	smp_store_release(&agwb->mode[class], mode);
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

static int xfs_agwb_counters_show(struct seq_file *m, void *unused)
{
	struct xfs_agwb *agwb = m->private;

	mutex_lock(&agwb->mode_lock);
	for (unsigned int i = 0;
	     agwb->workers && i < xfs_agwb_nr_workers(agwb); i++) {
		struct xfs_agwb_worker *worker = &agwb->workers[i];

		seq_printf(m, "worker %u: passes %lld out %u submitted %lld\n",
			   i, atomic64_read(&worker->nr_passes),
			   xfs_agwb_nr_out(agwb, worker),
			   atomic64_read(&worker->submitted));
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
	spin_lock_init(&agwb->pass_lock);
	init_waitqueue_head(&agwb->waitq);
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
	xfs_agwb_stop_workers(agwb);
	mp->m_agwb = NULL;
	kfree(agwb);
}
