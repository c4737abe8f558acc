/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hints of AG-aware writeback in an xarray, for KUnit tests.
 */
#ifndef __XFS_AGWB_HINT_FIXTURE_H__
#define __XFS_AGWB_HINT_FIXTURE_H__

#include <kunit/test.h>
#include "../xfs_agwb_hint_pack.h"

static inline void store_hint(struct kunit *test, struct xarray *hints,
			      pgoff_t index, unsigned int agno)
{
	unsigned long key = index / XFS_AGWB_HINTS_PER_ENTRY;
	void *entry = xfs_agwb_set_hint(xa_load(hints, key), index,
					xfs_agwb_make_hint(agno, false));

	KUNIT_ASSERT_FALSE(test, xa_is_err(xa_store(hints, key, entry,
						    GFP_KERNEL)));
}

#endif /* __XFS_AGWB_HINT_FIXTURE_H__ */
