// SPDX-License-Identifier: GPL-2.0
/* wbctl set and apply - settings of a device, from the command line or pinned in a file */

#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "setting.h"

#ifndef CONFIG
#define CONFIG "/etc/wbctl.conf"
#endif

#define GIVE_NUMBER "expected auto, or 1 to 4 times the possible CPUs, as in contexts=2"
#define GIVE_WORKERS "expected 1 to 8, as in workers=4"
#define GIVE_POLICY "expected fs, ino or another that wb_affinity shows, as in affinity=fs"
#define BLANKS " \t\r\n"

/* the kernel's bounds */
#define CTX_PER_CPU 4
#define MAX_WORKERS 8

/* in front of what is said about a setting: where in the file it stands */
static char origin[sizeof(CONFIG) + 32];

/* Of a BDI without a block device: it has one context, with one worker. */
static bool is_no_block_device(const char *bdi)
{
	return !strncmp(bdi, "0:", 2);
}

static bool is_in_range(const char *value, unsigned long most)
{
	unsigned long nr = strtoul(value, NULL, 10);

	return !value[strspn(value, "0123456789")] && nr && nr <= most;
}

static bool is_number_of_contexts(const char *value, const char *bdi)
{
	if (is_no_block_device(bdi))
		return is_in_range(value, 1);

	return !strcmp(value, AUTO) || is_in_range(value, CTX_PER_CPU * count_possible_cpus());
}

/* One of those that this kernel has; it shows them as in "[fs] ino rotor". */
static bool is_policy(const char *value, const char *bdi)
{
	char text[256], *rest = text, *name;

	if (!*value || !read_attr(text, sizeof(text), "class/bdi", bdi, "wb_affinity"))
		return false;

	while ((name = strsep(&rest, " "))) {
		name += *name == '[';
		name[strcspn(name, "]")] = '\0';
		if (!strcmp(value, name))
			return true;
	}
	return false;
}

static bool is_number_of_workers(const char *value, const char *bdi)
{
	return is_in_range(value, is_no_block_device(bdi) ? 1 : MAX_WORKERS);
}

static const struct setting {
	const char *key;
	const char *attr;	/* in sysfs */
	const char *hint;
	const char *bdi_hint;	/* of a BDI that is no block device, if another */
	/* the same answer as the kernel's */
	bool (*is_valid)(const char *value, const char *bdi);
} settings[] = {
	{ "contexts=", "nwritebacks", GIVE_NUMBER, "expected contexts=1", is_number_of_contexts },
	{ "affinity=", "wb_affinity", GIVE_POLICY, NULL, is_policy },
	{ "workers=", "wb_workers", GIVE_WORKERS, "expected workers=1", is_number_of_workers },
};

#define NR_SETTINGS (sizeof(settings) / sizeof(*settings))

static void refuse(const char *bdi, const struct setting *setting, const char *arg)
{
	if (setting->bdi_hint && is_no_block_device(bdi))
		errx(1, "%s'%s' is out of range: %s, as %s is no block device", origin, arg,
		     setting->bdi_hint, bdi);
	errx(1, "%s'%s' is out of range: %s", origin, arg, setting->hint);
}

/* Finds what an argument sets. Does not return if the BDI does not take its value. */
static const struct setting *find_setting(const char *bdi, const char *arg)
{
	for (const struct setting *s = settings; s < settings + NR_SETTINGS; s++) {
		if (strncmp(arg, s->key, strlen(s->key)))
			continue;
		if (!s->is_valid(arg + strlen(s->key), bdi))
			refuse(bdi, s, arg);
		return s;
	}
	errx(1, "%s'%s' is not a setting: expected contexts=N, affinity=POLICY or workers=N",
	     origin, arg);
}

static void write_setting(const char *bdi, const struct setting *setting, const char *arg)
{
	const char *value = arg + strlen(setting->key);
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), CLASS_BDI "/%s/%s", bdi, setting->attr);
	fd = open(path, O_WRONLY | O_TRUNC);
	if (fd >= 0 && write(fd, value, strlen(value)) >= 0) {
		close(fd);
		return;
	}
	if (errno == EINVAL)
		refuse(bdi, setting, arg);
	if (errno == EACCES || errno == EPERM)
		errx(1, "cannot write %s (%s): run wbctl as root", path, strerror(errno));
	errx(1, "cannot write %s (%s): attach the device, and mount sysfs writable", path,
	     strerror(errno));
}

