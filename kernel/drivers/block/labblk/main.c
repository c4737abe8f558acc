// SPDX-License-Identifier: GPL-2.0
/*
 * The blk-mq driver: what becomes of a command.
 *
 * The submitting task sleeps for the time that submission takes and then copies
 * the data. From there on the command is with the channels, or with the actuator of
 * a rotating disk, and a timer ends it when the last of its pages is done. If
 * nothing takes time, it ends at once.
 *
 * A write to a cache that takes time is late: its data is copied by a work item
 * when its time is over. So it is nowhere before it ends, no flush covers it, and
 * a power cut may lose it.
 */

#include <linux/blkdev.h>
#include <linux/highmem.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>
#include "labblk.h"

/* A command of 1 MiB, every page of it elsewhere in memory. */
#define LABBLK_MAX_SECTORS	(SZ_1M >> SECTOR_SHIFT)
#define LABBLK_MAX_SEGMENTS	(SZ_1M / PAGE_SIZE)
#define LABBLK_MAX_DISCARD	(SZ_1G >> SECTOR_SHIFT)

struct labblk_cmd {
	struct hrtimer timer;
	struct labblk_access access;
	struct work_struct work;
	unsigned int nr_cuts;
};

static struct workqueue_struct *labblk_wq;

static bool labblk_is_late(struct labblk *lab, struct request *rq)
{
	return lab->config.cache_ns && req_op(rq) == REQ_OP_WRITE;
}

/* The time of a command is over that has not failed; in interrupt context, too. */
static void labblk_time_over(struct labblk_cmd *cmd)
{
	struct request *rq = blk_mq_rq_from_pdu(cmd);

	if (labblk_is_late(rq->q->queuedata, rq))
		queue_work(labblk_wq, &cmd->work);
	else
		blk_mq_end_request(rq, BLK_STS_OK);
}

static enum hrtimer_restart labblk_timer_fired(struct hrtimer *timer)
{
	labblk_time_over(container_of(timer, struct labblk_cmd, timer));
	return HRTIMER_NORESTART;
}

static void labblk_access_done(struct labblk_access *access)
{
	labblk_time_over(container_of(access, struct labblk_cmd, access));
}

static void labblk_late_work(struct work_struct *work);

