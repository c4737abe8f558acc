// A writeback of context 1 and above counts and throttles through that of context 0, and has no counters of its own.
// places: mm/backing-dev.c 2

@@
@@
 wb_init(...)
 {
 ...
 INIT_DELAYED_WORK(&wb->bw_dwork, ...);
+
+ if (throttle != wb)
+	return 0;
 ...
 }

@@
@@
 wb_exit(...)
 {
 WARN_ON(delayed_work_pending(&wb->dwork));
+ if (wb->throttle != wb)
+	return;
 ...
 }
