// What stock does at the BDI's one bdi_writeback is done at that of context 0, where the throttle is.
// places: include/linux/backing-dev.h 6, mm/backing-dev.c 8, mm/page-writeback.c 1

@@
struct backing_dev_info *B;
@@
- &B->wb
+ bdi_root_wb(B)

@@
struct backing_dev_info *B;
identifier f;
@@
- B->wb.f
+ bdi_root_wb(B)->f
