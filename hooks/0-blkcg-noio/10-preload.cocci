// What configures a cgroup's limits holds blkcg_mutex, and others hold that while the queue is frozen. The blkg beside
// it is allocated in the same way.
// places: block/blk-cgroup.c 1

@@
@@
 blkg_conf_prep(...)
 {
<...
- radix_tree_preload(GFP_KERNEL)
+ radix_tree_preload(GFP_NOIO)
...>
 }
