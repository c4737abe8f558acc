// SPDX-License-Identifier: GPL-2.0
/*
 * Devices as directories of /sys/kernel/config/labblk, their attributes as
 * files in these.
 *
 *	mkdir NAME		a device, without a disk yet
 *	echo 1 > NAME/power	its disk, /dev/NAME
 *	echo 0 > NAME/power	a power cut: the disk stays, its commands fail
 *	rmdir NAME		removes the disk, also under load
 */

#include <linux/blkdev.h>
#include <linux/cleanup.h>
#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include "labblk.h"

#define LABBLK_MAX_MIB		(16 * SZ_1M)
#define LABBLK_MAX_QUEUES	1024
#define LABBLK_MAX_CHANNELS	1024
#define LABBLK_MAX_UNIT_KIB	SZ_1M
#define LABBLK_OP_PERCENT	7
#define LABBLK_MAX_RPM		100000

/**
 * struct labblk_field - an attribute that is a number
 * @offset: where in struct labblk_config it is, a u64
 * @min: least value
 * @max: greatest value
 * @step: values are multiples of it
 * @fixed: cannot change once there is a disk
 */
struct labblk_field {
	size_t offset;
	u64 min;
	u64 max;
	u64 step;
	bool fixed;
};

static struct labblk *to_labblk(struct config_item *item)
{
	return container_of(item, struct labblk, item);
}

static ssize_t labblk_field_show(struct config_item *item, char *page,
				 const struct labblk_field *field)
{
	struct labblk *lab = to_labblk(item);
	const u64 *value = (void *)&lab->config + field->offset;

	guard(mutex)(&lab->mutex);
	return sysfs_emit(page, "%llu\n", *value);
}

static ssize_t labblk_field_store(struct config_item *item, const char *page,
				  size_t count,
				  const struct labblk_field *field)
{
	struct labblk *lab = to_labblk(item);
	u64 *value = (void *)&lab->config + field->offset;
	u64 wanted, rest;

	if (kstrtou64(page, 0, &wanted))
		return -EINVAL;
	div64_u64_rem(wanted, field->step, &rest);
	if (wanted < field->min || wanted > field->max || rest)
		return -EINVAL;

	guard(mutex)(&lab->mutex);
	if (field->fixed && lab->disk)
		return -EBUSY;
	WRITE_ONCE(*value, wanted);
	return count;
}

#define LABBLK_FIELD(_name, _min, _max, _step, _fixed)			\
static const struct labblk_field labblk_field_##_name = {		\
	.offset = offsetof(struct labblk_config, _name),		\
	.min = _min,							\
	.max = _max,							\
	.step = _step,							\
	.fixed = _fixed,						\
};									\
									\
