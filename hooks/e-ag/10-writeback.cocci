// The flusher hands over what it can, and wherever a folio is written from, its hint ends when its place is known.
// places: fs/xfs/xfs_aops.c 3

@@
@@
 #include "xfs_rtgroup.h"
+#include "xfs_agwb.h"

@@
@@
 xfs_writeback_range(...)
 {
 ...
 ret = xfs_map_blocks(wpc, offset, len);
+ xfs_agwb_placed(wpc, folio, ret, &XFS_WPC(wpc)->uncounted);
 ...
 }

@@
@@
 xfs_vm_writepages(...)
 {
 ...
 xfs_iflags_clear(ip, XFS_ITRUNCATED);
+
+ if (xfs_agwb_hand_over(ip, wbc))
+	return 0;
 ...
 }
