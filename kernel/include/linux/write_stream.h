/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Write streams of regular files.
 *
 * A filesystem that has streams says how many by ->max_write_streams() of its
 * regular files. The number that the application chose is in i_write_stream; it
 * is kept in memory only, and gone with the inode. What it means is up to the
 * filesystem: where blocks go, and which stream of the device a bio names. The
 * latter is not always the former, so it comes with the mapping, as write_stream
 * of struct iomap.
 */
#ifndef _LINUX_WRITE_STREAM_H
#define _LINUX_WRITE_STREAM_H

#include <linux/blkdev.h>
#include <linux/fs.h>
#include <uapi/linux/write_stream.h>

int ioctl_write_stream(struct file *filp, void __user *argp);

/**
 * iocb_write_stream - stream of the device that a direct write names
 * @iocb: the write; io_uring can name a stream in it
 * @mapped: the stream that the filesystem wants for the file
 * @bdev: device that the write goes to
 *
 * A filesystem with streams has taken the one in @iocb out if the device lacks
 * it, but a file may have got another device since. Of the others F2FS looks at
 * it by itself, and the rest never did.
 *
 * Return: a stream, 0 for none.
 */
static inline u8 iocb_write_stream(const struct kiocb *iocb, u8 mapped,
				   struct block_device *bdev)
{
	if (iocb->ki_write_stream &&
	    iocb->ki_write_stream <= bdev_max_write_streams(bdev) &&
	    file_inode(iocb->ki_filp)->i_op->max_write_streams)
		return iocb->ki_write_stream;

	return mapped;
}

#endif /* _LINUX_WRITE_STREAM_H */
