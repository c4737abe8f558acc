// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of which writeback context an inode gets.
 */

#include "../bdi-writeback-ctx.h"
#include "bdi_wb_affinity_fixture.h"

static const struct super_operations indifferent;

static void filesystem_decides(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	KUNIT_EXPECT_EQ(test, 2, wb_affinity_index(&fixture->inode));
}

static void inode_number_decides_otherwise(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->sb.s_op = &indifferent;
	KUNIT_EXPECT_EQ(test, 1, wb_affinity_index(&fixture->inode));
}

static void filesystem_limits_the_contexts(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->sb.s_op = &modest;
	KUNIT_EXPECT_EQ(test, 0, wb_affinity_index(&fixture->inode));
	fixture->inode.i_wb = wb_of(test, 3);
	KUNIT_EXPECT_EQ(test, 0, wb_affinity_index(&fixture->inode));
	set_affinity(test, WB_AFFINITY_INO);
	fixture->inode.i_ino = 11;
	KUNIT_EXPECT_EQ(test, 3, wb_affinity_index(&fixture->inode));
}

static void one_context_needs_no_choice(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->sb.s_op = &unasked;
	fixture->bdi->nr_wb_ctx = 1;
	KUNIT_EXPECT_EQ(test, 0, wb_affinity_index(&fixture->inode));
}

static void attached_inode_stays(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	fixture->inode.i_wb = wb_of(test, 3);
	KUNIT_EXPECT_EQ(test, 3, wb_affinity_index(&fixture->inode));
	set_affinity(test, WB_AFFINITY_LEAST_LOADED);
	KUNIT_EXPECT_EQ(test, 3, wb_affinity_index(&fixture->inode));
	set_affinity(test, WB_AFFINITY_ROTOR);
	KUNIT_EXPECT_EQ(test, 3, wb_affinity_index(&fixture->inode));
	fixture->bdi->nr_wb_ctx = 3;
	KUNIT_EXPECT_GT(test, 3, wb_affinity_index(&fixture->inode));
}

static void rotor_takes_turns(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;
	unsigned int first;

	set_affinity(test, WB_AFFINITY_ROTOR);
	first = wb_affinity_index(&fixture->inode);
	for (int i = 1; i <= NR_CTX; i++)
		KUNIT_EXPECT_EQ(test, (first + i) % NR_CTX,
				wb_affinity_index(&fixture->inode));
}

static void least_loaded_is_found(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;

	set_affinity(test, WB_AFFINITY_LEAST_LOADED);
	for (int i = 0; i < NR_CTX; i++) {
		wb_dirty_io_start(wb_of(test, i));
		if (i != 1)
			set_bit(WB_writeback_running, &wb_of(test, i)->state);
	}
	KUNIT_EXPECT_EQ(test, 1, wb_affinity_index(&fixture->inode));

	clear_bit(WB_writeback_running, &wb_of(test, 3)->state);
	wb_dirty_io_end(wb_of(test, 3));
	KUNIT_EXPECT_EQ(test, 3, wb_affinity_index(&fixture->inode));

	wb_dirty_io_start(wb_of(test, 3));
	for (int i = 0; i < NR_CTX; i++) {
		clear_bit(WB_writeback_running, &wb_of(test, i)->state);
		wb_dirty_io_end(wb_of(test, i));
	}
}

/* with all writers in cgroups nothing is dirty in the root's writebacks */
static void least_loaded_counts_cgroups(struct kunit *test)
{
	struct wb_affinity_fixture *fixture = test->priv;
	struct bdi_writeback *cgwb;

	cgwb = kunit_kcalloc(test, NR_CTX, sizeof(*cgwb), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cgwb);
	set_affinity(test, WB_AFFINITY_LEAST_LOADED);
	for (int i = 0; i < NR_CTX; i++) {
		wb_init_ctx(&cgwb[i], bdi_wb_ctx(fixture->bdi, i), &cgwb[0]);
		if (i != 2)
			wb_dirty_io_start(&cgwb[i]);
	}
	for (int i = 0; i < NR_CTX; i++)
		KUNIT_EXPECT_EQ(test, 2, wb_affinity_index(&fixture->inode));

	for (int i = 0; i < NR_CTX; i++)
		if (i != 2)
			wb_dirty_io_end(&cgwb[i]);
}

static void policy_is_shown_and_set(struct kunit *test)
{
	bool extra = IS_ENABLED(CONFIG_BDI_WRITEBACK_EXTRA_POLICIES);
	struct wb_affinity_fixture *fixture = test->priv;
	struct device_attribute *attr = &dev_attr_wb_affinity;
	char *page = (char *)get_zeroed_page(GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	attr->show(&fixture->dev, attr, page);
	KUNIT_EXPECT_STREQ(test, page, extra ? "[fs] ino rotor least-loaded\n" :
					       "[fs] ino\n");
	KUNIT_EXPECT_EQ(test, extra ? 6 : -EINVAL,
			attr->store(&fixture->dev, attr, "rotor\n", 6));
	KUNIT_EXPECT_EQ(test, 4, attr->store(&fixture->dev, attr, "ino\n", 4));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			attr->store(&fixture->dev, attr, "random", 6));
	KUNIT_EXPECT_EQ(test, -EINVAL, attr->store(&fixture->dev, attr, "", 0));
	attr->show(&fixture->dev, attr, page);
	KUNIT_EXPECT_STREQ(test, page, extra ? "fs [ino] rotor least-loaded\n" :
					       "fs [ino]\n");
	free_page((unsigned long)page);
}

static struct kunit_case wb_affinity_test_cases[] = {
	KUNIT_CASE(filesystem_decides),
	KUNIT_CASE(inode_number_decides_otherwise),
	KUNIT_CASE(filesystem_limits_the_contexts),
	KUNIT_CASE(one_context_needs_no_choice),
	KUNIT_CASE(attached_inode_stays),
	KUNIT_CASE(rotor_takes_turns),
	KUNIT_CASE(least_loaded_is_found),
	KUNIT_CASE(least_loaded_counts_cgroups),
	KUNIT_CASE(policy_is_shown_and_set),
	{}
};

static struct kunit_suite wb_affinity_test_suite = {
	.name = "bdi_wb_affinity",
	.init = wb_affinity_test_init,
	.test_cases = wb_affinity_test_cases,
};

kunit_test_suite(wb_affinity_test_suite);

MODULE_DESCRIPTION("KUnit tests of the affinity of inodes to contexts");
MODULE_LICENSE("GPL");
