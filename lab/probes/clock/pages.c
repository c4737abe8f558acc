// SPDX-License-Identifier: GPL-2.0
/*
 * pages DEVICE JOBS PAGES: direct writes of 4 KiB, so many in all, by so many processes at once; prints pages a second.
 *
 * The first tenth does not count: the processes start one by one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

enum { PAGE = 4096, SPAN = 1024 };

struct shared {
	_Atomic long done;
	int64_t begin_ns, end_ns;
};

static void job(struct shared *shared, const char *device, long number, long pages)
{
	int fd = open(device, O_WRONLY | O_DIRECT);
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || page == MAP_FAILED)
		fail(device);
	for (long i = 0;; i++) {
		long done;

		if (pwrite(fd, page, PAGE, (number * SPAN + i % SPAN) * PAGE) != PAGE)
			fail("pwrite");
		done = atomic_fetch_add(&shared->done, 1);
		if (done == pages / 10)
			shared->begin_ns = now_ns();
		if (done == pages)
			shared->end_ns = now_ns();
		if (done >= pages)
			exit(0);
	}
}

int main(int argc, char **argv)
{
	struct shared *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status, failed = 0;
	long jobs, pages;

	if (argc != 4 || (jobs = atol(argv[2])) < 1 || (pages = atol(argv[3])) < 10) {
		fprintf(stderr, "usage: pages DEVICE JOBS PAGES\n");
		return 2;
	}
	if (shared == MAP_FAILED)
		fail("mmap");
	for (long number = 0; number < jobs; number++)
		if (!fork())
			job(shared, argv[1], number, pages);
	while (wait(&status) > 0)
		failed |= status;
	if (failed)
		return 1;
	printf("%.1f\n", (pages - pages / 10) / ((shared->end_ns - shared->begin_ns) / 1e9));
	return 0;
}
