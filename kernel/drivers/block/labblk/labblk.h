/* SPDX-License-Identifier: GPL-2.0 */
/*
 * labblk: a block device in memory whose commands take time, to compare what
 * is above it.
 *
 * Each part has a file of its own:
 *
 *	configfs.c	devices and their attributes, the life of a device
 *	main.c		the blk-mq driver: what becomes of a command
 *	timing.c	when a command ends
 *	spindle.c	the same of a rotating disk
 *	media.c		what the device holds, and what a power cut leaves of it
 *	ftl.c		what would be written to flash, were the device one
 *
 * A lock is taken while holding those before it only:
 *
 *	labblk::mutex, labblk_ftl::mutex, labblk_media::sem, labblk_timing::lock,
 *	labblk_spindle::lock
 *
 * A command never takes the mutex, so whoever holds it may wait for commands
 * to end. Nothing but the end of a command runs in interrupt context, and that
 * takes no lock of ours but labblk_spindle::lock.
 */
#ifndef _LABBLK_H
#define _LABBLK_H

#include <linux/badblocks.h>
#include <linux/blk-mq.h>
#include <linux/configfs.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include "ftl.h"
#include "spindle.h"

/**
 * struct labblk_timing - the channels of a device
 * @lock: taken in process context only
 * @channels: number of channels
 * @stripe_pages: pages that follow each other on one channel
 * @busy_until_ns: for each channel, when its last page will be done
 */
struct labblk_timing {
	/* Protects what @busy_until_ns points to. */
	spinlock_t lock;
	unsigned int channels;
	unsigned int stripe_pages;
	u64 *busy_until_ns;
};

int labblk_timing_init(struct labblk_timing *timing, unsigned int channels,
		       unsigned int stripe_kib);
void labblk_timing_free(struct labblk_timing *timing);
u64 labblk_timing_serve(struct labblk_timing *timing, u64 now_ns, u64 page_ns,
			sector_t sector, unsigned int nr_sectors);

/**
 * struct labblk_media - what a device holds
 * @sem: held shared to read, to write and to add pages; held exclusively to
 *	 empty the cache, and to change @powered, @nr_cuts and @rnd. Two
 *	 commands that write the same sectors at the same time get a mixture,
 *	 as on any device.
 * @powered: whether commands succeed
 * @nr_cuts: how often power has been cut; labblk_media_cuts() reads it without
 *	     @sem, and whoever uses that number compares it again under @sem
 * @rnd: decides what the last cut leaves
 * @write_back: whether writes stay in the cache until they are flushed; does
 *		not change while there are commands
 * @medium: struct page by index, what survives a power cut
 * @cached: struct page by index, the newer content of those sectors whose bits
 *	    are set in the page's private field
 */
struct labblk_media {
	struct rw_semaphore sem;
	bool powered;
	unsigned int nr_cuts;
	struct rnd_state rnd;
	bool write_back;
	struct xarray medium;
	struct xarray cached;
};

void labblk_media_init(struct labblk_media *media);
void labblk_media_free(struct labblk_media *media);
int labblk_media_read(struct labblk_media *media, u64 pos, void *to,
		      size_t len);
int labblk_media_write(struct labblk_media *media, u64 pos, const void *from,
		       size_t len, bool fua, unsigned int nr_cuts);
void labblk_media_lose(struct labblk_media *media, u64 pos, const void *from,
		       size_t len, unsigned int nr_cuts);
unsigned int labblk_media_cuts(struct labblk_media *media);
int labblk_media_flush(struct labblk_media *media);
void labblk_media_power_on(struct labblk_media *media);
void labblk_media_power_cut(struct labblk_media *media, u64 seed);
bool labblk_media_is_powered(struct labblk_media *media);

/**
 * struct labblk_config - the attributes that are numbers
 * @size_mib: capacity
 * @queues: hardware queues; the block layer makes no more than there are CPUs
 * @queue_depth: commands in flight in each hardware queue
 * @channels: see struct labblk_timing
 * @stripe_kib: how much of the device follows each other on one channel
 * @read_ns: time that a channel takes to read a page
 * @write_ns: time that a channel takes to write a page
 * @flush_ns: time that a flush takes
 * @submit_ns: time for which the submitting task sleeps
 * @cache: whether there is a volatile write cache
 * @cache_ns: time that a channel takes to put a page into the cache; what is
 *	      written is in flight until its command ends. 0: no time, and data
 *	      is copied as the command begins, as without a cache
 * @seed: decides what a power cut leaves
 * @thin: are bad blocks merely those for which a thin device has no room?
 * @max_write_streams: greatest write stream
 * @write_hints: does a life time hint choose the stream where none is named?
 * @unit_kib: size of a reclaim unit of flash, 0 if the device is not flash
 * @op_percent: over-provisioning, see labblk_ftl_init()
 * @rpm: revolutions per minute of a rotating disk; 0: not one, it has channels
 * @track_kib: KiB of a track of a rotating disk
 * @seek_min_ns: how long its head takes to the next track
 * @seek_max_ns: how long its head takes across all tracks
 *
 * The times but @cache_ns and those of a seek, the seed and @thin may change
 * while commands run, so these read them with READ_ONCE(). The others do not
 * change as long as there is a disk.
 */
struct labblk_config {
	u64 size_mib;
	u64 queues;
	u64 queue_depth;
	u64 channels;
	u64 stripe_kib;
	u64 read_ns;
	u64 write_ns;
	u64 flush_ns;
	u64 submit_ns;
	u64 cache;
	u64 cache_ns;
	u64 seed;
	u64 thin;
	u64 max_write_streams;
	u64 write_hints;
	u64 unit_kib;
	u64 op_percent;
	u64 rpm;
	u64 track_kib;
	u64 seek_min_ns;
	u64 seek_max_ns;
};

/**
 * struct labblk - a device
 * @item: its directory in configfs
 * @mutex: held by whoever changes the device, never by a command
 * @config: its attributes
 * @disk: the disk, NULL until power is first switched on
 * @tag_set: of @disk
 * @timing: of @disk
 * @spindle: of @disk, if it rotates
 * @media: what it holds, for as long as the directory exists
 * @ftl: of @disk, if it is flash
 * @bad_blocks: sectors that can be neither read nor written; has its own lock
 */
struct labblk {
	struct config_item item;
	/* Protects @config against changes, @disk, and the order of power cuts. */
	struct mutex mutex;
	struct labblk_config config;
	struct gendisk *disk;
	struct blk_mq_tag_set tag_set;
	struct labblk_timing timing;
	struct labblk_spindle spindle;
	struct labblk_media media;
	struct labblk_ftl ftl;
	struct badblocks bad_blocks;
};

int __init labblk_init_driver(void);
void __init labblk_exit_driver(void);
int labblk_add_disk(struct labblk *lab);
void labblk_remove_disk(struct labblk *lab);

#endif /* _LABBLK_H */
