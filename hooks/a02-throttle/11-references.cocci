// A reference on a writeback is one on its throttle.
// places: include/linux/backing-dev-defs.h 4

@@
identifier f = {wb_tryget, wb_get, wb_put_many, wb_dying};
@@
 f(...)
 {
<...
- &wb->refcnt
+ &wb->throttle->refcnt
...>
 }
