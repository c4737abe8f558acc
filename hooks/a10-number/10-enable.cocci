// The BDI of a block device may have several contexts, and every BDI has the attribute.
// places: block/genhd.c 1, mm/backing-dev.c 1

@@
identifier disk, q, node_id;
statement S;
@@
 disk->bdi = bdi_alloc(node_id);
 if (!disk->bdi)
  S
+ bdi_enable_wb_ctx(disk->bdi);
 disk->queue = q;

@@
@@
 struct attribute *bdi_dev_attrs[] = {
 ...,
 &dev_attr_strict_limit.attr,
+ &dev_attr_nwritebacks.attr,
 ...
 };
