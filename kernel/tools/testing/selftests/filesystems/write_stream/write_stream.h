/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An XFS of its own, on a loop device, and a file on it, for the tests of
 * FS_IOC_WRITE_STREAM.
 */
#ifndef _WRITE_STREAM_H
#define _WRITE_STREAM_H

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/write_stream.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../kselftest_harness.h"

#define GET_MAX FS_WRITE_STREAM_OP_GET_MAX
#define GET FS_WRITE_STREAM_OP_GET
#define SET FS_WRITE_STREAM_OP_SET
#define IMAGE_BYTES (512L << 20)

static_assert(sizeof(struct fs_write_stream) == 16, "the size is part of the ABI");

FIXTURE(write_stream) {
	char dir[32];
	char mnt[64];
	bool mounted;
	int fd;
	unsigned int max;
};

/* Returns the number of the error, 0 if there was none. */
static int call(int fd, uint32_t flags, uint32_t *value, uint64_t reserved)
{
	struct fs_write_stream arg = {
		.op_flags = flags,
		.stream_id = *value,
		.__reserved = reserved,
	};
	int error = ioctl(fd, FS_IOC_WRITE_STREAM, &arg) ? errno : 0;

	*value = arg.stream_id;
	return error;
}

static int set(int fd, uint32_t stream)
{
	return call(fd, SET, &stream, 0);
}

static long get(int fd)
{
	uint32_t stream = UINT_MAX;
	int error = call(fd, GET, &stream, 0);

	return error ? -error : (long)stream;
}

static int run(const char *format, const char *dir)
{
	char command[512];

	snprintf(command, sizeof(command), format, dir);
	return system(command);
}

/*
 * mount -o loop may have the device open for writing while it mounts, which a
 * kernel without BLK_DEV_WRITE_MOUNTED refuses. The device goes with the mount.
 */
static bool mount_image(const char *dir)
{
	return !run("cd %s && loop=$(losetup -f --show image) && { "
		    "mount $loop mnt; status=$?; losetup -d $loop; exit $status; }",
		    dir);
}

static int open_file(const char *mnt, const char *name, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", mnt, name);
	return open(path, flags | O_CLOEXEC, 0600);
}

static void clean_up(const char *dir, const char *mnt, int fd)
{
	if (fd > 0)
		close(fd);
	umount(mnt);
	run("rm -r %s", dir);
}

FIXTURE_SETUP(write_stream)
{
	uint32_t max = 0;

	if (geteuid())
		SKIP(return, "needs root");
	if (run("command -v mkfs.xfs >/dev/null%s", ""))
		SKIP(return, "needs mkfs.xfs");

	strcpy(self->dir, "/tmp/write_stream.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->dir));
	snprintf(self->mnt, sizeof(self->mnt), "%s/mnt", self->dir);
	ASSERT_EQ(0, mkdir(self->mnt, 0700));
	self->fd = open_file(self->dir, "image", O_RDWR | O_CREAT);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ftruncate(self->fd, IMAGE_BYTES));
	close(self->fd);
	ASSERT_EQ(0, run("mkfs.xfs -q %s/image", self->dir));
	self->fd = 0;
	self->mounted = mount_image(self->dir);
	if (!self->mounted) {
		clean_up(self->dir, self->mnt, self->fd);
		SKIP(return, "needs XFS and a loop device");
	}

	self->fd = open_file(self->mnt, "file", O_RDWR | O_CREAT);
	ASSERT_LE(0, self->fd);
	if (call(self->fd, GET_MAX, &max, 0) == ENOTTY) {
		clean_up(self->dir, self->mnt, self->fd);
		SKIP(return, "needs write streams");
	}
	self->max = max;
	ASSERT_GE(self->max, 2);
}

FIXTURE_TEARDOWN(write_stream)
{
	clean_up(self->dir, self->mnt, self->fd);
}

#endif /* _WRITE_STREAM_H */
