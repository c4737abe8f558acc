// SPDX-License-Identifier: GPL-2.0
/*
 * FS_IOC_WRITE_STREAM: what it takes, what it refuses and with which error, and
 * how long a stream lasts. Makes an XFS of its own, on a loop device.
 */
#define _GNU_SOURCE
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
#define DATA_BYTES 65536

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

TEST_F(write_stream, maximum_fits_the_device)
{
	EXPECT_LE(self->max, 255);
}

TEST_F(write_stream, new_file_has_none)
{
	EXPECT_EQ(0, get(self->fd));
}

TEST_F(write_stream, every_stream_is_taken)
{
	for (unsigned int stream = 0; stream <= self->max; stream++) {
		EXPECT_EQ(0, set(self->fd, stream));
		EXPECT_EQ(stream, get(self->fd));
	}
	EXPECT_EQ(0, set(self->fd, 0));
	EXPECT_EQ(0, get(self->fd));
}

TEST_F(write_stream, stream_is_the_inodes)
{
	int same = open_file(self->mnt, "file", O_RDONLY);
	int other = open_file(self->mnt, "other", O_RDWR | O_CREAT);

	EXPECT_EQ(0, set(self->fd, 2));
	EXPECT_EQ(2, get(same));
	EXPECT_EQ(0, get(other));
	close(same);
	close(other);
}

TEST_F(write_stream, above_the_maximum_is_refused)
{
	const uint32_t bad[] = { self->max + 1, 255 + 1 + 1, 1 << 16, UINT_MAX };

	EXPECT_EQ(0, set(self->fd, 1));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		EXPECT_EQ(EINVAL, set(self->fd, bad[i]));
	EXPECT_EQ(1, get(self->fd));
}

TEST_F(write_stream, anything_but_one_flag_is_refused)
{
	for (uint32_t flags = 0; flags < 16; flags++) {
		uint32_t value = 1;

		if (flags == GET_MAX || flags == GET || flags == SET)
			continue;
		EXPECT_EQ(EINVAL, call(self->fd, flags, &value, 0));
	}
	for (int bit = 3; bit < 32; bit++) {
		uint32_t value = 1;

		EXPECT_EQ(EINVAL, call(self->fd, 1U << bit, &value, 0));
		EXPECT_EQ(EINVAL, call(self->fd, 1U << bit | SET, &value, 0));
	}
	EXPECT_EQ(0, get(self->fd));
}

TEST_F(write_stream, reserved_field_is_refused)
{
	const uint32_t flags[] = { GET_MAX, GET, SET };

	for (int i = 0; i < 3; i++) {
		uint32_t value = 1;

		EXPECT_EQ(EINVAL, call(self->fd, flags[i], &value, 1));
		EXPECT_EQ(EINVAL, call(self->fd, flags[i], &value, 1ULL << 63));
	}
	EXPECT_EQ(0, get(self->fd));
}

TEST_F(write_stream, set_needs_a_descriptor_to_write_with)
{
	int fd = open_file(self->mnt, "file", O_RDONLY);
	uint32_t max = 0;

	EXPECT_EQ(EBADF, set(fd, 1));
	EXPECT_EQ(EBADF, set(fd, 0));
	EXPECT_EQ(0, get(fd));
	EXPECT_EQ(0, call(fd, GET_MAX, &max, 0));
	EXPECT_EQ(self->max, max);
	close(fd);
}

TEST_F(write_stream, only_regular_files_have_it)
{
	const char * const names[] = { ".", "fifo", "null" };
	int fd = memfd_create("tmpfs", MFD_CLOEXEC);
	char path[128];

	EXPECT_EQ(ENOTTY, set(fd, 1));
	EXPECT_EQ(-ENOTTY, get(fd));
	close(fd);

	snprintf(path, sizeof(path), "%s/fifo", self->mnt);
	ASSERT_EQ(0, mkfifo(path, 0600));
	snprintf(path, sizeof(path), "%s/null", self->mnt);
	ASSERT_EQ(0, mknod(path, S_IFCHR | 0600, 1 << 8 | 3));
	for (int i = 0; i < 3; i++) {
		fd = open_file(self->mnt, names[i], O_RDONLY | O_NONBLOCK);
		ASSERT_LE(0, fd);
		EXPECT_EQ(ENOTTY, set(fd, 1));
		EXPECT_EQ(-ENOTTY, get(fd));
		close(fd);
	}

	fd = open_file(self->mnt, "file", O_PATH);
	EXPECT_EQ(EBADF, set(fd, 1));
	close(fd);
}

TEST_F(write_stream, argument_must_be_there)
{
	long page = sysconf(_SC_PAGESIZE);
	void *arg = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT_EQ(-1, ioctl(self->fd, FS_IOC_WRITE_STREAM, NULL));
	EXPECT_EQ(EFAULT, errno);

	/* can be read, and cannot be answered */
	ASSERT_NE(MAP_FAILED, arg);
	ASSERT_EQ(0, mprotect(arg, page, PROT_READ | PROT_WRITE));
	((struct fs_write_stream *)arg)->op_flags = GET;
	ASSERT_EQ(0, mprotect(arg, page, PROT_READ));
	EXPECT_EQ(-1, ioctl(self->fd, FS_IOC_WRITE_STREAM, arg));
	EXPECT_EQ(EFAULT, errno);
	munmap(arg, page);
}

TEST_F(write_stream, dirty_pages_are_kept)
{
	char out[DATA_BYTES], in[DATA_BYTES];

	for (unsigned int stream = 1; stream <= 2; stream++) {
		memset(out, 'a' + stream, sizeof(out));
		ASSERT_EQ(DATA_BYTES, pwrite(self->fd, out, sizeof(out), 0));
		EXPECT_EQ(0, set(self->fd, stream));
		EXPECT_EQ(stream, get(self->fd));
		ASSERT_EQ(0, fsync(self->fd));
		ASSERT_EQ(0, posix_fadvise(self->fd, 0, 0, POSIX_FADV_DONTNEED));
		ASSERT_EQ(DATA_BYTES, pread(self->fd, in, sizeof(in), 0));
		EXPECT_EQ(0, memcmp(in, out, sizeof(in)));
	}
}

TEST_F(write_stream, stream_is_not_on_disk)
{
	EXPECT_EQ(0, set(self->fd, 1));
	close(self->fd);
	ASSERT_EQ(0, umount(self->mnt));
	self->mounted = mount_image(self->dir);
	ASSERT_TRUE(self->mounted);
	self->fd = open_file(self->mnt, "file", O_RDWR);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(0, get(self->fd));
}

/* XFS keeps inodes for a while after they are evicted, and hands them out again. */
TEST_F(write_stream, next_file_with_the_inode_has_none)
{
	struct stat before, after;

	EXPECT_EQ(0, set(self->fd, 1));
	ASSERT_EQ(0, fstat(self->fd, &before));
	close(self->fd);
	ASSERT_EQ(0, run("rm %s/mnt/file", self->dir));
	for (int i = 0; i < 64; i++) {
		char name[16];

		snprintf(name, sizeof(name), "next%d", i);
		self->fd = open_file(self->mnt, name, O_RDWR | O_CREAT);
		ASSERT_LE(0, self->fd);
		EXPECT_EQ(0, get(self->fd));
		ASSERT_EQ(0, fstat(self->fd, &after));
		if (after.st_ino == before.st_ino)
			return;
		close(self->fd);
		self->fd = 0;
	}
}

TEST_HARNESS_MAIN
