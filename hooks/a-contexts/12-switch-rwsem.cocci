// Inodes switch between the cgroup writebacks of one context, under the semaphore of that context. Syncing
// takes those of all contexts, in our bdi_down_write_wb_switch_rwsem(). 7.2 does not exclude syncs while it
// cleans up an offline cgroup, so it has two places less.
// places: fs/fs-writeback.c 7
// places[7.2]: fs/fs-writeback.c 5

@@
@@
 process_inode_switch_wbs(...)
 {
- struct backing_dev_info *bdi = inode_to_bdi(isw->inodes[0]);
<...
- &bdi->wb_switch_rwsem
+ &new_wb->ctx->wb_switch_rwsem
...>
 }

@@
struct bdi_writeback *W;
@@
- &W->bdi->wb_switch_rwsem
+ &W->ctx->wb_switch_rwsem

@@
identifier f = {bdi_down_write_wb_switch_rwsem, bdi_up_write_wb_switch_rwsem};
@@
- static void f(struct backing_dev_info *bdi) { ... }
