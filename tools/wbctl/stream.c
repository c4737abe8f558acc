// SPDX-License-Identifier: GPL-2.0
/* wbctl stream - show and set the write streams of files */

#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/write_stream.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stream.h"

#define NO_STREAMS 2	/* exit status */
#define MAX_DIGITS 3
#define OPEN_DIRS 16
#define GIVE_FILE "give a regular file, or a directory with -r"
#define GIVE_STREAM "expected 0 (none) to the maximum, as in 'wbctl stream set FILE 2'"

static const struct operation {
	const char *name;
	const char *key;	/* in JSON */
	unsigned int flag;
} operations[] = {
	{ "max", "max", FS_WRITE_STREAM_OP_GET_MAX },
	{ "get", "stream", FS_WRITE_STREAM_OP_GET },
	{ "set", "stream", FS_WRITE_STREAM_OP_SET },
};

/* nftw() hands nothing through to its callback */
static const struct operation *op;
static unsigned int wanted;
static bool json, recursive;
static const char *between = "";
static FILE *out;	/* printed when all went well */

/* Length of the UTF-8 character that a string begins with, 0 if it is none. */
static int utf8_length(const char *s)
{
	static const unsigned int least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int lead = (unsigned char)*s, code;
	int length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	if (lead < 0x80)
		return 1;
	if (lead < 0xc0 || lead > 0xf7)
		return 0;

	code = lead & (0x7f >> length);
	for (int i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

/*
 * Names are bytes, and JSON is UTF-8. A byte that is not becomes half of a surrogate pair, as
 * Python's os.fsdecode() has it: a file's owner cannot spoil the output, nor have two names look alike.
 */
static void print_json_string(const char *s)
{
	int length;

	putc('"', out);
	for (; *s; s += length ? length : 1) {
		length = utf8_length(s);
		if (!length)
			fprintf(out, "\\udc%02x", (unsigned char)*s);
		else if ((unsigned char)*s < ' ')
			fprintf(out, "\\u%04x", *s);
		else if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else
			fwrite(s, length, 1, out);
	}
	putc('"', out);
}

static void print_result(const char *path, unsigned int value)
{
	if (json) {
		fprintf(out, "%s{\"path\":", between);
		print_json_string(path);
		fprintf(out, ",\"%s\":%u}", op->key, value);
		between = ",";
	} else if (op->flag != FS_WRITE_STREAM_OP_SET) {
		fprintf(out, recursive ? "%3u %s\n" : "%u\n", value, path);
	}
}

static unsigned int call(int fd, const char *path, unsigned int flag, unsigned int value)
{
	struct fs_write_stream arg = { .op_flags = flag, .stream_id = value };

	if (!ioctl(fd, FS_IOC_WRITE_STREAM, &arg))
		return arg.stream_id;
	if (errno == ENOTTY)
		errx(NO_STREAMS, "there are no write streams for '%s': use XFS and a kernel that has them",
		     path);
	if (errno == EINVAL && flag == FS_WRITE_STREAM_OP_SET)
		errx(1, "'%u' is out of range for '%s': expected 0 (none) to %u", value, path,
		     call(fd, path, FS_WRITE_STREAM_OP_GET_MAX, 0));
	errx(1, "the write stream of '%s' cannot be used (%s): look at the kernel's log", path,
	     strerror(errno));
}

/*
 * The owner of a directory can put something else in the file's place at any time. It is looked at
 * once more before it is opened: to open a FIFO waits, and to open a device may do anything.
 */
static int open_seen(const char *path, const struct stat *seen, int flags)
{
	int fd, found = open(path, O_PATH | O_CLOEXEC | (recursive ? O_NOFOLLOW : 0));
	char link[64];
	struct stat st;

	if (found < 0)
		return -1;
	if (fstat(found, &st) || !S_ISREG(st.st_mode) || st.st_dev != seen->st_dev)
		errx(1, "'%s' has changed meanwhile: " GIVE_FILE " that stays", path);

	snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
	fd = open(link, flags | O_CLOEXEC);
	close(found);
	return fd;
}

static void do_file(const char *path, const struct stat *seen)
{
	bool set = op->flag == FS_WRITE_STREAM_OP_SET;
	int fd = open_seen(path, seen, set ? O_WRONLY : O_RDONLY);

	if (fd < 0 && recursive && errno == ENOENT)
		return;
	if (fd < 0)
		errx(1, "cannot open '%s' (%s): give a file that you may %s", path,
		     strerror(errno), set ? "write" : "read");
	print_result(path, call(fd, path, op->flag, wanted));
	close(fd);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct stat now;

	(void)ftw;
	/* files come and go in a directory that is in use */
	if (type == FTW_NS && lstat(path, &now) && errno == ENOENT)
		return 0;
	if (type == FTW_NS || type == FTW_DNR)
		errx(1, "cannot look into '%s': run wbctl as root", path);
	if (S_ISREG(st->st_mode))
		do_file(path, st);
	return 0;
}

/* Also where a '/' follows, by which lstat() would look behind the link, and nftw() does not. */
static bool is_link(const char *path)
{
	size_t length = strlen(path);
	char bare[PATH_MAX];
	struct stat st;

	while (length > 1 && path[length - 1] == '/')
		length--;
	snprintf(bare, sizeof(bare), "%.*s", (int)length, path);
	return !lstat(bare, &st) && S_ISLNK(st.st_mode);
}

static void do_path(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		errx(1, "there is no '%s' (%s): " GIVE_FILE, path, strerror(errno));
	if (recursive && is_link(path))
		errx(1, "'%s' is a symbolic link, which -r does not follow: give '%s/.'", path, path);
	if (recursive && nftw(path, visit, OPEN_DIRS, FTW_PHYS | FTW_MOUNT))
		errx(1, "cannot walk through '%s' (%s): try it on its parts", path, strerror(errno));
	if (!recursive && !S_ISREG(st.st_mode))
		errx(1, "'%s' is not a regular file: " GIVE_FILE, path);
	if (!recursive)
		do_file(path, &st);
}

static const struct operation *find_operation(const char *name)
{
	for (size_t i = 0; name && i < sizeof(operations) / sizeof(*operations); i++) {
		if (!strcmp(name, operations[i].name))
			return &operations[i];
	}
	errx(1, "'stream' expects max, get or set, as in 'wbctl stream get FILE'");
}

/*
 * Takes the arguments after 'stream'. Does not return on an error: it says what is wrong and exits
 * with 1, or with 2 if there are no streams here.
 */
void stream(char **args)
{
	const char *path = NULL, *number = NULL;
	char *text;
	size_t size;

	op = find_operation(*args);
	while (*++args) {
		if (!strcmp(*args, "--json"))
			json = true;
		else if (!strcmp(*args, "-r"))
			recursive = true;
		else if (**args == '-')
			errx(1, "unknown option '%s': expected --json or -r", *args);
		else if (!path)
			path = *args;
		else if (!number && op->flag == FS_WRITE_STREAM_OP_SET)
			number = *args;
		else
			errx(1, "'%s' is one argument too many: " GIVE_FILE, *args);
	}
	if (!path)
		errx(1, "no file: " GIVE_FILE);
	if (!number && op->flag == FS_WRITE_STREAM_OP_SET)
		errx(1, "no stream for '%s': " GIVE_STREAM, path);
	if (number && (!*number || number[strspn(number, "0123456789")] ||
		       strlen(number) > MAX_DIGITS))
		errx(1, "'%s' is out of range: " GIVE_STREAM, number);
	wanted = number ? strtoul(number, NULL, 10) : 0;

	out = open_memstream(&text, &size);
	if (!out)
		errx(1, "there is not enough memory: free some and try again");
	do_path(path);
	if (fclose(out))
		errx(1, "there is not enough memory: free some and try again");
	printf(json ? "[%s]\n" : "%s", text);
	free(text);
}
