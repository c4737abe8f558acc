/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A rotating disk: one actuator, and commands that wait for it.
 */
#ifndef _LABBLK_SPINDLE_H
#define _LABBLK_SPINDLE_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/**
 * struct labblk_access - a command, as the actuator sees it
 * @list: among those that wait
 * @page: first page
 * @nr_pages: how many, at least 1
 * @came_ns: when it came
 * @overtaken: commands that came later and went first
 */
struct labblk_access {
	struct list_head list;
	u64 page;
	u32 nr_pages;
	u64 came_ns;
	unsigned int overtaken;
};

/**
 * struct labblk_geometry - what decides how long an access takes
 * @revolution_ns: one turn
 * @track_pages: pages of a track; the head passes one in @page_ns
 * @page_ns: @revolution_ns / @track_pages
 * @tracks: number of tracks
 * @seek_min_ns: to a track beside the present one, settling included
 * @seek_max_ns: across all tracks
 */
struct labblk_geometry {
	u64 revolution_ns;
	u64 track_pages;
	u64 page_ns;
	u64 tracks;
	u64 seek_min_ns;
	u64 seek_max_ns;
};

/**
 * struct labblk_spindle - the actuator and what waits for it
 * @lock: taken with interrupts off, for the timer takes it
 * @timer: fires when @active ends
 * @waiting: commands in the order in which they came
 * @active: the one being served, NULL if the disk is idle
 * @done: called for each command that has ended, in interrupt context
 * @geometry: does not change
 * @track: where the head is
 * @free_ns: when the actuator is, or was last, free
 */
struct labblk_spindle {
	/* Protects all but @done and @geometry. */
	spinlock_t lock;
	struct hrtimer timer;
	struct list_head waiting;
	struct labblk_access *active;
	void (*done)(struct labblk_access *access);
	struct labblk_geometry geometry;
	u64 track;
	u64 free_ns;
};

struct labblk_geometry labblk_geometry(u64 rpm, u64 track_kib, u64 pages,
				       u64 seek_min_ns, u64 seek_max_ns);
u64 labblk_seek_ns(const struct labblk_geometry *geometry, u64 tracks);
u64 labblk_arrive_ns(const struct labblk_geometry *geometry, u64 track,
		     u64 page, u64 now_ns);
u64 labblk_access_end_ns(const struct labblk_geometry *geometry, u64 *track,
			 u64 page, u32 nr_pages, u64 now_ns);
struct labblk_access *labblk_spindle_choose(struct labblk_spindle *spindle,
					    u64 now_ns);

void labblk_spindle_init(struct labblk_spindle *spindle,
			 const struct labblk_geometry *geometry,
			 void (*done)(struct labblk_access *access));
void labblk_spindle_add(struct labblk_spindle *spindle,
			struct labblk_access *access, u64 now_ns);
void labblk_spindle_stop(struct labblk_spindle *spindle);

#endif /* _LABBLK_SPINDLE_H */
