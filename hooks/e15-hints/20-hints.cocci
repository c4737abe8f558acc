// Wherever a folio is written from, its hint ends when its place is known, or with its inode.
// places: fs/xfs/xfs_aops.c 2, fs/xfs/xfs_super.c 2

@@
@@
 #include "xfs_agwb.h"
+#include "xfs_agwb_hint.h"

@@
@@
 xfs_writeback_range(...)
 {
 ...
 ret = xfs_map_blocks(wpc, offset, len);
+ xfs_agwb_hint_placed(wpc, folio, ret, &XFS_WPC(wpc)->uncounted);
 ...
 }

@@
@@
 xfs_fs_evict_inode(...)
 {
 xfs_agwb_evict(XFS_I(inode));
+ xfs_agwb_hint_evict(XFS_I(inode));
 ...
 }
