// Hints end where folios end unwritten, and with the inode.
// places: fs/xfs/xfs_iops.c 2, fs/xfs/xfs_super.c 2

@@
@@
 #include "xfs_zone_alloc.h"
+#include "xfs_agwb.h"

@@
@@
 xfs_vn_setattr_size(...)
 {
<...
 truncate_setsize(inode, newsize);
+ xfs_agwb_truncated(ip, newsize);
...>
 }

@@
@@
 xfs_fs_evict_inode(...)
 {
+ xfs_agwb_evict(XFS_I(inode));
+
 if (IS_DAX(inode))
  dax_break_layout_final(inode);
 ...
 }
