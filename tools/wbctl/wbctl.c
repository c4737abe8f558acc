// SPDX-License-Identifier: GPL-2.0
/* wbctl - show and set the writeback contexts of block devices, and the write streams of files */

#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "setting.h"
#include "stream.h"

#define MAX_INDEX 65535
#define DEBUGFS SYSFS_ROOT "/kernel/debug"
#define OTHER_WBCTL "use the wbctl that came with this kernel"

enum { INDEX, DIRTY, IO, MORE_IO, DIRTY_TIME, FLUSHED, RUNNING, NR_VALUES };

/* in the statistics of the kernel, with the spaces around them */
static const char * const keys[NR_VALUES] = {
	"Context ", " b_dirty ", " b_io ", " b_more_io ", " b_dirty_time ", " flushed ",
	" running ",
};

struct context {
	unsigned long long value[NR_VALUES];
	double rate;	/* KiB flushed per second since the last round, negative if unknown */
	bool exists;
};

struct device {
	char bdi[BDI_LEN];
	char name[PATH_MAX];
	unsigned long nwritebacks;
	bool finds_number;	/* the kernel chooses nwritebacks */
	double when;
	struct context *ctx;	/* by index */
	size_t nr_ctx;	/* 0 while the device is gone */
};

static struct device *devices;
static size_t nr_devices;

static const char usage[] =
"wbctl contexts [--json] [--watch[=SECONDS]] [DEVICE|PATH]...\n"
"	show the writeback contexts of these devices, or of all\n"
"wbctl set DEVICE|PATH contexts=N|contexts=auto|affinity=POLICY|workers=N\n"
"	set the number of contexts or let the kernel find it, who chooses the\n"
"	context of an inode, or the number of workers of each context\n"
"wbctl apply [--if-pinned] DEVICE|PATH\n"
"	set what /etc/wbctl.conf says for this device\n"
"wbctl stream max|get [-r] [--json] PATH\n"
"	show the greatest write stream that a file can have, or the one it has\n"
"wbctl stream set [-r] [--json] PATH N\n"
"	give a file a write stream; 0 is none\n"
"wbctl --help\n"
"\n"
"  --if-pinned        no error if there is no line for the device\n"
"  --json             one JSON array\n"
"  -r                 every regular file of a directory tree\n"
"  --watch[=SECONDS]  repeat every SECONDS (default 1), with the KiB flushed per second\n"
"\n"
"DEVICE is a block device such as /dev/sda, sda or 8:0; PATH beside it is any\n"
"file or directory, and means the device of its filesystem. See wbctl(8).\n";

/* Makes room for one more element, zeroed. */
static void *grow(void *array, size_t nr, size_t size)
{
	array = reallocarray(array, nr + 1, size);
	if (!array)
		errx(1, "there is not enough memory: free some and try again");

	memset((char *)array + nr * size, 0, size);
	return array;
}

static void add_device(const char *bdi)
{
	for (size_t i = 0; i < nr_devices; i++) {
		if (!strcmp(devices[i].bdi, bdi))
			return;
	}
	devices = grow(devices, nr_devices, sizeof(*devices));
	strcpy(devices[nr_devices++].bdi, bdi);
}

static int filter_bdi(const struct dirent *entry)
{
	return is_dev_number(entry->d_name);
}

static void add_all_devices(void)
{
	struct dirent **list;
	int nr = scandir(CLASS_BDI, &list, filter_bdi, versionsort);
	unsigned long nwritebacks;
	bool finds_number;

	if (nr < 0)
		errx(1, "cannot list " CLASS_BDI " (%s): mount sysfs", strerror(errno));
	if (!nr)
		errx(1, "there is no device in " CLASS_BDI ": attach one");

	for (int i = 0; i < nr; i++) {
		if (read_nwritebacks(list[i]->d_name, &nwritebacks, &finds_number))
			add_device(list[i]->d_name);
		free(list[i]);
	}
	free(list);
	if (!nr_devices)
		errx(1, NO_CONTEXTS);
}

