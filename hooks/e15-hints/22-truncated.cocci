// Hints end where folios end unwritten.
// places: fs/xfs/xfs_iops.c 2

@@
@@
 #include "xfs_zone_alloc.h"
+#include "xfs_agwb_hint.h"

@@
@@
 xfs_vn_setattr_size(...)
 {
<...
 truncate_setsize(inode, newsize);
+ xfs_agwb_hint_truncated(ip, newsize);
...>
 }
