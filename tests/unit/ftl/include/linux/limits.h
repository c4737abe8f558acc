#include <limits.h>
#include_next <linux/limits.h>