static void read_context(struct device *dev, const char *line, double seconds)
{
	unsigned long long value[NR_VALUES];
	struct context *ctx;

	for (int i = 0; i < NR_VALUES; i++) {
		const char *found = strstr(line, keys[i]);
		char *end = NULL;

		if (found)
			value[i] = strtoull(found + strlen(keys[i]), &end, 10);
		if (!found || end == found + strlen(keys[i]) || value[INDEX] > MAX_INDEX)
			errx(1, "cannot understand '%.*s' of %s: " OTHER_WBCTL,
			     (int)strcspn(line, "\n"), line, dev->bdi);
	}

	while (dev->nr_ctx <= value[INDEX])
		dev->ctx = grow(dev->ctx, dev->nr_ctx++, sizeof(*ctx));
	ctx = &dev->ctx[value[INDEX]];
	/* the counter falls when a cgroup goes */
	ctx->rate = -1;
	if (ctx->exists && value[FLUSHED] >= ctx->value[FLUSHED])
		ctx->rate = (value[FLUSHED] - ctx->value[FLUSHED]) / seconds;
	memcpy(ctx->value, value, sizeof(value));
	ctx->exists = true;
}

/* Returns false if the device is gone. */
static bool read_contexts(struct device *dev)
{
	char path[PATH_MAX], *line = NULL;
	struct timespec ts;
	double seconds;
	size_t size = 0;
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), DEBUGFS "/bdi/%s/stats", dev->bdi);
	file = fopen(path, "r");
	if (!file && errno != ENOENT)
		errx(1, "cannot read %s in debugfs (%s): run wbctl as root", path, strerror(errno));
	if (!file && access(DEBUGFS "/bdi", F_OK))
		errx(1, "debugfs is not mounted: run 'mount -t debugfs none " DEBUGFS "' as root");
	if (!file)
		return false;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	seconds = ts.tv_sec + ts.tv_nsec / 1e9 - dev->when;
	dev->when += seconds;
	while (getline(&line, &size, file) >= 0) {
		if (!strncmp(line, keys[INDEX], strlen(keys[INDEX])))
			read_context(dev, line, seconds);
	}
	ok = !ferror(file);
	free(line);
	fclose(file);
	if (ok && !dev->nr_ctx)
		errx(1, "%s has no line 'Context': " OTHER_WBCTL, path);
	return ok;
}

static void read_devices(bool named)
{
	if (!named)
		add_all_devices();

	for (size_t i = 0; i < nr_devices; i++) {
		struct device *dev = &devices[i];
		char link[PATH_MAX], target[PATH_MAX];

		if (!read_nwritebacks(dev->bdi, &dev->nwritebacks, &dev->finds_number) ||
		    !read_contexts(dev)) {
			if (named)
				errx(1, "the device %s is gone: attach it again", dev->bdi);
			dev->nr_ctx = 0;
		}
		snprintf(link, sizeof(link), SYSFS_ROOT "/dev/block/%s", dev->bdi);
		strcpy(dev->name, realpath(link, target) ? strrchr(target, '/') + 1 : dev->bdi);
		/* sysfs has ! where the name has /; the others are not worth escaping in JSON */
		for (char *c = dev->name; (c = strpbrk(c, "!\"\\")); c++)
			*c = *c == '!' ? '/' : '?';
	}
}

static void print_json(const struct device *dev, const struct context *ctx, bool rates)
{
	const unsigned long long *v = ctx->value;

	printf("{\"index\":%llu,\"dirty\":%llu,\"io\":%llu,\"more_io\":%llu,\"dirty_time\":%llu,",
	       v[INDEX], v[DIRTY], v[IO], v[MORE_IO], v[DIRTY_TIME]);
	printf("\"flushed_kib\":%llu,", v[FLUSHED]);
	if (rates && ctx->rate < 0)
		printf("\"flushed_kib_per_s\":null,");
	else if (rates)
		printf("\"flushed_kib_per_s\":%.1f,", ctx->rate);
	/* the last one exists: it made the array as long as it is */
	printf("\"running\":%s}%s", v[RUNNING] ? "true" : "false",
	       ctx + 1 < dev->ctx + dev->nr_ctx ? "," : "");
}

