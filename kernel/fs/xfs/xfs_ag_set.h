/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __XFS_AG_SET_H__
#define __XFS_AG_SET_H__

#include <linux/types.h>

/**
 * struct xfs_ag_set - the allocation groups (AGs) that a stream writes to
 * @first: first AG of the part that lies together
 * @len: number of AGs of that part
 * @dealt: first of the AGs that growfs has added and that were dealt to the
 *	stream
 * @stride: from one of these to the next
 * @nr: number of AGs of the set
 */
struct xfs_ag_set {
	u32	first;
	u32	len;
	u32	dealt;
	u32	stride;
	u32	nr;
};

u32 xfs_ag_set_generic(u32 agcount, u32 home, u32 size, u32 key);
void xfs_ag_set_of_stream(struct xfs_ag_set *set, u32 agcount, u32 mounted,
			  u32 nr_streams, u32 stream);
void xfs_ag_set_shift(struct xfs_ag_set *set, u32 by);
u32 xfs_ag_set_nth(const struct xfs_ag_set *set, u32 n);
bool xfs_ag_set_has(const struct xfs_ag_set *set, u32 agno);

#endif /* __XFS_AG_SET_H__ */