static int labblk_init_request(struct blk_mq_tag_set *set, struct request *rq,
			       unsigned int hctx_idx, int numa_node)
{
	struct labblk_cmd *cmd = blk_mq_rq_to_pdu(rq);

	hrtimer_setup(&cmd->timer, labblk_timer_fired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
	INIT_WORK(&cmd->work, labblk_late_work);
	return 0;
}

static void labblk_exit_request(struct blk_mq_tag_set *set, struct request *rq,
				unsigned int hctx_idx)
{
	struct labblk_cmd *cmd = blk_mq_rq_to_pdu(rq);

	/* The command has ended, but its timer and its work may still be returning. */
	hrtimer_cancel(&cmd->timer);
	flush_work(&cmd->work);
}

static void labblk_sleep(u64 ns)
{
	ktime_t end = ktime_add_ns(ktime_get(), ns);

	if (!ns)
		return;
	do {
		__set_current_state(TASK_UNINTERRUPTIBLE);
	} while (schedule_hrtimeout(&end, HRTIMER_MODE_ABS));
}

/* A thin device lacks room for what is written only. */
static int labblk_check_bad(struct labblk *lab, struct request *rq)
{
	sector_t first_bad, nr_bad;

	if (!badblocks_check(&lab->bad_blocks, blk_rq_pos(rq),
			     blk_rq_sectors(rq), &first_bad, &nr_bad))
		return 0;
	if (READ_ONCE(lab->config.thin))
		return op_is_write(req_op(rq)) ? -ENOSPC : 0;

	return -EIO;
}

static int labblk_transfer(struct labblk *lab, struct request *rq)
{
	struct labblk_cmd *cmd = blk_mq_rq_to_pdu(rq);
	u64 pos = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	bool is_write = op_is_write(req_op(rq));
	bool fua = rq->cmd_flags & REQ_FUA;
	int err = labblk_check_bad(lab, rq);
	struct req_iterator iter;
	struct bio_vec bvec;

	if (err)
		return err;

	rq_for_each_segment(bvec, rq, iter) {
		void *data = bvec_kmap_local(&bvec);

		if (is_write)
			err = labblk_media_write(&lab->media, pos, data,
						 bvec.bv_len, fua,
						 cmd->nr_cuts);
		else
			err = labblk_media_read(&lab->media, pos, data,
						bvec.bv_len);
		kunmap_local(data);
		if (err)
			return err;
		if (!is_write)
			flush_dcache_page(bvec.bv_page);
		pos += bvec.bv_len;
	}
	return 0;
}

/* A write has failed; if that is for want of power, a part of it may be there. */
static void labblk_lose(struct labblk *lab, struct request *rq)
{
	struct labblk_cmd *cmd = blk_mq_rq_to_pdu(rq);
	u64 pos = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	struct req_iterator iter;
	struct bio_vec bvec;

	rq_for_each_segment(bvec, rq, iter) {
		void *data = bvec_kmap_local(&bvec);
		size_t len = bvec.bv_len;
		void *from = data;

		while (len) {
			size_t part = min(len, PAGE_SIZE - offset_in_page(pos));

			labblk_media_lose(&lab->media, pos, from, part,
					  cmd->nr_cuts);
			pos += part;
			from += part;
			len -= part;
		}
		kunmap_local(data);
	}
}

/* A write that names no stream may have a hint, as some drives take it. */
static u32 labblk_stream(struct labblk *lab, struct request *rq)
{
	const struct labblk_config *config = &lab->config;
	u32 hint = rq->bio->bi_write_hint;

	if (rq->bio->bi_write_stream || !config->write_hints)
		return rq->bio->bi_write_stream;

	return hint <= config->max_write_streams ? hint : 0;
}

/* A page of which only a part is written is written anew as a whole. */
static int labblk_write(struct labblk *lab, struct request *rq)
{
	u64 first = blk_rq_pos(rq) >> PAGE_SECTORS_SHIFT;
	u64 last = (blk_rq_pos(rq) + blk_rq_sectors(rq) - 1) >>
		   PAGE_SECTORS_SHIFT;
	int err = labblk_transfer(lab, rq);

	if (!err && lab->config.unit_kib)
		labblk_ftl_write(&lab->ftl, first, last - first + 1,
				 labblk_stream(lab, rq));
	return err;
}

/* The data stays, only flash forgets about it; a part of a page is not enough. */
static int labblk_discard(struct labblk *lab, struct request *rq)
{
	u64 first = DIV_ROUND_UP(blk_rq_pos(rq), PAGE_SECTORS);
	u64 end = (blk_rq_pos(rq) + blk_rq_sectors(rq)) >> PAGE_SECTORS_SHIFT;

	if (!labblk_media_is_powered(&lab->media))
		return -EIO;
	if (first < end)
		labblk_ftl_discard(&lab->ftl, first, end - first);
	return 0;
}

static int labblk_carry_out(struct labblk *lab, struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return labblk_transfer(lab, rq);
	case REQ_OP_WRITE:
		return labblk_write(lab, rq);
	case REQ_OP_DISCARD:
		return labblk_discard(lab, rq);
	case REQ_OP_FLUSH:
		return labblk_media_flush(&lab->media);
	default:
		return -EOPNOTSUPP;
	}
}

/* A write into the cache does not touch the medium, nor does the cache empty. */
static bool labblk_moves_head(struct labblk *lab, struct request *rq)
{
	if (!lab->config.rpm)
		return false;
	if (req_op(rq) == REQ_OP_READ)
		return true;

	return req_op(rq) == REQ_OP_WRITE &&
	       (!lab->config.cache || (rq->cmd_flags & REQ_FUA));
}

static void labblk_seek(struct labblk *lab, struct request *rq)
{
	struct labblk_cmd *cmd = blk_mq_rq_to_pdu(rq);
	u64 last = (blk_rq_pos(rq) + blk_rq_sectors(rq) - 1) >>
		   PAGE_SECTORS_SHIFT;

	cmd->access.page = blk_rq_pos(rq) >> PAGE_SECTORS_SHIFT;
	cmd->access.nr_pages = last - cmd->access.page + 1;
	labblk_spindle_add(&lab->spindle, &cmd->access, ktime_get_ns());
}