static void print_row(const struct device *dev, const struct context *ctx, bool rates)
{
	const unsigned long long *v = ctx->value;
	bool has_inodes = v[DIRTY] || v[IO] || v[MORE_IO] || v[DIRTY_TIME];
	char flushed[32] = "-";

	if (!rates)
		snprintf(flushed, sizeof(flushed), "%llu", v[FLUSHED]);
	else if (ctx->rate >= 0)
		snprintf(flushed, sizeof(flushed), "%.0f", ctx->rate);
	printf("%7llu %8llu %8llu %8llu %11llu %14s %8s", v[INDEX], v[DIRTY], v[IO], v[MORE_IO],
	       v[DIRTY_TIME], flushed, v[RUNNING] ? "yes" : "no");
	if (v[INDEX] >= dev->nwritebacks)
		printf("  %s", has_inodes ? "draining" : "idle");
	putchar('\n');
}

static void print_devices(bool json, bool rates)
{
	const char *between = "";

	for (const struct device *dev = devices; dev < devices + nr_devices; dev++) {
		if (!dev->nr_ctx)
			continue;

		if (json) {
			printf("%s{\"device\":\"%s\",", between, dev->name);
			printf("\"bdi\":\"%s\",\"nwritebacks\":%lu,\"auto\":%s,\"contexts\":[",
			       dev->bdi, dev->nwritebacks, dev->finds_number ? "true" : "false");
		} else {
			printf(dev->finds_number ? "%s%s (%s): nwritebacks " AUTO " (%lu)\n" :
						   "%s%s (%s): nwritebacks %lu\n",
			       between, dev->name, dev->bdi, dev->nwritebacks);
			printf("context    dirty       io  more_io  dirty_time%15s  running\n",
			       rates ? "flushed KiB/s" : "flushed KiB");
		}
		for (size_t i = 0; i < dev->nr_ctx; i++) {
			if (dev->ctx[i].exists)
				(json ? print_json : print_row)(dev, &dev->ctx[i], rates);
		}
		if (json)
			printf("]}");
		between = json ? "," : "\n";
	}
}

static void flush_output(void)
{
	if (fflush(stdout) || ferror(stdout))
		errx(1, "cannot write to standard output (%s): make room there", strerror(errno));
}

static void show_contexts(char **args)
{
	bool json = false, named;
	double seconds = 0;

	for (; *args; args++) {
		char *end, bdi[BDI_LEN];

		if (!strcmp(*args, "--json")) {
			json = true;
		} else if (!strcmp(*args, "--watch")) {
			seconds = 1;
		} else if (!strncmp(*args, "--watch=", strlen("--watch="))) {
			seconds = strtod(*args + strlen("--watch="), &end);
			if (*end || !(seconds >= 0.01 && seconds <= 86400))
				errx(1, "'%s': expected 0.01 to 86400 seconds, as in --watch=2",
				     *args);
		} else if (**args == '-') {
			errx(1, "unknown option '%s': expected --json or --watch[=SECONDS]", *args);
		} else {
			find_bdi(*args, bdi);
			add_device(bdi);
		}
	}

	named = nr_devices;
	for (bool first = true;; first = false) {
		struct timespec pause = { seconds, (seconds - (time_t)seconds) * 1e9 };

		read_devices(named);
		if (json) {
			putchar('[');
			print_devices(true, seconds);
			puts("]");
		} else {
			if (seconds && isatty(STDOUT_FILENO))
				printf("\033[H\033[2J");
			else if (!first)
				putchar('\n');
			print_devices(false, seconds);
		}
		flush_output();
		if (!seconds)
			return;
		nanosleep(&pause, NULL);
	}
}

int main(int argc, char **argv)
{
	int status = 0;

	if (argc < 2)
		errx(1, "no command: expected contexts, set, apply or stream, see 'wbctl --help'");

	if (!strcmp(argv[argc - 1], "--help"))
		fputs(usage, stdout);
	else if (!strcmp(argv[1], "contexts"))
		show_contexts(argv + 2);
	else if (!strcmp(argv[1], "set"))
		set(argv + 2);
	else if (!strcmp(argv[1], "apply"))
		status = apply(argv + 2);
	else if (!strcmp(argv[1], "stream"))
		stream(argv + 2);
	else
		errx(1, "unknown command '%s': expected contexts, set, apply or stream, see 'wbctl --help'",
		     argv[1]);
	flush_output();
	return status;
}