static ssize_t labblk_##_name##_show(struct config_item *item,		\
				     char *page)			\
{									\
	return labblk_field_show(item, page, &labblk_field_##_name);	\
}									\
									\
static ssize_t labblk_##_name##_store(struct config_item *item,	\
				      const char *page, size_t count)	\
{									\
	return labblk_field_store(item, page, count,			\
				  &labblk_field_##_name);		\
}

LABBLK_FIELD(size_mib, 1, LABBLK_MAX_MIB, 1, true)
LABBLK_FIELD(queues, 1, LABBLK_MAX_QUEUES, 1, true)
LABBLK_FIELD(queue_depth, 1, BLK_MQ_MAX_DEPTH, 1, true)
LABBLK_FIELD(channels, 1, LABBLK_MAX_CHANNELS, 1, true)
LABBLK_FIELD(stripe_kib, PAGE_SIZE / SZ_1K, SZ_1M, PAGE_SIZE / SZ_1K, true)
LABBLK_FIELD(read_ns, 0, NSEC_PER_SEC, 1, false)
LABBLK_FIELD(write_ns, 0, NSEC_PER_SEC, 1, false)
LABBLK_FIELD(flush_ns, 0, NSEC_PER_SEC, 1, false)
LABBLK_FIELD(submit_ns, 0, NSEC_PER_SEC, 1, false)
LABBLK_FIELD(cache, 0, 1, 1, true)
LABBLK_FIELD(cache_ns, 0, NSEC_PER_SEC, 1, true)
LABBLK_FIELD(seed, 0, U64_MAX, 1, false)
LABBLK_FIELD(thin, 0, 1, 1, false)
LABBLK_FIELD(max_write_streams, 0, U8_MAX, 1, true)
LABBLK_FIELD(write_hints, 0, 1, 1, true)
LABBLK_FIELD(unit_kib, 0, LABBLK_MAX_UNIT_KIB, PAGE_SIZE / SZ_1K, true)
LABBLK_FIELD(op_percent, 1, 100, 1, true)
LABBLK_FIELD(rpm, 0, LABBLK_MAX_RPM, 1, true)
LABBLK_FIELD(track_kib, PAGE_SIZE / SZ_1K, SZ_1M, PAGE_SIZE / SZ_1K, true)
LABBLK_FIELD(seek_min_ns, 0, NSEC_PER_SEC, 1, true)
LABBLK_FIELD(seek_max_ns, 0, NSEC_PER_SEC, 1, true)

CONFIGFS_ATTR(labblk_, size_mib);
CONFIGFS_ATTR(labblk_, queues);
CONFIGFS_ATTR(labblk_, queue_depth);
CONFIGFS_ATTR(labblk_, channels);
CONFIGFS_ATTR(labblk_, stripe_kib);
CONFIGFS_ATTR(labblk_, read_ns);
CONFIGFS_ATTR(labblk_, write_ns);
CONFIGFS_ATTR(labblk_, flush_ns);
CONFIGFS_ATTR(labblk_, submit_ns);
CONFIGFS_ATTR(labblk_, cache);
CONFIGFS_ATTR(labblk_, cache_ns);
CONFIGFS_ATTR(labblk_, seed);
CONFIGFS_ATTR(labblk_, thin);
CONFIGFS_ATTR(labblk_, max_write_streams);
CONFIGFS_ATTR(labblk_, write_hints);
CONFIGFS_ATTR(labblk_, unit_kib);
CONFIGFS_ATTR(labblk_, op_percent);
CONFIGFS_ATTR(labblk_, rpm);
CONFIGFS_ATTR(labblk_, track_kib);
CONFIGFS_ATTR(labblk_, seek_min_ns);
CONFIGFS_ATTR(labblk_, seek_max_ns);

static ssize_t labblk_power_show(struct config_item *item, char *page)
{
	struct labblk *lab = to_labblk(item);

	return sysfs_emit(page, "%d\n", labblk_media_is_powered(&lab->media));
}

static ssize_t labblk_power_store(struct config_item *item, const char *page,
				  size_t count)
{
	struct labblk *lab = to_labblk(item);
	unsigned int power;
	int err = 0;

	if (kstrtouint(page, 0, &power) || power > 1)
		return -EINVAL;

	guard(mutex)(&lab->mutex);
	if (power && !lab->disk)
		err = labblk_add_disk(lab);
	else if (power)
		labblk_media_power_on(&lab->media);
	else
		labblk_media_power_cut(&lab->media, lab->config.seed);
	return err ? err : count;
}
CONFIGFS_ATTR(labblk_, power);

static ssize_t labblk_bad_blocks_show(struct config_item *item, char *page)
{
	return badblocks_show(&to_labblk(item)->bad_blocks, page, 0);
}

static ssize_t labblk_bad_blocks_store(struct config_item *item,
				       const char *page, size_t count)
{
	return badblocks_store(&to_labblk(item)->bad_blocks, page, count, 0);
}
CONFIGFS_ATTR(labblk_, bad_blocks);

/* What has been written since there is a disk; nothing where it is not flash. */
static void labblk_counts(struct labblk *lab, u64 *host_pages, u64 *media_pages)
{
	*host_pages = 0;
	*media_pages = 0;

	guard(mutex)(&lab->mutex);
	if (lab->disk && lab->config.unit_kib)
		labblk_ftl_counts(&lab->ftl, host_pages, media_pages);
}

static ssize_t labblk_host_pages_show(struct config_item *item, char *page)
{
	u64 host_pages, media_pages;

	labblk_counts(to_labblk(item), &host_pages, &media_pages);
	return sysfs_emit(page, "%llu\n", host_pages);
}
CONFIGFS_ATTR_RO(labblk_, host_pages);

static ssize_t labblk_media_pages_show(struct config_item *item, char *page)
{
	u64 host_pages, media_pages;

	labblk_counts(to_labblk(item), &host_pages, &media_pages);
	return sysfs_emit(page, "%llu\n", media_pages);
}
CONFIGFS_ATTR_RO(labblk_, media_pages);

static struct configfs_attribute *labblk_attrs[] = {
	&labblk_attr_size_mib,
	&labblk_attr_queues,
	&labblk_attr_queue_depth,
	&labblk_attr_channels,
	&labblk_attr_stripe_kib,
	&labblk_attr_read_ns,
	&labblk_attr_write_ns,
	&labblk_attr_flush_ns,
	&labblk_attr_submit_ns,
	&labblk_attr_cache,
	&labblk_attr_cache_ns,
	&labblk_attr_seed,
	&labblk_attr_thin,
	&labblk_attr_max_write_streams,
	&labblk_attr_write_hints,
	&labblk_attr_unit_kib,
	&labblk_attr_op_percent,
	&labblk_attr_rpm,
	&labblk_attr_track_kib,
	&labblk_attr_seek_min_ns,
	&labblk_attr_seek_max_ns,
	&labblk_attr_host_pages,
	&labblk_attr_media_pages,
	&labblk_attr_power,
	&labblk_attr_bad_blocks,
	NULL,
};

static void labblk_release(struct config_item *item)
{
	struct labblk *lab = to_labblk(item);

	labblk_media_free(&lab->media);
	badblocks_exit(&lab->bad_blocks);
	mutex_destroy(&lab->mutex);
	kfree(lab);
}

static const struct configfs_item_operations labblk_item_ops = {
	.release	= labblk_release,
};

static const struct config_item_type labblk_type = {
	.ct_item_ops	= &labblk_item_ops,
	.ct_attrs	= labblk_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct config_item *labblk_make_item(struct config_group *group,
					    const char *name)
{
	struct labblk *lab;

	if (strlen(name) >= DISK_NAME_LEN)
		return ERR_PTR(-ENAMETOOLONG);
	lab = kzalloc_obj(*lab);
	if (!lab)
		return ERR_PTR(-ENOMEM);
	if (badblocks_init(&lab->bad_blocks, 1)) {
		kfree(lab);
		return ERR_PTR(-ENOMEM);
	}
	mutex_init(&lab->mutex);
	labblk_media_init(&lab->media);
	lab->config = (struct labblk_config) {
		.size_mib = 256,
		.queues = 1,
		.queue_depth = 64,
		.channels = 1,
		.stripe_kib = PAGE_SIZE / SZ_1K,
		.op_percent = LABBLK_OP_PERCENT,
		.track_kib = SZ_1M / SZ_1K,
	};
	config_item_init_type_name(&lab->item, name, &labblk_type);
	return &lab->item;
}

static void labblk_drop_item(struct config_group *group,
			     struct config_item *item)
{
	struct labblk *lab = to_labblk(item);

	scoped_guard(mutex, &lab->mutex) {
		if (lab->disk)
			labblk_remove_disk(lab);
	}
	config_item_put(item);
}

static const struct configfs_group_operations labblk_group_ops = {
	.make_item	= labblk_make_item,
	.drop_item	= labblk_drop_item,
};

static const struct config_item_type labblk_group_type = {
	.ct_group_ops	= &labblk_group_ops,
	.ct_owner	= THIS_MODULE,
};

static struct configfs_subsystem labblk_subsys = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = "labblk",
			.ci_type = &labblk_group_type,
		},
	},
};

static int __init labblk_init(void)
{
	int err = labblk_init_driver();

	if (err)
		return err;
	config_group_init(&labblk_subsys.su_group);
	mutex_init(&labblk_subsys.su_mutex);
	err = configfs_register_subsystem(&labblk_subsys);
	if (err)
		labblk_exit_driver();
	return err;
}
device_initcall(labblk_init);
