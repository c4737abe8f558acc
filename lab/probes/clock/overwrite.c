// SPDX-License-Identifier: GPL-2.0
/*
 * overwrite JOBS MIB RAMP_MS WINDOW_MS KNOB VALUE...: what is written back while jobs overwrite cached files.
 *
 * Each job has a file of MIB MiB in a directory of its own, in the current one, and overwrites 4 KiB of it at random
 * for as long as the measurement takes. For each VALUE, written to KNOB first, one line: the MiB per second that
 * were written back in each tenth of the window, after a ramp that does not count. KNOB "-" is none. "begin" and "end" go
 * round each window: by them the host sees what it costs.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

enum { PAGE = 4096, MIB = 1 << 20, MAX_JOBS = 64, PARTS = 10 };

static char *block;		/* one MiB */

static int file_of(long number, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "job.%ld", number);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "job.%ld/file", number);
	fd = open(path, flags, 0644);
	if (fd < 0)
		fail(path);
	return fd;
}

/* Every block is allocated, written and in the page cache. */
static void make(long number, long mib)
{
	int fd = file_of(number, O_RDWR | O_CREAT | O_DIRECT);

	for (long i = 0; i < mib; i++)
		if (pwrite(fd, block, MIB, i * MIB) != MIB)
			fail("writing a file out");
	if (fsync(fd))
		fail("fsync");
	close(fd);
	fd = file_of(number, O_RDWR);
	while (read(fd, block, MIB) > 0)
		;
	exit(0);
}

static void job(long number, long mib)
{
	uint64_t random = 0x9e3779b97f4a7c15 * (number + 1);
	int fd = file_of(number, O_WRONLY);

	for (;;) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		if (pwrite(fd, block, PAGE, random % (mib * MIB / PAGE) * PAGE) != PAGE)
			fail("pwrite");
	}
}

static void all(long jobs, long mib, void (*work)(long number, long mib), pid_t *pids)
{
	for (long number = 0; number < jobs; number++) {
		pids[number] = fork();
		if (pids[number] < 0)
			fail("fork");
		if (!pids[number]) {
			work(number, mib);
			_exit(1);
		}
	}
}

/* Of all devices: not every driver of a device keeps statistics. */
static double written_mib(void)
{
	static char text[1 << 16];
	int fd = open("/proc/vmstat", O_RDONLY);
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *line;

	if (size < 0)
		fail("/proc/vmstat");
	close(fd);
	text[size] = 0;
	line = strstr(text, "\nnr_written ");
	if (!line)
		fail("nr_written");
	return strtod(line + strlen("\nnr_written "), NULL) * PAGE / MIB;
}

static void turn(const char *knob, const char *value)
{
	int fd = open(knob, O_WRONLY);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail(knob);
	close(fd);
}

static void measure(long ramp_ms, long window_ms)
{
	double mib, mib_s[PARTS];
	int64_t ns;

	usleep(ramp_ms * 1000);
	puts("begin");
	ns = now_ns();
	mib = written_mib();
	for (int part = 0; part < PARTS; part++) {
		double mib_now;
		int64_t ns_now;

		usleep(window_ms * 1000 / PARTS);
		ns_now = now_ns();
		mib_now = written_mib();
		mib_s[part] = (mib_now - mib) / ((ns_now - ns) / 1e9);
		ns = ns_now;
		mib = mib_now;
	}
	puts("end");
	for (int part = 0; part < PARTS; part++)
		printf("%.1f%c", mib_s[part], part < PARTS - 1 ? ' ' : '\n');
}

int main(int argc, char **argv)
{
	pid_t pids[MAX_JOBS];
	int status, failed = 0;
	long jobs, mib;

	if (argc < 7 || (jobs = atol(argv[1])) < 1 || jobs > MAX_JOBS || (mib = atol(argv[2])) < 1) {
		fprintf(stderr, "usage: overwrite JOBS MIB RAMP_MS WINDOW_MS KNOB VALUE...\n");
		return 2;
	}
	setlinebuf(stdout);
	block = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		fail("mmap");
	all(jobs, mib, make, pids);
	while (wait(&status) > 0)
		failed |= status;
	if (failed)
		return 1;
	sync();
	for (int value = 6; value < argc; value++) {
		if (strcmp(argv[5], "-"))
			turn(argv[5], argv[value]);
		all(jobs, mib, job, pids);
		measure(atol(argv[3]), atol(argv[4]));
		for (long number = 0; number < jobs; number++)
			kill(pids[number], SIGKILL);
		while (wait(&status) > 0)
			failed |= !WIFSIGNALED(status);
		if (failed)
			return 1;
		sync();
	}
	return 0;
}
