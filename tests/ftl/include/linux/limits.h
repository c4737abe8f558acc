#include_next <linux/limits.h>
