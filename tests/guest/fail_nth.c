// SPDX-License-Identifier: GPL-2.0
/*
 * fail_nth N OPERATION, which is one of: write FILE TEXT | dirty FILE | store FILE | mount DEVICE FOLDER TYPE |
 *                                        umount FOLDER | sync | syncfs FILE | fsync FILE
 *
 * One system call ("dirty": open() and write(); "store": to a mapped page) whose Nth allocation of memory
 * fails, see Documentation/fault-injection. Prints "N failed" and what the call came to, or "N none" where it
 * makes fewer allocations than N. With "every" for N all fail that the kernel's settings let fail for a task
 * that is made to. Nothing else of the process counts: what the call needs is there before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

static sigjmp_buf refused;

static void die(const char *what)
{
	fprintf(stderr, "fail_nth: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int opened(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	if (fd < 0)
		die(path);
	return fd;
}

static void refuse(int number)
{
	(void)number;
	siglongjmp(refused, 1);
}

static char *page;

/* What is there before the call. */
static int prepared(const char *op, char **words)
{
	int fd;

	if (!strcmp(op, "write"))
		return opened(words[0], O_WRONLY);
	if (!strcmp(op, "syncfs") || !strcmp(op, "fsync"))
		return opened(words[0], O_RDONLY);
	if (strcmp(op, "store"))
		return -1;
	fd = opened(words[0], O_RDWR);
	page = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED || signal(SIGBUS, refuse) == SIG_ERR)
		die(words[0]);
	return fd;
}

static int called(const char *op, char **words, int fd)
{
	if (!strcmp(op, "write"))
		return write(fd, words[1], strlen(words[1]));
	if (!strcmp(op, "dirty")) {
		fd = open(words[0], O_WRONLY | O_CREAT | O_EXCL, 0644);
		return fd < 0 ? fd : write(fd, "data", 4);
	}
	if (!strcmp(op, "store")) {
		if (sigsetjmp(refused, 1)) {
			errno = EFAULT;
			return -1;
		}
		memcpy(page, "data", 4);
		return 0;
	}
	if (!strcmp(op, "mount"))
		return mount(words[0], words[1], words[2], 0, NULL);
	if (!strcmp(op, "umount"))
		return umount(words[0]);
	if (!strcmp(op, "sync")) {
		sync();
		return 0;
	}
	if (!strcmp(op, "syncfs"))
		return syncfs(fd);
	return fsync(fd);
}

/* How many words follow an operation. */
static const struct {
	const char *op;
	int words;
} known[] = {
	{ "write", 2 }, { "dirty", 1 }, { "store", 1 }, { "mount", 3 }, { "umount", 1 },
	{ "sync", 0 }, { "syncfs", 1 }, { "fsync", 1 },
};

static int is_known(int argc, char **argv)
{
	for (size_t i = 0; argc > 2 && i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(argv[2], known[i].op))
			return argc == 3 + known[i].words;
	return 0;
}

int main(int argc, char **argv)
{
	int knob, fd, every, error;
	char left[16] = "";
	const char *number;

	if (!is_known(argc, argv)) {
		fprintf(stderr, "usage: fail_nth N OPERATION, see fail_nth.c\n");
		return 2;
	}
	/* Its own pages, those of the stack too, which a fault would allocate. Not those that it is to store to. */
	if (mlockall(MCL_CURRENT))
		die("mlockall");
	fd = prepared(argv[2], argv + 3);
	every = !strcmp(argv[1], "every");
	number = every ? "1" : argv[1];
	knob = opened(every ? "/proc/self/make-it-fail" : "/proc/self/fail-nth", O_RDWR);
	if (pwrite(knob, number, strlen(number), 0) < 0)
		die("fail-nth");

	/* By the name a trace has the call apart from the rest. */
	prctl(PR_SET_NAME, "call");
	error = called(argv[2], argv + 3, fd) < 0 ? errno : 0;
	prctl(PR_SET_NAME, "fail_nth");

	/* How many would have been made before the one that fails; 0: that one was made. */
	if (!every && pread(knob, left, sizeof(left) - 1, 0) < 0)
		die("fail-nth");
	if (pwrite(knob, "0", 1, 0) < 0)
		die("fail-nth");
	printf("%s %s: %s\n", argv[1], atoi(left) ? "none" : "failed", error ? strerror(error) : "done");
	return 0;
}
