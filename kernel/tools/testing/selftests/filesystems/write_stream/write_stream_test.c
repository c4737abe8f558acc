// SPDX-License-Identifier: GPL-2.0
/*
 * FS_IOC_WRITE_STREAM: what it takes, what it refuses and with which error.
 */
#define _GNU_SOURCE
#include "write_stream.h"

TEST_F(write_stream, maximum_fits_the_device)
{
	EXPECT_LE(self->max, 255);
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

TEST_HARNESS_MAIN