/* Takes the arguments after 'set'. Does not return on an error. */
void set(char **args)
{
	char bdi[BDI_LEN];

	if (!args[0] || !args[1] || args[2])
		errx(1, "'set' takes a device and a setting, as in 'wbctl set sda contexts=2'");
	find_bdi(args[0], bdi);
	write_setting(bdi, find_setting(bdi, args[1]), args[1]);
}

/*
 * Finds the BDI of a line, but looks nowhere except below /dev: any other path may be on a
 * filesystem whose server is gone, and udev would wait for it. Of a disk that is not attached
 * @named is empty. Returns false if the name is none of a block device.
 */
static bool find_named(const char *name, char *named)
{
	char path[PATH_MAX];
	bool is_path;

	*named = '\0';
	/* UUID=... is a filesystem, and contexts=4 a line without a name; names of disks have no = */
	if (!strchr(name, '/') && strchr(name, '='))
		return false;
	if (!strchr(name, '/') && !is_dev_number(name)) {
		snprintf(path, sizeof(path), DEV_ROOT "/%s", name);
		name = path;
	} else if (strchr(name, '/') && strncmp(name, DEV_ROOT "/", strlen(DEV_ROOT "/"))) {
		return false;
	}
	return !look_up(name, named, &is_path) || !is_path;
}

/*
 * Looks at the whole line first: one with a mistake in it sets nothing. Returns false if it names
 * something else than a block device, as nobody can tell which device it is about.
 */
static bool apply_line(char *line, const char *bdi, bool *is_pinned)
{
	const char *name = strtok(line, BLANKS), *arg, *given[NR_SETTINGS] = { NULL };
	bool finds_number = false;
	char named[BDI_LEN];
	unsigned long nr;

	if (!name || *name == '#')
		return true;
	if (!find_named(name, named)) {
		warnx("%s'%s' is no block device: name one that is in /dev/disk/by-id", origin,
		      name);
		return false;
	}
	if (strcmp(named, bdi))
		return true;

	*is_pinned = true;
	read_nwritebacks(bdi, &nr, &finds_number);
	while ((arg = strtok(NULL, BLANKS)) && *arg != '#')
		given[find_setting(bdi, arg) - settings] = arg;

	for (size_t i = 0; i < NR_SETTINGS; i++) {
		if (!given[i])
			continue;
		/*
		 * A disk changes whenever somebody has had it open for writing. Where the kernel chooses the
		 * number already, it would begin from one context again.
		 */
		if (!finds_number || strcmp(given[i], "contexts=" AUTO))
			write_setting(bdi, &settings[i], given[i]);
		printf("%s%s\n", origin, given[i]);
	}
	return true;
}

/*
 * Takes the arguments after 'apply', and returns the exit status. Does not return on an error, but
 * for a line that names no block device: those of other lines are set all the same. udev asks for
 * each disk that appears, and most have no line: with --if-pinned that is no error.
 */
int apply(char **args)
{
	bool if_pinned = args[0] && !strcmp(args[0], "--if-pinned"), is_pinned = false;
	char bdi[BDI_LEN], *line = NULL;
	size_t size = 0;
	int status = 0;
	ssize_t length;
	FILE *file;

	args += if_pinned;
	if (!args[0] || args[1])
		errx(1, "'apply' takes a device, as in 'wbctl apply sda'");
	find_bdi(args[0], bdi);
	file = fopen(CONFIG, "r");
	if (!file && errno == ENOENT && if_pinned)
		return 0;
	if (!file)
		errx(1, "cannot open " CONFIG " (%s): make it, or install the package wbctl again",
		     strerror(errno));

	for (unsigned int nr = 1; (length = getline(&line, &size, file)) >= 0; nr++) {
		snprintf(origin, sizeof(origin), CONFIG " line %u: ", nr);
		/* a string ends there, and the rest of the line would not be looked at */
		if (memchr(line, '\0', length))
			errx(1, "%sthere is a byte of 0: make it a text file", origin);
		if (!apply_line(line, bdi, &is_pinned))
			status = 1;
	}
	if (ferror(file))
		errx(1, "cannot read " CONFIG " (%s): make it a text file", strerror(errno));
	free(line);
	fclose(file);
	/* a line that is complained about may have been meant for it */
	if (!is_pinned && !if_pinned && !status)
		errx(1, "no line of " CONFIG " names '%s': add one, see wbctl(8)", args[0]);
	return status;
}
