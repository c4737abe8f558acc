/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Write streams: an application says which files belong together on storage,
 * and which apart, by giving them numbers.
 */
#ifndef _UAPI_LINUX_WRITE_STREAM_H
#define _UAPI_LINUX_WRITE_STREAM_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* op_flags is exactly one of these */
#define FS_WRITE_STREAM_OP_GET_MAX	(1 << 0)
#define FS_WRITE_STREAM_OP_GET		(1 << 1)
#define FS_WRITE_STREAM_OP_SET		(1 << 2)

/**
 * struct fs_write_stream - argument of FS_IOC_WRITE_STREAM
 * @op_flags: what to do, an FS_WRITE_STREAM_OP_*
 * @stream_id: in (SET) or out (GET), the stream of the file; 0 is none. GET says
 *	what is in effect: 0 while the maximum is below what was set
 * @max_streams: out (GET_MAX), the greatest stream that the file can be given;
 *	at most 255, and 0 where there are no streams now
 * @__reserved: must be 0
 */
struct fs_write_stream {
	__u32 op_flags;
	union {
		__u32 stream_id;
		__u32 max_streams;
	};
	__u64 __reserved;
};

/* shares its number, but not its size, with FS_IOC_READ_VERITY_METADATA */
#define FS_IOC_WRITE_STREAM	_IOWR('f', 135, struct fs_write_stream)

#endif /* _UAPI_LINUX_WRITE_STREAM_H */
