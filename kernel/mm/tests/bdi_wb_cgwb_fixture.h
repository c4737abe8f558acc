/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The writeback of a cgroup, for KUnit tests.
 */
#ifndef _BDI_WB_CGWB_FIXTURE_H
#define _BDI_WB_CGWB_FIXTURE_H

#include <linux/percpu-refcount.h>
#include <linux/rcupdate.h>
#include "../bdi-writeback-ctx.h"
#include "bdi_wb_fixture.h"

#ifdef CONFIG_CGROUP_WRITEBACK

static inline void no_release(struct percpu_ref *ref)
{
}

/* a cgroup writeback as cgwb_create() makes it, but of no cgroup */
static inline struct bdi_writeback *new_cgwb(struct kunit *test,
					     struct backing_dev_info *bdi)
{
	struct bdi_writeback *wb = kzalloc_obj(*wb);

	KUNIT_ASSERT_NOT_NULL(test, wb);
	KUNIT_ASSERT_EQ(test, 0, wb_init(wb, bdi_wb_ctx(bdi, 0), wb, GFP_KERNEL));
	KUNIT_ASSERT_EQ(test, 0, percpu_ref_init(&wb->refcnt, no_release, 0,
						 GFP_KERNEL));
	/* its flushers look for limits, of which the root has none */
	wb->memcg_css = bdi_root_wb(bdi)->memcg_css;
	wb->blkcg_css = bdi_root_wb(bdi)->blkcg_css;
	return wb;
}

static inline void free_cgwb(struct bdi_writeback *wb)
{
	cgwb_shutdown_ctx_wbs(wb);
	cgwb_free_ctx_wbs(wb);
	rcu_barrier();	/* percpu_ref_kill() goes on until then */
	percpu_ref_exit(&wb->refcnt);
	wb_exit(wb);
	kfree(wb);
}

#endif	/* CONFIG_CGROUP_WRITEBACK */

#endif	/* _BDI_WB_CGWB_FIXTURE_H */
