// SPDX-License-Identifier: GPL-2.0
/*
 * data_check FOLDER PROCESSES OPERATIONS SEED: does a file hold what was written to it, while flushers write it back?
 *
 * Each process has a file of its own in FOLDER and a shadow of it in memory, and changes both at random: ordinary and
 * mapped writes, holes, ranges zeroed, collapsed and inserted, truncation; in between it reads, ordinarily and
 * mapped, syncs, and drops pages that are clean. What it reads must be what the shadow holds, and so must all of the file
 * at the end, read anew. Meanwhile the parent has everything written back, over and over, so that flushers
 * write-protect and clean pages that are being written through a mapping: what such a page loses is seen when
 * it has been dropped.
 *
 * Prints how often each operation was done, and the seed; operations that the filesystem does not know are left out. At the first
 * wrong byte it says where, and what was done last, and ends with status 1. The same arguments do the same.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 256 << 10, BLOCK = 4096, LONGEST = 64 << 10, SHOWN = 16, MAX_PROCESSES = 64, SYNC_US = 2000 };

enum kind {
	WRITE, MAP_WRITE, READ, MAP_READ, TRUNCATE, PUNCH, ZERO, COLLAPSE, INSERT, SYNC, SYNC_MAP, START, DROP, KINDS
};

static const char *const names[KINDS] = {
	"write", "mapped write", "read", "mapped read", "truncate", "punch", "zero", "collapse", "insert", "sync",
	"mapped sync", "start of writeback", "drop",
};

/* Of so many operations: writes prevail, so that there is always something to lose. */
static const unsigned int weights[KINDS] = {
	[WRITE] = 12, [MAP_WRITE] = 24, [READ] = 12, [MAP_READ] = 12, [TRUNCATE] = 4, [PUNCH] = 6, [ZERO] = 4,
	[COLLAPSE] = 4, [INSERT] = 4, [SYNC] = 2, [SYNC_MAP] = 2, [START] = 8, [DROP] = 6,
};

struct counts {
	_Atomic long done[KINDS];
};

static struct counts *counts;		/* of all processes */

/* One process's file. */
static int fd;
static int number;
static char *map;
static unsigned char shadow[MOST], seen[MOST];
static long size;
static uint64_t state;
static char history[SHOWN][80];
static long operation;

static void fail(const char *what)
{
	fprintf(stderr, "file %d, operation %ld: %s: %s\n", number, operation, what, strerror(errno));
	exit(1);
}

/* splitmix64 */
static uint64_t any(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static long below(long limit)
{
	return any() % limit;
}

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void note(const char *format, ...)
{
	char *line = history[operation % SHOWN];
	int used = snprintf(line, sizeof(history[0]), "%ld ", operation);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + used, sizeof(history[0]) - used, format, arguments);
	va_end(arguments);
}

static void compare(const char *how, const void *found, long start, long length)
{
	const unsigned char *bytes = found;
	long first = 0, wrong = 0;

	if (!memcmp(bytes, shadow + start, length))
		return;
	for (long i = length - 1; i >= 0; i--)
		if (bytes[i] != shadow[start + i]) {
			first = i;
			wrong++;
		}
	fprintf(stderr, "file %d, operation %ld: %s finds %ld wrong bytes, the first at %ld of %ld: %u instead of %u\n",
		number, operation, how, wrong, start + first, size, bytes[first], shadow[start + first]);
	for (long i = operation < SHOWN ? 0 : operation - SHOWN + 1; i <= operation; i++)
		fprintf(stderr, "  %s\n", history[i % SHOWN]);
	exit(1);
}

static void compare_size(void)
{
	struct stat stat;

	if (fstat(fd, &stat))
		fail("fstat");
	if (stat.st_size != size) {
		fprintf(stderr, "file %d, operation %ld: %ld bytes long instead of %ld\n", number, operation,
			(long)stat.st_size, size);
		exit(1);
	}
}

static void grow(long to)
{
	if (to <= size)
		return;
	if (ftruncate(fd, to))
		fail("ftruncate");
	size = to;
}

static void fill(unsigned char *to, long length)
{
	for (long i = 0; i < length; i += 8) {
		uint64_t word = any();

		memcpy(to + i, &word, length - i < 8 ? length - i : 8);
	}
}

static void read_back(const char *how, long start, long length)
{
	long got = pread(fd, seen, length, start);

	if (got < 0)
		fail("pread");
	if (got != length) {
		errno = ENODATA;
		fail("a read that ends early");
	}
	compare(how, seen, start, length);
}

/* The page cache lets go of what is clean, and begins to write what is not. */
static void drop(void)
{
	if (madvise(map, MOST, MADV_DONTNEED))
		fail("madvise");
	errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (errno)
		fail("posix_fadvise");
}

/* Returns 0 where the filesystem does not know the operation. */
static int allocate(int mode, long start, long length)
{
	if (!fallocate(fd, mode, start, length))
		return 1;
	if (errno != EOPNOTSUPP)
		fail("fallocate");
	return 0;
}

