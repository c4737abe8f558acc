// SPDX-License-Identifier: GPL-2.0
/*
 * A rotating disk. Its actuator serves one command at a time: it moves the head
 * to the track, waits until the first page comes by, and reads or writes while
 * the pages pass. Of the commands that wait the one whose first page it can
 * reach first is next, as in a drive with native command queueing.
 *
 * - A seek over d tracks takes seek_min + (seek_max - seek_min) * sqrt(d / D), D
 *   being all tracks: the head speeds up for one half and slows down for the
 *   other.
 * - Every track has as many pages, and begins so much later than the one before
 *   as the seek between them takes, so reading on loses no turn.
 * - All follows from where the head is and from the time, so nothing is random.
 *
 * For random single pages that are served one by one this comes to seek_min +
 * 8/15 * (seek_max - seek_min) + revolution / 2 + page on average.
 */

#include <linux/cleanup.h>
#include <linux/container_of.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include "spindle.h"

/* Bits behind the point of a share of all tracks. */
#define SHARE_BITS	40
/* A command that so many have overtaken is next: as many as a drive can hold. */
#define MOST_OVERTAKEN	32

/**
 * labblk_geometry - work out the geometry of a disk
 * @rpm: revolutions per minute, at least 1
 * @track_kib: KiB of a track, a multiple of a page
 * @pages: pages of the disk
 * @seek_min_ns: to the next track
 * @seek_max_ns: across all tracks, at least @seek_min_ns
 *
 * Return: the geometry.
 */
struct labblk_geometry labblk_geometry(u64 rpm, u64 track_kib, u64 pages,
				       u64 seek_min_ns, u64 seek_max_ns)
{
	u64 track_pages = track_kib / (PAGE_SIZE / SZ_1K);
	u64 page_ns = div64_u64(60ULL * NSEC_PER_SEC, rpm * track_pages);

	return (struct labblk_geometry) {
		/* whole pages, or rounding would let them drift apart */
		.revolution_ns	= page_ns * track_pages,
		.track_pages	= track_pages,
		.page_ns	= page_ns,
		.tracks		= div64_u64(pages + track_pages - 1, track_pages),
		.seek_min_ns	= seek_min_ns,
		.seek_max_ns	= seek_max_ns,
	};
}

/**
 * labblk_seek_ns - how long the head takes to another track
 * @geometry: of the disk
 * @tracks: how far, 0 to the number of tracks
 *
 * Return: the time, 0 for no move.
 */
u64 labblk_seek_ns(const struct labblk_geometry *geometry, u64 tracks)
{
	u64 share = mul_u64_u64_div_u64(tracks, 1ULL << SHARE_BITS,
					geometry->tracks);
	u64 way_ns = geometry->seek_max_ns - geometry->seek_min_ns;

	if (!tracks)
		return 0;
	return geometry->seek_min_ns +
	       ((way_ns * int_sqrt64(share)) >> (SHARE_BITS / 2));
}

static u64 labblk_turned_ns(const struct labblk_geometry *geometry, u64 ns)
{
	u64 turned_ns;

	div64_u64_rem(ns, geometry->revolution_ns, &turned_ns);
	return turned_ns;
}

/**
 * labblk_arrive_ns - when the head is at a page
 * @geometry: of the disk
 * @track: where the head is
 * @page: where it is to go
 * @now_ns: when it starts
 *
 * Return: the time at which the page begins to pass below the head.
 */
u64 labblk_arrive_ns(const struct labblk_geometry *geometry, u64 track,
		     u64 page, u64 now_ns)
{
	u64 place, wanted, angle_ns, turned_ns;

	wanted = div64_u64_rem(page, geometry->track_pages, &place);
	now_ns += labblk_seek_ns(geometry, wanted > track ? wanted - track :
							   track - wanted);
	angle_ns = labblk_turned_ns(geometry, place * geometry->page_ns +
				    wanted * labblk_seek_ns(geometry, 1));
	turned_ns = labblk_turned_ns(geometry, now_ns);
	return now_ns + (angle_ns >= turned_ns ? 0 : geometry->revolution_ns) +
	       angle_ns - turned_ns;
}

/**
 * labblk_access_end_ns - serve an access
 * @geometry: of the disk
 * @track: where the head is, and afterwards where it has come to
 * @page: first page
 * @nr_pages: how many, at least 1
 * @now_ns: when the head starts
 *
 * Return: when the last page has passed.
 */
