/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Places in the writeback code where a test can hold a task, so that another
 * one gets in between: see mm/tests/bdi_wb_test_point.c.
 */
#ifndef _LINUX_WB_TEST_POINT_H
#define _LINUX_WB_TEST_POINT_H

#ifdef CONFIG_BDI_WRITEBACK_TEST_POINTS
void wb_test_point(const char *name);
#else
static inline void wb_test_point(const char *name)
{
}
#endif

#endif	/* _LINUX_WB_TEST_POINT_H */
