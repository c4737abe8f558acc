/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __XFS_WRITE_STREAM_H__
#define __XFS_WRITE_STREAM_H__

struct inode;
struct kiocb;
struct xfs_ag_set;
struct xfs_alloc_arg;
struct xfs_bmalloca;
struct xfs_inode;
struct xfs_mount;

/**
 * struct xfs_write_streams - the write streams of a mounted filesystem
 * @kobj: its directory in sysfs, write_streams
 * @agcount: number of AGs when it was mounted
 * @hardware: are streams passed on to a device that has them?
 * @software: number of streams where the device has none
 * @stream_ags: does a file with a stream go to the AGs of the stream?
 * @generic_ags: number of AGs that files without a stream are spread over
 *
 * sysfs sets all but @kobj and @agcount at any time, without a lock; each of
 * them stands for itself.
 */
struct xfs_write_streams {
	struct xfs_kobj		kobj;
	xfs_agnumber_t		agcount;
	unsigned int		hardware;
	unsigned int		software;
	unsigned int		stream_ags;
	unsigned int		generic_ags;
};

/* xfs_write_stream.c */
unsigned int xfs_max_write_streams(struct inode *inode);
u8 __xfs_device_write_stream(struct inode *inode, u8 stream);
void xfs_limit_write_stream(struct kiocb *iocb);
u32 xfs_write_stream_key(struct xfs_inode *ip);
bool xfs_write_stream_ags(struct xfs_inode *ip, struct xfs_ag_set *set);
xfs_agnumber_t xfs_write_stream_agno(struct xfs_inode *ip);
xfs_agnumber_t xfs_generic_agno(struct xfs_inode *ip);

/* xfs_write_stream_alloc.c */
xfs_fsblock_t xfs_write_stream_target(struct xfs_bmalloca *ap);
int xfs_write_stream_alloc(struct xfs_bmalloca *ap, struct xfs_alloc_arg *args,
			   int stripe_align);

int xfs_write_streams_sysfs_init(struct xfs_mount *mp);
void xfs_write_streams_sysfs_del(struct xfs_mount *mp);

/**
 * xfs_device_write_stream - the stream that the bios of a file name
 * @inode: a regular file
 *
 * Asked for each folio that is written back, so files without a stream go first.
 *
 * Return: its stream if that is one of the device, or else 0.
 */
static inline u8 xfs_device_write_stream(struct inode *inode)
{
	u8 stream = READ_ONCE(inode->i_write_stream);

	return unlikely(stream) ? __xfs_device_write_stream(inode, stream) : 0;
}

#endif /* __XFS_WRITE_STREAM_H__ */
