/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A filesystem with an opinion on four contexts, and two of its inodes, for KUnit
 * tests of affinity.
 */
#ifndef _BDI_WB_AFFINITY_FIXTURE_H
#define _BDI_WB_AFFINITY_FIXTURE_H

#include <kunit/test-bug.h>
#include "bdi_wb_fixture.h"

#define NR_CTX	4
/* what a flusher writes at least of an inode before it takes the next */
#define CHUNK	1024

struct wb_affinity_fixture {
	struct backing_dev_info *bdi;
	struct super_block sb;
	struct inode inode;
	struct inode other;
	struct device dev;
};

static inline unsigned int by_generation(struct inode *inode, int nr_wb_ctx)
{
	return inode->i_generation % nr_wb_ctx;
}

static inline int two_at_most(struct super_block *sb)
{
	return 2;
}

static const struct super_operations opinionated = {
	.get_inode_wb_ctx_idx = by_generation,
};

static const struct super_operations modest = {
	.get_inode_wb_ctx_idx = by_generation,
	.get_max_wb_ctx = two_at_most,
};

static inline unsigned int nobody_asks(struct inode *inode, int nr_wb_ctx)
{
	KUNIT_FAIL(kunit_get_current_test(), "the filesystem was asked");
	return 0;
}

static const struct super_operations unasked = {
	.get_inode_wb_ctx_idx = nobody_asks,
};

/* a filesystem with an opinion on four contexts, and an inode without one */
static inline int wb_affinity_test_init(struct kunit *test)
{
	struct wb_affinity_fixture *fixture;

	fixture = kunit_kzalloc(test, sizeof(*fixture), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, fixture);
	fixture->bdi = make_bdi(test);

	fixture->bdi->max_wb_ctx = NR_CTX;
	fixture->bdi->nr_wb_ctx = NR_CTX;
	fixture->sb.s_op = &opinionated;
	fixture->sb.s_bdi = fixture->bdi;
	fixture->sb.s_min_writeback_pages = CHUNK;
	sb_enable_wb_ctx(&fixture->sb);
	for (int i = 0; i < NR_CTX; i++)
		bdi_fetch_wb_ctx(fixture->bdi, i);

	fixture->inode.i_sb = &fixture->sb;
	fixture->inode.i_ino = 9;
	fixture->inode.i_generation = 2;
	fixture->inode.i_mapping = &fixture->inode.i_data;
	fixture->inode.i_data.nrpages = CHUNK;
	INIT_LIST_HEAD(&fixture->inode.i_io_list);
	INIT_LIST_HEAD(&fixture->other.i_io_list);
	dev_set_drvdata(&fixture->dev, fixture->bdi);
	test->priv = fixture;
	return 0;
}

static inline struct bdi_writeback *wb_of(struct kunit *test, unsigned int index)
{
	struct wb_affinity_fixture *fixture = test->priv;

	return &bdi_wb_ctx(fixture->bdi, index)->wb;
}

static inline void set_affinity(struct kunit *test, enum wb_affinity affinity)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->bdi->wb_affinity = affinity;
}

#endif	/* _BDI_WB_AFFINITY_FIXTURE_H */
