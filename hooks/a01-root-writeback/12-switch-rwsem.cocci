// Syncing keeps inodes where they are without cgroups, too: they move between contexts. So nothing depends on the
// configuration, and the functions that hid it are not needed.
// places: fs/fs-writeback.c 4

@@
identifier f = {bdi_down_write_wb_switch_rwsem, bdi_up_write_wb_switch_rwsem};
@@
- static void f(struct backing_dev_info *bdi) { ... }

@@
expression B;
@@
- bdi_down_write_wb_switch_rwsem(B)
+ down_write(&B->wb_switch_rwsem)

@@
expression B;
@@
- bdi_up_write_wb_switch_rwsem(B)
+ up_write(&B->wb_switch_rwsem)
