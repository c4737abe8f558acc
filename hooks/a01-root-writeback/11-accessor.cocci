// Where the root writeback is, only one function knows.
// places: fs/fs-writeback.c 4, include/linux/backing-dev.h 7, mm/backing-dev.c 14, mm/page-writeback.c 1

@@
struct backing_dev_info *B;
@@
- &B->wb
+ bdi_root_wb(B)

@@
struct bdi_writeback *W;
@@
- &W->bdi->wb
+ bdi_root_wb(W->bdi)

@@
struct backing_dev_info *B;
identifier f;
@@
- B->wb.f
+ bdi_root_wb(B)->f
