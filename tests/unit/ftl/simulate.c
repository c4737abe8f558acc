// SPDX-License-Identifier: GPL-2.0
/*
 * simulate PAGES UNIT_PAGES OP_PERCENT [HOT_PERCENT HOT_WRITES_PERCENT]: the write amplification of
 * random writes of one page, on labblk's own flash translation layer, once it does not change any
 * more. They are uniform, or HOT_WRITES_PERCENT of them are uniform in the first HOT_PERCENT of the
 * pages, and the others in the rest.
 */
#include <linux/kernel.h>
#include <stdio.h>

#include "ftl.h"

/* times that the whole device is written before, and while, the pages are counted */
#define WARM_UP 4
#define COUNTED 4

/* Cold pages are written seldom, so it takes longer until they are where they belong. */
#define MIXED 8

static u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static u32 next_page(u64 *state, u32 pages, u32 hot, u32 hot_writes)
{
	if (next_random(state) % 100 < hot_writes)
		return next_random(state) % hot;

	return hot + next_random(state) % (pages - hot);
}

int main(int argc, char **argv)
{
	u64 host[2], media[2], state = 88172645463325252;
	u32 pages, hot = 0, hot_writes = 0, rounds = 1;
	struct labblk_ftl ftl;

	if (argc != 4 && argc != 6)
		return 2;
	pages = atol(argv[1]);
	if (argc == 6) {
		hot = (u64)pages * atol(argv[4]) / 100;
		hot_writes = atol(argv[5]);
		rounds = MIXED;
	}
	if (labblk_ftl_init(&ftl, pages, atol(argv[2]), atol(argv[3]), 0))
		return 1;
	for (u32 page = 0; page < pages; page++)
		labblk_ftl_write(&ftl, page, 1, 0);
	for (u64 i = 0; i < (u64)pages * rounds * (WARM_UP + COUNTED); i++) {
		if (i == (u64)pages * rounds * WARM_UP)
			labblk_ftl_counts(&ftl, &host[0], &media[0]);
		labblk_ftl_write(&ftl, next_page(&state, pages, hot, hot_writes), 1, 0);
	}
	labblk_ftl_counts(&ftl, &host[1], &media[1]);
	printf("%.6f\n", (double)(media[1] - media[0]) / (host[1] - host[0]));
	labblk_ftl_free(&ftl);
	return 0;
}