/* When a command ends. */
static u64 labblk_end_ns(struct labblk *lab, struct request *rq, u64 now_ns)
{
	const struct labblk_config *config = &lab->config;
	u64 page_ns;

	switch (req_op(rq)) {
	case REQ_OP_FLUSH:
		return now_ns + READ_ONCE(config->flush_ns);
	case REQ_OP_WRITE:
		/* The cache does not empty itself. */
		if (config->cache && !(rq->cmd_flags & REQ_FUA)) {
			if (!config->cache_ns)
				return now_ns;
			page_ns = config->cache_ns;
			break;
		}
		page_ns = READ_ONCE(config->write_ns);
		break;
	case REQ_OP_DISCARD:
		return now_ns;
	default:
		page_ns = READ_ONCE(config->read_ns);
		break;
	}
	return labblk_timing_serve(&lab->timing, now_ns, page_ns,
				   blk_rq_pos(rq), blk_rq_sectors(rq));
}

static void labblk_late_work(struct work_struct *work)
{
	struct labblk_cmd *cmd = container_of(work, struct labblk_cmd, work);
	struct request *rq = blk_mq_rq_from_pdu(cmd);
	struct labblk *lab = rq->q->queuedata;
	int err = labblk_carry_out(lab, rq);

	if (err == -EIO && !labblk_check_bad(lab, rq))
		labblk_lose(lab, rq);
	blk_mq_end_request(rq, errno_to_blk_status(err));
}

/* What can be said at once: of a late write only whether it may be tried. */
static int labblk_begin(struct labblk *lab, struct request *rq)
{
	struct labblk_cmd *cmd = blk_mq_rq_to_pdu(rq);

	cmd->nr_cuts = labblk_media_cuts(&lab->media);
	if (!labblk_is_late(lab, rq))
		return labblk_carry_out(lab, rq);

	if (!labblk_media_is_powered(&lab->media))
		return -EIO;
	return labblk_check_bad(lab, rq);
}

static blk_status_t labblk_queue_rq(struct blk_mq_hw_ctx *hctx,
				    const struct blk_mq_queue_data *bd)
{
	struct labblk *lab = hctx->queue->queuedata;
	struct request *rq = bd->rq;
	struct labblk_cmd *cmd = blk_mq_rq_to_pdu(rq);
	u64 now_ns, end_ns;
	int err;

	blk_mq_start_request(rq);
	labblk_sleep(READ_ONCE(lab->config.submit_ns));
	err = labblk_begin(lab, rq);
	if (err) {
		blk_mq_end_request(rq, errno_to_blk_status(err));
		return BLK_STS_OK;
	}
	if (labblk_moves_head(lab, rq)) {
		labblk_seek(lab, rq);
		return BLK_STS_OK;
	}

	now_ns = ktime_get_ns();
	end_ns = labblk_end_ns(lab, rq, now_ns);
	if (end_ns > now_ns)
		hrtimer_start(&cmd->timer, ns_to_ktime(end_ns),
			      HRTIMER_MODE_ABS);
	else
		labblk_time_over(cmd);
	return BLK_STS_OK;
}

static const struct blk_mq_ops labblk_mq_ops = {
	.queue_rq	= labblk_queue_rq,
	.init_request	= labblk_init_request,
	.exit_request	= labblk_exit_request,
};

static const struct block_device_operations labblk_fops = {
	.owner		= THIS_MODULE,
};

static int labblk_alloc_disk(struct labblk *lab)
{
	const struct labblk_config *config = &lab->config;
	/* A sector is what a power cut tears nothing smaller than. */
	struct queue_limits lim = {
		.logical_block_size	= SECTOR_SIZE,
		.max_hw_sectors		= LABBLK_MAX_SECTORS,
		.max_segments		= LABBLK_MAX_SEGMENTS,
		.max_write_streams	= config->max_write_streams,
	};
	struct gendisk *disk;

	if (config->rpm)
		lim.features |= BLK_FEAT_ROTATIONAL;
	if (config->cache)
		lim.features |= BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA;
	if (config->unit_kib) {
		lim.write_stream_granularity = config->unit_kib * SZ_1K;
		lim.max_hw_discard_sectors = LABBLK_MAX_DISCARD;
		lim.discard_granularity = PAGE_SIZE;
	}
	disk = blk_mq_alloc_disk(&lab->tag_set, &lim, lab);
	if (IS_ERR(disk))
		return PTR_ERR(disk);
	disk->fops = &labblk_fops;
	disk->flags |= GENHD_FL_NO_PART;
	strscpy(disk->disk_name, config_item_name(&lab->item));
	set_capacity(disk, config->size_mib * (SZ_1M >> SECTOR_SHIFT));
	lab->disk = disk;
	return 0;
}

