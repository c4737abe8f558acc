// SPDX-License-Identifier: GPL-2.0
/*
 * FS_IOC_WRITE_STREAM: whose a stream is, and how long it lasts.
 */
#define _GNU_SOURCE
#include "write_stream.h"

#define DATA_BYTES 65536

TEST_F(write_stream, new_file_has_none)
{
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
