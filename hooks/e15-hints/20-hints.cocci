// Wherever a folio is written from, its hint ends when its place is known.
// places: fs/xfs/xfs_aops.c 2

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