/* Returns 0 where nothing was done. */
static int change(enum kind kind)
{
	long start = below(MOST), length = 1 + below(LONGEST);
	long blocks = size / BLOCK;

	switch (kind) {
	case WRITE:
	case MAP_WRITE:
		length = length < MOST - start ? length : MOST - start;
		note("%s %ld +%ld", names[kind], start, length);
		if (kind == MAP_WRITE)
			grow(start + length);
		fill(shadow + start, length);
		if (kind == MAP_WRITE)
			memcpy(map + start, shadow + start, length);
		else if (pwrite(fd, shadow + start, length, start) != length)
			fail("pwrite");
		size = size > start + length ? size : start + length;
		return 1;
	case TRUNCATE:
		note("truncate from %ld to %ld", size, start);
		if (ftruncate(fd, start))
			fail("ftruncate");
		memset(shadow + start, 0, MOST - start);
		size = start;
		return 1;
	case PUNCH:
	case ZERO:
		length = length < MOST - start ? length : MOST - start;
		note("%s %ld +%ld", names[kind], start, length);
		if (!allocate((kind == PUNCH ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE) | FALLOC_FL_KEEP_SIZE, start,
			      length))
			return 0;
		memset(shadow + start, 0, length);
		return 1;
	case COLLAPSE:
		if (blocks < 2)
			return 0;
		/* It must end before the file does. */
		start = below(blocks - 1);
		length = 1 + below(blocks - 1 - start);
		length = length < LONGEST / BLOCK ? length : LONGEST / BLOCK;
		start *= BLOCK;
		length *= BLOCK;
		if (start + length >= size)
			return 0;
		note("collapse %ld +%ld of %ld", start, length, size);
		if (!allocate(FALLOC_FL_COLLAPSE_RANGE, start, length))
			return 0;
		memmove(shadow + start, shadow + start + length, MOST - start - length);
		size -= length;
		memset(shadow + size, 0, MOST - size);
		return 1;
	case INSERT:
		length = (MOST - size) / BLOCK;
		if (blocks < 1 || length < 1)
			return 0;
		start = below(blocks) * BLOCK;
		length = (1 + below(length < LONGEST / BLOCK ? length : LONGEST / BLOCK)) * BLOCK;
		note("insert %ld +%ld into %ld", start, length, size);
		if (!allocate(FALLOC_FL_INSERT_RANGE, start, length))
			return 0;
		memmove(shadow + start + length, shadow + start, size - start);
		memset(shadow + start, 0, length);
		size += length;
		return 1;
	case READ:
	case MAP_READ:
		if (!size)
			return 0;
		start = below(size);
		length = length < size - start ? length : size - start;
		note("%s %ld +%ld", names[kind], start, length);
		if (kind == READ)
			read_back("a read", start, length);
		else
			compare("a look at the mapping", map + start, start, length);
		return 1;
	case SYNC:
		note("fdatasync");
		if (fdatasync(fd))
			fail("fdatasync");
		return 1;
	case SYNC_MAP:
		note("msync");
		if (msync(map, MOST, MS_SYNC))
			fail("msync");
		return 1;
	case START:
		note("sync_file_range");
		if (sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE))
			fail("sync_file_range");
		return 1;
	case DROP:
		note("drop");
		drop();
		return 1;
	default:
		return 0;
	}
}

static enum kind pick(void)
{
	unsigned int sum = 0, at;
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		sum += weights[kind];
	at = below(sum);
	for (kind = 0; at >= weights[kind]; kind++)
		at -= weights[kind];
	return kind;
}

static void work(const char *folder, long operations)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/data.%d", folder, number);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		fail(path);
	map = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail("mmap");
	for (operation = 0; operation < operations; operation++) {
		enum kind kind = pick();

		if (change(kind))
			atomic_fetch_add(&counts->done[kind], 1);
		else
			note("%s: nothing to do", names[kind]);
		compare_size();
	}
	note("the end");
	read_back("the last read", 0, size);
	if (fsync(fd))
		fail("fsync");
	if (munmap(map, MOST))
		fail("munmap");
	errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (errno)
		fail("posix_fadvise");
	read_back("a read of what is on the device", 0, size);
	exit(0);
}

int main(int argc, char **argv)
{
	long processes, operations, seed;
	int folder, status = 0;
	pid_t parent = getpid();

	if (argc != 5 || (processes = atol(argv[2])) < 1 || processes > MAX_PROCESSES || (operations = atol(argv[3])) < 1) {
		fprintf(stderr, "usage: data_check FOLDER PROCESSES OPERATIONS SEED\n");
		return 2;
	}
	seed = atol(argv[4]);
	folder = open(argv[1], O_RDONLY | O_DIRECTORY);
	if (folder < 0)
		fail(argv[1]);
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED)
		fail("mmap");
	for (number = 0; number < processes; number++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (!pid) {
			/* At the first fault the parent ends, and with it all others; it may have ended by now. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				exit(1);
			state = seed * 1000003 + number;
			work(argv[1], operations);
		}
	}
	for (long left = processes; left && !status;) {
		if (waitpid(-1, &status, WNOHANG) > 0) {
			left--;
		} else {
			if (syncfs(folder))
				fail("syncfs");
			usleep(SYNC_US);
		}
	}
	for (int kind = 0; kind < KINDS; kind++)
		printf("%s %ld, ", names[kind], (long)counts->done[kind]);
	printf("seed %ld: %s\n", seed, status ? "wrong data" : "every byte is as written");
	return status ? 1 : 0;
}
