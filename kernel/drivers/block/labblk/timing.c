// SPDX-License-Identifier: GPL-2.0
/*
 * When a command ends: a device has channels that work side by side, and each
 * channel serves one page after the other.
 */

#include <linux/cleanup.h>
#include <linux/math64.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include "labblk.h"

/**
 * labblk_timing_init - make the channels, all of them idle
 * @timing: to initialise
 * @channels: number of channels, at least 1
 * @stripe_kib: KiB that follow each other on one channel, a multiple of a page
 *
 * Return: 0 or -ENOMEM.
 */
int labblk_timing_init(struct labblk_timing *timing, unsigned int channels,
		       unsigned int stripe_kib)
{
	spin_lock_init(&timing->lock);
	timing->channels = channels;
	timing->stripe_pages = stripe_kib / (PAGE_SIZE / SZ_1K);
	timing->busy_until_ns = kzalloc_objs(*timing->busy_until_ns, channels);
	return timing->busy_until_ns ? 0 : -ENOMEM;
}

/**
 * labblk_timing_free - undo labblk_timing_init()
 * @timing: whose channels to free
 */
void labblk_timing_free(struct labblk_timing *timing)
{
	kfree(timing->busy_until_ns);
	timing->busy_until_ns = NULL;
}

static u64 *labblk_channel(struct labblk_timing *timing, u64 page)
{
	u32 channel;

	div_u64_rem(div_u64(page, timing->stripe_pages), timing->channels,
		    &channel);
	return &timing->busy_until_ns[channel];
}

/**
 * labblk_timing_serve - let the channels serve the pages of a command
 * @timing: the channels
 * @now_ns: the time
 * @page_ns: how long a channel takes for a page, also for a part of one
 * @sector: first sector
 * @nr_sectors: how many, at least 1
 *
 * Each page waits for what its channel was given before.
 *
 * Context: Process context.
 * Return: when the last page is done, @now_ns if nothing takes time.
 */
u64 labblk_timing_serve(struct labblk_timing *timing, u64 now_ns, u64 page_ns,
			sector_t sector, unsigned int nr_sectors)
{
	u64 last = (sector + nr_sectors - 1) >> PAGE_SECTORS_SHIFT;
	u64 page = sector >> PAGE_SECTORS_SHIFT;
	u64 end_ns = now_ns;

	guard(spinlock)(&timing->lock);
	for (; page <= last; page++) {
		u64 *busy_until_ns = labblk_channel(timing, page);

		*busy_until_ns = max(*busy_until_ns, now_ns) + page_ns;
		end_ns = max(end_ns, *busy_until_ns);
	}
	return end_ns;
}
