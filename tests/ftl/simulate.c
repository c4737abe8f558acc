// SPDX-License-Identifier: GPL-2.0
/*
 * simulate PAGES UNIT_PAGES OP_PERCENT: the write amplification of uniform random writes of one
 * page, on labblk's own flash translation layer, once it does not change any more.
 */
#include <linux/kernel.h>
#include <stdio.h>

#include "ftl.h"

/* times that the whole device is written before, and while, the pages are counted */
#define WARM_UP 4
#define COUNTED 4

static u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

int main(int argc, char **argv)
{
	u64 host[2], media[2], state = 88172645463325252;
	struct labblk_ftl ftl;
	u32 pages;

	if (argc != 4)
		return 2;
	pages = atol(argv[1]);
	if (labblk_ftl_init(&ftl, pages, atol(argv[2]), atol(argv[3]), 0))
		return 1;
	for (u32 page = 0; page < pages; page++)
		labblk_ftl_write(&ftl, page, 1, 0);
	for (u64 i = 0; i < (u64)pages * (WARM_UP + COUNTED); i++) {
		if (i == (u64)pages * WARM_UP)
			labblk_ftl_counts(&ftl, &host[0], &media[0]);
		labblk_ftl_write(&ftl, next_random(&state) % pages, 1, 0);
	}
	labblk_ftl_counts(&ftl, &host[1], &media[1]);
	printf("%.6f\n", (double)(media[1] - media[0]) / (host[1] - host[0]));
	labblk_ftl_free(&ftl);
	return 0;
}
