// How long a worker waits for the inode, when it looks up a mapping or allocates.
// places: fs/xfs/xfs_aops.c 1, fs/xfs/libxfs/xfs_bmap.c 2

@@
@@
 #include "xfs_health.h"
+#include "xfs_agwb.h"

@@
identifier f = {xfs_map_blocks, xfs_bmapi_convert_one_delalloc};
@@
 f(...)
 {
<...
- xfs_ilock
+ xfs_agwb_ilock
  (...);
...>
 }
