/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A BDI with writeback contexts, for KUnit tests.
 *
 * The filesystem is a bare super_block: the contexts look at nothing of it but
 * its BDI, its flags and its operations.
 */
#ifndef _BDI_WB_FIXTURE_H
#define _BDI_WB_FIXTURE_H

#include <kunit/resource.h>
#include <kunit/test.h>
#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/device.h>
#include <linux/fs.h>

struct wb_ctx_fixture {
	struct backing_dev_info *bdi;
	struct super_block sb;
	struct inode inode;
	struct device dev;
};

static inline void put_bdi(void *bdi)
{
	bdi_put(bdi);
}

/* a BDI that goes with the test */
static inline struct backing_dev_info *make_bdi(struct kunit *test)
{
	struct backing_dev_info *bdi = bdi_alloc(NUMA_NO_NODE);

	KUNIT_ASSERT_NOT_NULL(test, bdi);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, put_bdi, bdi));
	return bdi;
}

static inline int wb_ctx_test_init(struct kunit *test)
{
	static const struct super_operations no_operations;
	struct wb_ctx_fixture *fixture;

	fixture = kunit_kzalloc(test, sizeof(*fixture), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, fixture);
	fixture->sb.s_op = &no_operations;
	fixture->bdi = make_bdi(test);

	fixture->sb.s_bdi = fixture->bdi;
	fixture->inode.i_sb = &fixture->sb;
	dev_set_drvdata(&fixture->dev, fixture->bdi);
	test->priv = fixture;
	return 0;
}

static inline struct bdi_writeback_ctx *fetch(struct kunit *test, u64 ino)
{
	struct wb_ctx_fixture *fixture = test->priv;

	fixture->inode.i_ino = ino;
	return fetch_bdi_writeback_ctx(&fixture->inode);
}

/* mount with @nr contexts, and let all of them come */
static inline void enable(struct kunit *test, int nr)
{
	struct wb_ctx_fixture *fixture = test->priv;

	fixture->bdi->max_wb_ctx = 16;
	fixture->bdi->nr_wb_ctx = nr;
	sb_enable_wb_ctx(&fixture->sb);
	for (int i = 0; i < nr; i++)
		KUNIT_ASSERT_EQ(test, i, fetch(test, i)->index);
}

static inline unsigned int count_contexts(struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx;
	unsigned int count = 0;

	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
	     ctx = bdi_next_wb_ctx(bdi, ctx))
		count++;
	return count;
}

#endif	/* _BDI_WB_FIXTURE_H */
