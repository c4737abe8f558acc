// SPDX-License-Identifier: GPL-2.0
/*
 * Which allocation groups (AGs) a file's blocks are looked for in first: plain
 * arithmetic, without state and without locks.
 *
 * A file without a stream has a small window of AGs that begins with that of its
 * inode, so that writers of one directory do not all queue for one AG.
 *
 * A file with a stream has the AGs of its stream. With at least as many AGs as
 * streams, each stream has AGs of its own:
 *
 *	AGs at mount	0 1 2 3 4 5 6 7 8 9	added by growfs	a b c d e
 *	3 streams	1 1 1 2 2 2 3 3 3 3			1 2 3 1 2
 *
 * The AGs that were there when the filesystem was mounted are cut into parts that
 * lie together, the larger ones last; those that growfs adds are dealt out in
 * turn, to the smaller ones first. So whatever is added, no two streams differ by
 * more than one AG, and no stream loses one to another. That lasts until the
 * filesystem is mounted anew, but so do the streams of files.
 *
 * With fewer AGs than streams, streams take turns: AG (stream - 1) % agcount.
 */
#include <linux/minmax.h>
#include "xfs_ag_set.h"

/**
 * xfs_ag_set_generic - where to begin for a file without a stream
 * @agcount: number of AGs
 * @home: the AG of its inode
 * @size: number of AGs in the window, at least 1
 * @key: chooses within the window, such as the inode's number in its AG
 *
 * Return: an AG.
 */
u32 xfs_ag_set_generic(u32 agcount, u32 home, u32 size, u32 key)
{
	u32 left = agcount - home;
	u32 step = key % min(size, agcount);

	return step < left ? home + step : step - left;
}

/**
 * xfs_ag_set_of_stream - the AGs of a stream
 * @set: filled in
 * @agcount: number of AGs
 * @mounted: number of AGs when the filesystem was mounted
 * @nr_streams: number of streams
 * @stream: the stream, from 1 to @nr_streams
 */
void xfs_ag_set_of_stream(struct xfs_ag_set *set, u32 agcount, u32 mounted,
			  u32 nr_streams, u32 stream)
{
	u32 index = stream - 1;
	u32 cut, grown, part, smaller;

	if (agcount < nr_streams) {
		*set = (struct xfs_ag_set) {
			.first	= index % agcount,
			.len	= 1,
			.nr	= 1,
		};
		return;
	}

	/* shrunk, or grown to as many as there are streams: nothing is dealt */
	cut = max(min(mounted, agcount), nr_streams);
	grown = agcount - cut;
	part = cut / nr_streams;
	smaller = nr_streams - cut % nr_streams;

	*set = (struct xfs_ag_set) {
		.first	= index * part,
		.len	= part,
		.dealt	= cut + index,
		.stride	= nr_streams,
	};
	if (index >= smaller) {
		set->first += index - smaller;
		set->len++;
	}
	set->nr = set->len + grown / nr_streams + (index < grown % nr_streams);
}

/**
 * xfs_ag_set_shift - leave the first AGs of the filesystem to others
 * @set: AGs of a stream, counted without those
 * @by: how many they are
 */
void xfs_ag_set_shift(struct xfs_ag_set *set, u32 by)
{
	set->first += by;
	set->dealt += by;
}

/**
 * xfs_ag_set_nth - one of the AGs of a stream
 * @set: its AGs
 * @n: which, less than @set->nr
 *
 * Return: the AG.
 */
u32 xfs_ag_set_nth(const struct xfs_ag_set *set, u32 n)
{
	if (n < set->len)
		return set->first + n;

	return set->dealt + (n - set->len) * set->stride;
}

/**
 * xfs_ag_set_has - is this an AG of the stream?
 * @set: its AGs
 * @agno: an AG of the filesystem
 *
 * Return: %true if it is.
 */
bool xfs_ag_set_has(const struct xfs_ag_set *set, u32 agno)
{
	if (agno - set->first < set->len)
		return true;

	return set->nr > set->len && agno >= set->dealt &&
	       (agno - set->dealt) % set->stride == 0;
}
