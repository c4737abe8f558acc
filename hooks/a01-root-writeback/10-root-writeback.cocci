// A root writeback has no reference count of its own; there will be one per context.
// places: fs/fs-writeback.c 1, include/linux/backing-dev-defs.h 3

@@
struct bdi_writeback *W;
@@
- W != &W->bdi->wb
+ !W->root
