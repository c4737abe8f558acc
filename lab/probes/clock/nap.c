// SPDX-License-Identifier: GPL-2.0
/* nap SECONDS: sleep, and print the ns that the clock moved on meanwhile. */
#define _GNU_SOURCE
#include "clock.h"

int main(int argc, char **argv)
{
	struct timespec length = { 0 };
	int64_t begin;

	if (argc != 2 || (length.tv_sec = atol(argv[1])) < 0) {
		fprintf(stderr, "usage: nap SECONDS\n");
		return 2;
	}
	begin = now_ns();
	if (nanosleep(&length, NULL))
		fail("nanosleep");
	printf("%lld\n", (long long)(now_ns() - begin));
	return 0;
}
