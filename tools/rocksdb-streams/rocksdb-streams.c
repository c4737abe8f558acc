// SPDX-License-Identifier: GPL-2.0
/*
 * LD_PRELOAD library that gives the files of an unchanged RocksDB write streams.
 *
 * RocksDB gives each file that it writes a life time hint, by fcntl(): SHORT to
 * its log, MEDIUM to levels 0 and 1, LONG to level 2, EXTREME to all that is
 * deeper. What a flush writes, which is level 0, comes from a thread of its
 * high-priority pool. So each gets a stream of its own:
 *
 *	1 log, 2 level 0, 3 level 1, 4 level 2, 5 deeper levels
 *
 * Files that get no hint, such as the manifest, get no stream. Where there are no
 * streams, all is as it was.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/write_stream.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#define FLUSHING_THREAD	"rocksdb:high"

enum stream { NONE, LOG, LEVEL_0, LEVEL_1, LEVEL_2, DEEPER };

static int in_flush(void)
{
	char name[16];

	return !pthread_getname_np(pthread_self(), name, sizeof(name)) &&
	       !strncmp(name, FLUSHING_THREAD, strlen(FLUSHING_THREAD));
}

static enum stream stream_of(uint64_t hint)
{
	switch (hint) {
	case RWH_WRITE_LIFE_SHORT:
		return LOG;
	case RWH_WRITE_LIFE_MEDIUM:
		return in_flush() ? LEVEL_0 : LEVEL_1;
	case RWH_WRITE_LIFE_LONG:
		return LEVEL_2;
	case RWH_WRITE_LIFE_EXTREME:
		return DEEPER;
	}
	return NONE;
}

/* An error is none of RocksDB's business: placement is no promise. */
static void set_stream(int fd, enum stream stream)
{
	struct fs_write_stream set = {
		.op_flags = FS_WRITE_STREAM_OP_SET,
		.stream_id = stream,
	};

	ioctl(fd, FS_IOC_WRITE_STREAM, &set);
}

int fcntl(int fd, int command, ...)
{
	int (*next)(int, int, ...) = dlsym(RTLD_NEXT, "fcntl");
	va_list arguments;
	void *argument;

	/* Every argument that fcntl() takes is passed like a pointer. */
	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);

	if (command == F_SET_RW_HINT)
		set_stream(fd, stream_of(*(uint64_t *)argument));
	return next(fd, command, argument);
}
