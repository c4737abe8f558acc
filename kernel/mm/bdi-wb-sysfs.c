// SPDX-License-Identifier: GPL-2.0
/*
 * The number of writeback contexts of a BDI, and how sysfs sets it. Every other
 * attribute stands with what it sets.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/kstrtox.h>
#include <linux/sysfs.h>
#include <trace/events/writeback_ctx.h>

/**
 * bdi_enable_wb_ctx - allow a BDI more than one context
 * @bdi: new BDI of a block device, not yet registered
 *
 * The contexts themselves come with the first inode that each of them gets,
 * so that a device which nobody writes to costs nothing.
 */
void bdi_enable_wb_ctx(struct backing_dev_info *bdi)
{
	bdi->max_wb_ctx = BDI_WB_CTX_PER_CPU * num_possible_cpus();
}

static ssize_t nwritebacks_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	struct backing_dev_info *bdi = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%d\n", READ_ONCE(bdi->nr_wb_ctx));
}

static ssize_t nwritebacks_store(struct device *dev,
				 struct device_attribute *attr,
				 const char *buf, size_t count)
{
	struct backing_dev_info *bdi = dev_get_drvdata(dev);
	unsigned int nr;

	if (kstrtouint(buf, 10, &nr) || !nr || nr > bdi->max_wb_ctx)
		return -EINVAL;

	trace_wb_ctx_resize(bdi, nr);
	WRITE_ONCE(bdi->nr_wb_ctx, nr);
	return count;
}
DEVICE_ATTR_RW(nwritebacks);
