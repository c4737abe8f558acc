// SPDX-License-Identifier: GPL-2.0
/* write_log PATH: append a line to a log that is kept apart from other files */
#include <fcntl.h>
#include <linux/write_stream.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct fs_write_stream max = { .op_flags = FS_WRITE_STREAM_OP_GET_MAX };
	struct fs_write_stream log = { .op_flags = FS_WRITE_STREAM_OP_SET, .stream_id = 1 };
	int fd = argc > 1 ? open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0644) : -1;

	if (fd < 0) {
		perror("usage: write_log PATH");
		return 1;
	}
	/* Placement is no promise: without streams all works as before. */
	if (!ioctl(fd, FS_IOC_WRITE_STREAM, &max) && max.max_streams &&
	    ioctl(fd, FS_IOC_WRITE_STREAM, &log))
		perror("write stream 1");
	/* From here on the file's blocks are those of stream 1, while it is open. */
	if (write(fd, "a line\n", 7) != 7 || fsync(fd)) {
		perror(argv[1]);
		return 1;
	}
	return close(fd);
}
