// SPDX-License-Identifier: GPL-2.0
/*
 * FS_IOC_WRITE_STREAM, for every filesystem that has write streams.
 */

#include <linux/build_bug.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/uaccess.h>
#include <linux/write_stream.h>

/* laid out alike for 32 and 64 bit, so compat needs nothing of its own */
static_assert(sizeof(struct fs_write_stream) == 16);

/* A u8 reaches the device. */
static unsigned int max_write_streams(struct inode *inode)
{
	return min(inode->i_op->max_write_streams(inode), U8_MAX);
}

/*
 * Dirty pages are not written first: a page goes with the stream that the file
 * has when it is written. No lock, for there is nothing to be consistent with.
 */
static int set_write_stream(struct file *filp, unsigned int stream)
{
	struct inode *inode = file_inode(filp);

	if (!(filp->f_mode & FMODE_WRITE))
		return -EBADF;
	if (stream > max_write_streams(inode))
		return -EINVAL;

	WRITE_ONCE(inode->i_write_stream, stream);
	return 0;
}

/* The maximum may have been lowered since the stream was set, and be raised again. */
static unsigned int get_write_stream(struct inode *inode)
{
	unsigned int stream = READ_ONCE(inode->i_write_stream);

	return stream <= max_write_streams(inode) ? stream : 0;
}

/**
 * ioctl_write_stream - FS_IOC_WRITE_STREAM of a regular file
 * @filp: the file, open for writing if the stream is to be set
 * @argp: struct fs_write_stream
 *
 * Return: 0 or
 *
 * * -ENOIOCTLCMD	- the filesystem has no streams; it may still know the
 *			  ioctl by itself, as FUSE does
 * * -EFAULT		- no memory at @argp
 * * -EINVAL		- not exactly one known flag, the reserved field is not
 *			  0, or the stream is above the maximum
 * * -EBADF		- to be set, but not open for writing
 */
int ioctl_write_stream(struct file *filp, void __user *argp)
{
	struct inode *inode = file_inode(filp);
	struct fs_write_stream arg;

	if (!inode->i_op->max_write_streams)
		return -ENOIOCTLCMD;
	if (copy_from_user(&arg, argp, sizeof(arg)))
		return -EFAULT;
	if (arg.__reserved)
		return -EINVAL;

	switch (arg.op_flags) {
	case FS_WRITE_STREAM_OP_GET_MAX:
		arg.max_streams = max_write_streams(inode);
		break;
	case FS_WRITE_STREAM_OP_GET:
		arg.stream_id = get_write_stream(inode);
		break;
	case FS_WRITE_STREAM_OP_SET:
		return set_write_stream(filp, arg.stream_id);
	default:
		return -EINVAL;
	}
	return copy_to_user(argp, &arg, sizeof(arg)) ? -EFAULT : 0;
}
