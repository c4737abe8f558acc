// How long a worker waits for the inode, when it looks up a mapping or allocates, and for the AGF.
// places: fs/xfs/xfs_aops.c 1, fs/xfs/libxfs/xfs_bmap.c 2, fs/xfs/libxfs/xfs_alloc.c 2

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

@@
@@
 xfs_alloc_read_agf(...)
 {
<...
- xfs_read_agf
+ xfs_agwb_read_agf
  (...)
...>
 }
