// Syncing keeps inodes where they are without cgroups, too: they move between contexts. fs-writeback-ctx.h has what
// takes the semaphore.
// places: fs/fs-writeback.c 2

@@
identifier f = {bdi_down_write_wb_switch_rwsem, bdi_up_write_wb_switch_rwsem};
@@
- static void f(struct backing_dev_info *bdi) { ... }