static int labblk_add_spindle(struct labblk *lab)
{
	const struct labblk_config *config = &lab->config;
	struct labblk_geometry geometry;

	if (!config->rpm)
		return 0;
	if (config->seek_max_ns < config->seek_min_ns)
		return -EINVAL;

	geometry = labblk_geometry(config->rpm, config->track_kib,
				   config->size_mib * (SZ_1M / PAGE_SIZE),
				   config->seek_min_ns, config->seek_max_ns);
	labblk_spindle_init(&lab->spindle, &geometry, labblk_access_done);
	return 0;
}

static void labblk_remove_spindle(struct labblk *lab)
{
	if (lab->config.rpm)
		labblk_spindle_stop(&lab->spindle);
}

static int labblk_add_ftl(struct labblk *lab)
{
	const struct labblk_config *config = &lab->config;

	if (!config->unit_kib)
		return 0;
	return labblk_ftl_init(&lab->ftl, config->size_mib * (SZ_1M / PAGE_SIZE),
			       config->unit_kib / (PAGE_SIZE / SZ_1K),
			       config->op_percent, config->max_write_streams);
}

static void labblk_remove_ftl(struct labblk *lab)
{
	if (lab->config.unit_kib)
		labblk_ftl_free(&lab->ftl);
}

/**
 * labblk_add_disk - make the disk of a device, with power on
 * @lab: a device without a disk
 *
 * Context: Process context, with the device's mutex held.
 * Return: 0 or a negative error.
 */
int labblk_add_disk(struct labblk *lab)
{
	const struct labblk_config *config = &lab->config;
	int err;

	lockdep_assert_held(&lab->mutex);
	if (config->cache_ns && !config->cache)
		return -EINVAL;
	err = labblk_timing_init(&lab->timing, config->channels,
				 config->stripe_kib);
	if (err)
		return err;
	err = labblk_add_spindle(lab);
	if (err)
		goto free_timing;
	err = labblk_add_ftl(lab);
	if (err)
		goto remove_spindle;

	lab->tag_set = (struct blk_mq_tag_set) {
		.ops		= &labblk_mq_ops,
		.nr_hw_queues	= config->queues,
		.queue_depth	= config->queue_depth,
		.numa_node	= NUMA_NO_NODE,
		.cmd_size	= sizeof(struct labblk_cmd),
		/* Commands sleep while they are submitted. */
		.flags		= BLK_MQ_F_BLOCKING,
	};
	err = blk_mq_alloc_tag_set(&lab->tag_set);
	if (err)
		goto remove_ftl;
	err = labblk_alloc_disk(lab);
	if (err)
		goto free_tag_set;
	lab->media.write_back = config->cache;
	labblk_media_power_on(&lab->media);
	err = add_disk(lab->disk);
	if (err)
		goto put_disk;
	return 0;

put_disk:
	labblk_media_power_cut(&lab->media, config->seed);
	put_disk(lab->disk);
	lab->disk = NULL;
free_tag_set:
	blk_mq_free_tag_set(&lab->tag_set);
remove_ftl:
	labblk_remove_ftl(lab);
remove_spindle:
	labblk_remove_spindle(lab);
free_timing:
	labblk_timing_free(&lab->timing);
	return err;
}

/**
 * labblk_remove_disk - remove the disk of a device, also one in use
 * @lab: a device with a disk
 *
 * Returns when every command has ended and no other can begin.
 *
 * Context: Process context, with the device's mutex held.
 */
void labblk_remove_disk(struct labblk *lab)
{
	lockdep_assert_held(&lab->mutex);
	del_gendisk(lab->disk);
	put_disk(lab->disk);
	lab->disk = NULL;
	blk_mq_free_tag_set(&lab->tag_set);
	labblk_remove_ftl(lab);
	labblk_remove_spindle(lab);
	labblk_timing_free(&lab->timing);
}

/**
 * labblk_init_driver - get ready for the first device
 *
 * Return: 0 or -ENOMEM.
 */
int __init labblk_init_driver(void)
{
	/* memory reclaim may wait for a late write */
	labblk_wq = alloc_workqueue("labblk", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return labblk_wq ? 0 : -ENOMEM;
}

/**
 * labblk_exit_driver - undo labblk_init_driver() before any device is made
 */
void __init labblk_exit_driver(void)
{
	destroy_workqueue(labblk_wq);
}
