// SPDX-License-Identifier: GPL-2.0
/* what a DEVICE or PATH means: the BDI of a block device, by the number that sysfs names it by */

#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "device.h"

#define GIVE_DEVICE "give /dev/NAME, NAME, MAJ:MIN or a path"

/* Reads the only line of an attribute in sysfs. */
bool read_attr(char *buf, int size, const char *dir, const char *name, const char *attr)
{
	char path[PATH_MAX];
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), SYSFS_ROOT "/%s/%s/%s", dir, name, attr);
	file = fopen(path, "r");
	if (!file)
		return false;

	ok = fgets(buf, size, file);
	fclose(file);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

/* The attribute is a number, or "auto (3)" where the kernel has chosen it. */
bool read_nwritebacks(const char *bdi, unsigned long *nr, bool *finds_number)
{
	char text[32];

	if (!read_attr(text, sizeof(text), "class/bdi", bdi, "nwritebacks"))
		return false;

	*finds_number = !strncmp(text, AUTO, strlen(AUTO));
	*nr = strtoul(text + strcspn(text, "0123456789"), NULL, 10);
	return true;
}

/* The list of their numbers is such as "0-3,8". */
unsigned long count_possible_cpus(void)
{
	char text[256], *rest = text, *range;
	unsigned long first, last, nr = 0;

	if (!read_attr(text, sizeof(text), "devices/system", "cpu", "possible"))
		errx(1, "cannot read " SYSFS_ROOT "/devices/system/cpu/possible: mount sysfs");

	while ((range = strsep(&rest, ",")))
		nr += sscanf(range, "%lu-%lu", &first, &last) == 2 ? last - first + 1 : 1;
	return nr;
}

bool is_dev_number(const char *s)
{
	int end = 0, nr = sscanf(s, "%*[0-9]:%*[0-9]%n", &end);

	return !nr && end && !s[end] && end < BDI_LEN;
}

/*
 * Finds the number of what a DEVICE or PATH names, for a partition that of its disk. Returns false,
 * with errno, if there is nothing of that name.
 */
bool look_up(const char *arg, char *bdi, bool *is_path)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *name = arg;
	struct stat st;

	*is_path = false;
	/* such as the links of /dev/disk/by-id */
	if (strchr(arg, '/') && realpath(arg, target))
		name = target;
	if (!strncmp(name, DEV_ROOT "/", strlen(DEV_ROOT "/")))
		name += strlen(DEV_ROOT "/");

	if (is_dev_number(arg)) {
		strcpy(bdi, arg);
	} else if (strchr(name, '/') || !read_attr(bdi, BDI_LEN, "class/block", name, "dev")) {
		dev_t dev;

		if (stat(arg, &st))
			return false;
		*is_path = !S_ISBLK(st.st_mode);
		dev = *is_path ? st.st_dev : st.st_rdev;
		snprintf(bdi, BDI_LEN, "%u:%u", major(dev), minor(dev));
	}

	/* a partition uses the BDI of its disk, whose directory is the parent of its own */
	snprintf(path, sizeof(path), SYSFS_ROOT "/dev/block/%s/partition", bdi);
	if (!access(path, F_OK) && !read_attr(bdi, BDI_LEN, "dev/block", bdi, "../dev"))
		errx(1, "the partition '%s' has no disk: give the disk itself", arg);
	return true;
}

/* Finds the BDI that a DEVICE or PATH means. */
void find_bdi(const char *arg, char *bdi)
{
	bool is_path, finds_number;
	char path[PATH_MAX];
	unsigned long nr;

	if (!*arg)
		errx(1, "a device is an empty string: " GIVE_DEVICE);
	if (!look_up(arg, bdi, &is_path))
		errx(1, "'%s' is neither a block device nor a file (%s): " GIVE_DEVICE, arg,
		     strerror(errno));
	if (read_nwritebacks(bdi, &nr, &finds_number))
		return;

	snprintf(path, sizeof(path), CLASS_BDI "/%s", bdi);
	if (!access(path, F_OK))
		errx(1, NO_CONTEXTS);
	if (is_path)
		errx(1, "the filesystem of '%s' (%s) is not on a block device: name the device",
		     arg, bdi);
	errx(1, "there is no block device '%s': give one that 'lsblk -o NAME,MAJ:MIN' lists", arg);
}