u64 labblk_access_end_ns(const struct labblk_geometry *geometry, u64 *track,
			 u64 page, u32 nr_pages, u64 now_ns)
{
	while (nr_pages) {
		u64 place, wanted, here;

		wanted = div64_u64_rem(page, geometry->track_pages, &place);
		here = min_t(u64, nr_pages, geometry->track_pages - place);
		now_ns = labblk_arrive_ns(geometry, *track, page, now_ns) +
			 here * geometry->page_ns;
		*track = wanted;
		page += here;
		nr_pages -= here;
	}
	return now_ns;
}

/**
 * labblk_spindle_choose - take the command that is next
 * @spindle: with its lock held
 * @now_ns: when the head would start
 *
 * Return: the command, off the list; NULL if none waits.
 */
struct labblk_access *labblk_spindle_choose(struct labblk_spindle *spindle,
					    u64 now_ns)
{
	struct labblk_access *access, *best = NULL;
	u64 best_ns = U64_MAX;

	list_for_each_entry(access, &spindle->waiting, list) {
		u64 arrive_ns = labblk_arrive_ns(&spindle->geometry,
						 spindle->track, access->page,
						 now_ns);

		if (access->overtaken >= MOST_OVERTAKEN) {
			best = access;
			break;
		}
		if (arrive_ns < best_ns) {
			best = access;
			best_ns = arrive_ns;
		}
	}
	if (!best)
		return NULL;
	list_for_each_entry(access, &spindle->waiting, list) {
		if (access == best)
			break;
		access->overtaken++;
	}
	list_del(&best->list);
	return best;
}

/*
 * The next command starts when the last one ended, not when the host came to
 * notice: the head does not wait for an interrupt.
 */
static void labblk_spindle_start(struct labblk_spindle *spindle)
{
	struct labblk_access *next;

	lockdep_assert_held(&spindle->lock);
	next = labblk_spindle_choose(spindle, spindle->free_ns);
	spindle->active = next;
	if (!next)
		return;
	spindle->free_ns = labblk_access_end_ns(&spindle->geometry,
						&spindle->track, next->page,
						next->nr_pages,
						max(spindle->free_ns,
						    next->came_ns));
	hrtimer_start(&spindle->timer, ns_to_ktime(spindle->free_ns),
		      HRTIMER_MODE_ABS);
}

static enum hrtimer_restart labblk_spindle_fired(struct hrtimer *timer)
{
	struct labblk_spindle *spindle = container_of(timer, struct labblk_spindle,
						      timer);
	struct labblk_access *ended;

	scoped_guard(spinlock_irqsave, &spindle->lock) {
		ended = spindle->active;
		labblk_spindle_start(spindle);
	}
	spindle->done(ended);
	return HRTIMER_NORESTART;
}

/**
 * labblk_spindle_init - make a disk that is idle, its head on the first track
 * @spindle: to initialise
 * @geometry: of the disk
 * @done: called when a command ends, in interrupt context
 */
void labblk_spindle_init(struct labblk_spindle *spindle,
			 const struct labblk_geometry *geometry,
			 void (*done)(struct labblk_access *access))
{
	spin_lock_init(&spindle->lock);
	hrtimer_setup(&spindle->timer, labblk_spindle_fired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
	INIT_LIST_HEAD(&spindle->waiting);
	spindle->active = NULL;
	spindle->done = done;
	spindle->geometry = *geometry;
	spindle->track = 0;
	spindle->free_ns = 0;
}

/**
 * labblk_spindle_add - give the disk a command
 * @spindle: the disk
 * @access: the command, with its pages set
 * @now_ns: the time
 *
 * Context: Process context.
 */
void labblk_spindle_add(struct labblk_spindle *spindle,
			struct labblk_access *access, u64 now_ns)
{
	access->came_ns = now_ns;
	access->overtaken = 0;

	guard(spinlock_irqsave)(&spindle->lock);
	list_add_tail(&access->list, &spindle->waiting);
	if (!spindle->active)
		labblk_spindle_start(spindle);
}

/**
 * labblk_spindle_stop - undo labblk_spindle_init()
 * @spindle: a disk that no command waits for
 */
void labblk_spindle_stop(struct labblk_spindle *spindle)
{
	hrtimer_cancel(&spindle->timer);
}
