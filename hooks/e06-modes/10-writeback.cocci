// The flusher hands over what it can. A worker notes how far it has come.
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
+ if (wpc->wbc->handed_over)
+	xfs_agwb_reached(wpc->wbc, folio);
 ...
 }

@@
@@
 xfs_vm_writepages(...)
 {
 ...
+ if (xfs_agwb_hand_over(ip, wbc))
+	return 0;
 xfs_iflags_clear(ip, XFS_ITRUNCATED);
 ...
 }
