// What stock does at the BDI's one bdi_writeback is done at that of context 0, where the throttle is.
// places: fs/fs-writeback.c 1, include/linux/backing-dev.h 8, mm/backing-dev.c 1, mm/page-writeback.c 1

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

@@
identifier f = {wb_get_lookup, wb_get_create};
struct backing_dev_info *B;
@@
 f(
- B
+ bdi_wb_ctx(B, 0)
 , ...)

@@
struct backing_dev_info *B;
@@
- B->cgwb_tree
+ bdi_wb_ctx(B, 0)->cgwb_tree
