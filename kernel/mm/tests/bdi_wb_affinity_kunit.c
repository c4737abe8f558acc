// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the affinity of inodes to writeback contexts.
 */

#include <kunit/test.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/fs.h>

static unsigned int by_generation(struct inode *inode, int nr_wb_ctx)
{
	return inode->i_generation;
}

static const struct super_operations opinionated = {
	.get_inode_wb_ctx_idx = by_generation,
};

static const struct super_operations indifferent;

static void filesystem_decides(struct kunit *test)
{
	struct super_block sb = { .s_op = &opinionated };
	struct inode inode = { .i_sb = &sb, .i_ino = 8, .i_generation = 3 };

	KUNIT_EXPECT_EQ(test, 3, wb_affinity_index(&inode, 4));
}

static void inode_number_decides_otherwise(struct kunit *test)
{
	struct super_block sb = { .s_op = &indifferent };
	struct inode inode = { .i_sb = &sb, .i_ino = 10, .i_generation = 3 };

	KUNIT_EXPECT_EQ(test, 2, wb_affinity_index(&inode, 4));
}

static struct kunit_case wb_affinity_test_cases[] = {
	KUNIT_CASE(filesystem_decides),
	KUNIT_CASE(inode_number_decides_otherwise),
	{}
};

static struct kunit_suite wb_affinity_test_suite = {
	.name = "bdi_wb_affinity",
	.test_cases = wb_affinity_test_cases,
};

kunit_test_suite(wb_affinity_test_suite);

MODULE_DESCRIPTION("KUnit tests of the affinity of inodes to contexts");
MODULE_LICENSE("GPL");
