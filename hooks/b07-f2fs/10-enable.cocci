// F2FS spreads its inodes over the contexts.
// places: fs/f2fs/super.c 1

@@
identifier sb;
@@
 sb->s_iflags |= SB_I_CGROUPWB;
+ sb_enable_wb_ctx(sb);
