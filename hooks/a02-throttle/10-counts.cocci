// Pages are counted, and thresholds checked, at the throttle.
// places: fs/fs-writeback.c 3, include/linux/backing-dev.h 3, mm/page-writeback.c 4

@@
@@
- &wb->stat[item]
+ &wb->throttle->stat[item]

@@
identifier f = {folio_account_dirtied, __folio_end_writeback, __folio_start_writeback};
@@
 f(...)
 {
<...
  wb =
- inode_to_wb(inode)
+ inode_to_wb(inode)->throttle
...>
 }

@@
@@
 do_writepages(...)
 {
<...
  wb =
- inode_to_wb_wbc(mapping->host, wbc)
+ inode_to_wb_wbc(mapping->host, wbc)->throttle
...>
 }

@@
identifier f = {wb_writeback, wb_check_background_flush};
@@
 f(...)
 {
<...
 wb_over_bg_thresh(
- wb
+ wb->throttle
 )
...>
 }

@@
identifier W = {old_wb, new_wb};
@@
- &W->writeback_inodes
+ &W->throttle->writeback_inodes
