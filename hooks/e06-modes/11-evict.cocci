// Passes end before their inode does.
// places: fs/xfs/xfs_super.c 2

@@
@@
 #include "xfs_zone_alloc.h"
+#include "xfs_agwb.h"

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
