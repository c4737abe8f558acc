// Filesystems whose ->writepages() may run for different inodes at once spread their inodes over the
// contexts. ext4 does so where it is not in data=journal mode: where it turns on cgroup writeback, too.
// places: fs/ext4/super.c 1, fs/xfs/xfs_super.c 1

@@
identifier sb;
@@
(
 sb->s_iflags |= SB_I_CGROUPWB;
+ sb_enable_wb_ctx(sb);
|
 sb->s_iflags |= SB_I_CGROUPWB | SB_I_ALLOW_HSM;
+ sb_enable_wb_ctx(sb);
)
