// SPDX-License-Identifier: GPL-2.0
/*
 * The switches of the write streams of a mounted filesystem, in
 * /sys/fs/xfs/DEVICE/write_streams. Each can be changed at any time, and holds
 * for what is allocated and submitted from then on.
 */
#include "xfs_platform.h"
#include "xfs_shared.h"
#include "xfs_format.h"
#include "xfs_log_format.h"
#include "xfs_trans_resv.h"
#include "xfs_sysfs.h"
#include "xfs_mount.h"

/* enough for the writers of one directory to be apart, few enough to be near */
#define XFS_MAX_GENERIC_AGS	64
#define XFS_SOFTWARE_STREAMS	16

struct xfs_streams_attr {
	struct kobj_attribute	attr;
	size_t			offset;
	unsigned int		min;
	unsigned int		max;
};

static unsigned int *xfs_streams_value(struct kobject *kobject,
				       const struct xfs_streams_attr *attr)
{
	struct xfs_write_streams	*streams =
		container_of(to_kobj(kobject), struct xfs_write_streams, kobj);

	return (void *)streams + attr->offset;
}

static ssize_t xfs_streams_show(struct kobject *kobject,
				struct kobj_attribute *kattr, char *buf)
{
	struct xfs_streams_attr		*attr =
		container_of(kattr, struct xfs_streams_attr, attr);

	return sysfs_emit(buf, "%u\n",
			  READ_ONCE(*xfs_streams_value(kobject, attr)));
}

static ssize_t xfs_streams_store(struct kobject *kobject,
				 struct kobj_attribute *kattr, const char *buf,
				 size_t count)
{
	struct xfs_streams_attr		*attr =
		container_of(kattr, struct xfs_streams_attr, attr);
	unsigned int			value;

	if (kstrtouint(buf, 0, &value) || value < attr->min ||
	    value > attr->max)
		return -EINVAL;

	WRITE_ONCE(*xfs_streams_value(kobject, attr), value);
	return count;
}

#define XFS_STREAMS_ATTR(_name, _min, _max)				\
static struct xfs_streams_attr xfs_streams_##_name = {			\
	.attr	= {							\
		.attr	= { .name = #_name, .mode = 0644 },		\
		.show	= xfs_streams_show,				\
		.store	= xfs_streams_store,				\
	},								\
	.offset	= offsetof(struct xfs_write_streams, _name),		\
	.min	= _min,							\
	.max	= _max,							\
}

XFS_STREAMS_ATTR(hardware, 0, 1);
XFS_STREAMS_ATTR(software, 0, U8_MAX);
XFS_STREAMS_ATTR(stream_ags, 0, 1);
XFS_STREAMS_ATTR(generic_ags, 1, XFS_MAX_GENERIC_AGS);

static struct attribute *xfs_write_streams_attrs[] = {
	&xfs_streams_hardware.attr.attr,
	&xfs_streams_software.attr.attr,
	&xfs_streams_stream_ags.attr.attr,
	&xfs_streams_generic_ags.attr.attr,
	NULL,
};
ATTRIBUTE_GROUPS(xfs_write_streams);

static const struct kobj_type xfs_write_streams_ktype = {
	.release	= xfs_sysfs_release,
	.sysfs_ops	= &kobj_sysfs_ops,
	.default_groups	= xfs_write_streams_groups,
};

/**
 * xfs_write_streams_sysfs_init - set the defaults, and show them in sysfs
 * @mp: filesystem that is being mounted
 *
 * No file goes elsewhere than before unless it is given a stream.
 *
 * Return: 0 or a negative error.
 */
int xfs_write_streams_sysfs_init(struct xfs_mount *mp)
{
	struct xfs_write_streams	*streams = &mp->m_write_streams;

	streams->agcount = mp->m_sb.sb_agcount;
	streams->hardware = 1;
	streams->software = XFS_SOFTWARE_STREAMS;
	streams->stream_ags = 1;
	streams->generic_ags = 1;
	return xfs_sysfs_init(&streams->kobj, &xfs_write_streams_ktype,
			      &mp->m_kobj, "write_streams");
}

/**
 * xfs_write_streams_sysfs_del - undo xfs_write_streams_sysfs_init()
 * @mp: filesystem that is being unmounted
 */
void xfs_write_streams_sysfs_del(struct xfs_mount *mp)
{
	xfs_sysfs_del(&mp->m_write_streams.kobj);
}
