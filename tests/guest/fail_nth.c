// SPDX-License-Identifier: GPL-2.0
/*
 * fail_nth N write FILE TEXT | dirty FILE | mount DEVICE FOLDER TYPE
 *
 * One system call ("dirty": open() and write()) whose Nth allocation of memory fails, see Documentation/fault-injection.
 * Prints "N failed" and what the call came to, or "N none" where it makes fewer allocations than N. Nothing else of the
 * process counts: what the call needs is there before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

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

int main(int argc, char **argv)
{
	const char *op = argc > 3 ? argv[2] : "";
	int nth, fd = -1, result, error;
	char left[16] = "";
	ssize_t length;

	if (!strcmp(op, "write") && argc == 5)
		fd = opened(argv[3], O_WRONLY);
	else if (!(!strcmp(op, "dirty") && argc == 4) && !(!strcmp(op, "mount") && argc == 6)) {
		fprintf(stderr, "usage: fail_nth N write FILE TEXT | dirty FILE | mount DEVICE FOLDER TYPE\n");
		return 2;
	}
	nth = opened("/proc/self/fail-nth", O_RDWR);
	if (pwrite(nth, argv[1], strlen(argv[1]), 0) < 0)
		die("fail-nth");

	if (*op == 'w')
		result = write(fd, argv[4], strlen(argv[4]));
	else if (*op == 'd')
		result = (fd = open(argv[3], O_WRONLY | O_CREAT | O_EXCL, 0644)) < 0 ? fd : write(fd, "data", 4);
	else
		result = mount(argv[3], argv[4], argv[5], 0, NULL);
	error = result < 0 ? errno : 0;

	/* How many would have been made before the one that fails; 0: that one was made. */
	length = pread(nth, left, sizeof(left) - 1, 0);
	if (length < 0)
		die("fail-nth");
	if (pwrite(nth, "0", 1, 0) < 0)
		die("fail-nth");
	printf("%s %s: %s\n", argv[1], atoi(left) ? "none" : "failed", error ? strerror(error) : "done");
	return 0;
}
