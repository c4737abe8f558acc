// SPDX-License-Identifier: GPL-2.0
/*
 * hostile WHO SEED COUNT BDI XFS MOST: what do the settings of a device and of XFS, their statistics in debugfs, and the
 * ioctl of write streams make of anything?
 *
 * COUNT inputs are made up by SEED: right ones, nearly right ones, and noise of any length. They are written to the files
 * below BDI (a folder of /sys/class/bdi) and XFS (one of /sys/fs/xfs), and given to the ioctl of files in the working
 * directory; all files are read from anywhere. What must be accepted is accepted and then read back, anything else is
 * refused with the error that is documented and changes nothing. MOST is the greatest number of contexts.
 *
 * WHO says what must be refused, and is up to the caller to be:
 *
 *	root		may set all
 *	nobody		without rights, also where it is root of a user namespace of its own
 *	container	root without capabilities, below a /sys that is read-only and without debugfs
 *
 * Prints how many inputs each target took and refused. At the first wrong answer it says which, and ends with
 * status 1. The same arguments do the same.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* As in include/uapi/linux/write_stream.h, which no distribution has. */
struct fs_write_stream {
	uint32_t op_flags;
	union {
		uint32_t stream_id;
		uint32_t max_streams;
	};
	uint64_t __reserved;
};

enum { FS_WRITE_STREAM_OP_GET_MAX = 1, FS_WRITE_STREAM_OP_GET = 2, FS_WRITE_STREAM_OP_SET = 4 };

#define FS_IOC_WRITE_STREAM _IOWR('f', 135, struct fs_write_stream)

enum { PAGE = 4096, LONGEST = 2 * PAGE };

#define DEBUGFS "/sys/kernel/debug"

static const struct who {
	const char *name;
	/* errors; 0: none, it may */
	int set, change_rights, see_statistics;
} all[] = {
	{ "root", 0, 0, 0 },
	{ "nobody", EACCES, EPERM, EACCES },
	{ "container", EROFS, EROFS, ENOENT },
};

static const struct who *who;

struct target {
	const char *name;
	const char *const *words;	/* a choice of these, or */
	unsigned int least, most;	/* a number */
	int base;			/* as of strtoul() */
	bool takes_auto;
	char path[PATH_MAX];
	long taken, refused;
};

static const char *const affinities[] = { "fs", "ino", "rotor", "least-loaded", NULL };
static const char *const modes[] = { "off", "ag-hint", "rotor", "generic", NULL };

static struct target targets[] = {
	{ .name = "nwritebacks", .least = 1, .base = 10, .takes_auto = true },
	{ .name = "wb_affinity", .words = affinities },
	{ .name = "wb_workers", .least = 1, .most = 8, .base = 10 },
	{ .name = "writeback/overwrite", .words = modes },
	{ .name = "writeback/delalloc", .words = modes },
	{ .name = "write_streams/hardware", .most = 1 },
	{ .name = "write_streams/software", .most = 255 },
	{ .name = "write_streams/stream_ags", .most = 1 },
	{ .name = "write_streams/generic_ags", .least = 1, .most = 64 },
};

enum { OF_BDI = 3, TARGETS = sizeof(targets) / sizeof(targets[0]) };

/* In debugfs, for root to read. */
static struct statistics {
	const char *name;
	char path[PATH_MAX];
	long taken, refused;
} statistics[] = { { .name = "stats" }, { .name = "wb_stats" }, { .name = "writeback" } };

enum { STATISTICS = sizeof(statistics) / sizeof(statistics[0]) };

/* In debugfs of kernels for tests, for root: any name of a place, which need not be one. */
enum { LONGEST_NAME = 31 };

static struct statistics test_point = { .name = "wb_test_point", .path = DEBUGFS "/wb_test_point" };

static uint64_t state;
static long taken, refused;		/* by the ioctl */

static void fail(const char *form, ...)
{
	va_list words;

	va_start(words, form);
	printf("wrong: ");
	vprintf(form, words);
	printf(": %s\n", strerror(errno));
	va_end(words);
	exit(1);
}

/* xorshift64*, by Vigna */
static uint64_t chance(uint64_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 2685821657736338717ULL % below;
}

/* As kstrtouint() reads it: a newline may follow, and nothing else. */
static bool is_number(const char *text, int base, unsigned int *value)
{
	unsigned long found;
	char *end;

	if (*text == '+')
		text++;
	if (!isxdigit((unsigned char)*text))
		return false;
	errno = 0;
	found = strtoul(text, &end, base);
	if (errno || end == text || found > UINT_MAX || (*end == '\n' ? end[1] : *end))
		return false;
	/* "0x" without a digit is no number for the kernel */
	if (end[-1] == 'x' || *end == 'x')
		return false;
	*value = found;
	return true;
}

/* As sysfs_streq() does: a newline at the end does not count. */
static bool is_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	return !strncmp(text, word, length) && (!text[length] || !strcmp(text + length, "\n"));
}

/* "auto", also with a number behind it, as it reads: the kernel's sscanf() takes blanks around that. */
static bool is_auto(const char *text)
{
	int end = 0;

	if (is_word(text, "auto"))
		return true;
	sscanf(text, "auto ( %*[0-9])%n", &end);
	return end && is_word(text + end, "");
}

/* Says whether a target must take the text, and what it then reads as. */
static bool is_right(const struct target *target, const char *text, char *reads)
{
	unsigned int value;

	for (int i = 0; target->words && target->words[i]; i++) {
		if (is_word(text, target->words[i]))
			return strcpy(reads, target->words[i]);
	}
	if (target->words)
		return false;
	if (target->takes_auto && is_auto(text))
		return strcpy(reads, "auto");
	if (!is_number(text, target->base, &value) || value < target->least || value > target->most)
		return false;
	sprintf(reads, "%u", value);
	return true;
}

static int open_or_fail(const char *path, int flags)
{
	int file = open(path, flags);

	if (file < 0)
		fail("%s cannot be opened", path);
	return file;
}

/* Reads a setting as it is shown. */
static size_t read_all(const struct target *target, char *text)
{
	int file = open_or_fail(target->path, O_RDONLY);
	ssize_t length = read(file, text, PAGE - 1);

	if (length <= 0)
		fail("%s cannot be read", target->name);
	close(file);
	text[length] = 0;
	return length;
}

/* Reads a setting: the word in brackets, or the first word. */
static void read_setting(const struct target *target, char *reads)
{
	char text[PAGE], *begin = text;

	read_all(target, text);
	if (target->words) {
		begin = strchr(text, '[');
		if (!begin || strchr(begin + 1, '['))
			fail("%s reads %s", target->name, text);
		begin++;
	}
	begin[strcspn(begin, "] \n")] = 0;
	strcpy(reads, begin);
}

/* Reads some of a file from anywhere: text, and nothing behind what was read. Returns its length; 0 if it is refused. */
static size_t read_part(const char *path, char *text, off_t *from)
{
	size_t size = chance(LONGEST);
	int file = open_or_fail(path, O_RDONLY);
	bool bad = !chance(16);
	ssize_t length;

	*from = chance(4) ? (off_t)chance(chance(2) ? 100 : LONGEST) : (off_t)chance(UINT64_MAX);
	memset(text, 0, LONGEST);
	length = pread(file, bad ? (char *)-PAGE : text, size, *from);
	if (*from < 0 ? length != -1 || errno != EINVAL :
	    bad ? length > 0 || (length < 0 && errno != EFAULT) : length < 0)
		fail("%s gave %zd of %zu bytes at %lld", path, length, size, (long long)*from);
	close(file);
	for (ssize_t i = 0; i < LONGEST; i++) {
		if (i < length ? !isprint((unsigned char)text[i]) && text[i] != '\n' : text[i] != 0)
			fail("%s has \\%03o at %lld", path, (unsigned char)text[i], (long long)*from + i);
	}
	return length < 0 ? 0 : length;
}

static size_t noise(char *text)
{
	size_t length = chance(20) ? chance(40) : chance(LONGEST);

	for (size_t i = 0; i < length; i++)
		text[i] = chance(2) ? (char)chance(256) : "0123456789+-x \n[]auto"[chance(21)];
	return length;
}

static size_t number(const struct target *target, char *text)
{
	static const char *const forms[] = { "%lld", "%lld\n", "+%lld", "%lld\n\n", " %lld", "%lld ", "0x%llx", "0%llo", "%lldk" };
	const long long near[] = {
		target->least, target->most, target->least - 1LL, target->most + 1LL, 0, -1, INT_MAX, UINT_MAX,
		UINT_MAX + 1LL, LLONG_MAX, LLONG_MIN, chance(target->most + 2LL),
	};
	long long value = near[chance(sizeof(near) / sizeof(near[0]))];

	/* most inputs are ordinary ones */
	if (chance(2))
		value = target->least + chance(target->most - target->least + 1);
	return sprintf(text, forms[chance(3) ? chance(2) : chance(sizeof(forms) / sizeof(forms[0]))], value);
}

static size_t word(const struct target *target, char *text)
{
	static const char *const autos[] = { "auto", "auto (3)", "auto (3" };
	static const char *const tails[] = { "", "\n", "\n\n", " ", "x", "\t\n" };
	int count = 0;

	while (target->words && target->words[count])
		count++;
	return sprintf(text, "%s%s", count ? target->words[chance(count)] : autos[chance(3)],
		       tails[chance(3) ? chance(2) : chance(sizeof(tails) / sizeof(tails[0]))]);
}

static size_t input(const struct target *target, char *text)
{
	size_t length;

	switch (chance(8)) {
	case 0:
		return noise(text);
	case 1 ... 3:
		length = word(target, text);
		break;
	default:
		length = target->words ? word(target, text) : number(target, text);
		break;
	}
	/* one byte of it is another one */
	if (length && !chance(8))
		text[chance(length)] = chance(256);
	return length;
}

static void try_setting(struct target *target)
{
	char text[LONGEST + 1], before[PAGE], after[PAGE], wanted[PAGE];
	size_t length = input(target, text);
	size_t seen = length < PAGE ? length : PAGE;
	bool bad = length && !chance(32);
	int file = open_or_fail(target->path, O_WRONLY);
	ssize_t written;
	int error;
	bool right;

	read_setting(target, before);
	/* the kernel sees a string, and no more of it than a page */
	written = write(file, bad ? (char *)-PAGE : text, length);
	error = written < 0 ? errno : 0;
	close(file);
	text[seen] = 0;
	right = length && !bad && is_right(target, text, wanted);
	read_setting(target, after);
	if (right ? written != (ssize_t)seen || strcmp(after, wanted) : strcmp(after, before) ||
	    (length && error != (bad ? EFAULT : EINVAL)))
		fail("%s was %s, took %zd of %zu bytes \"%.40s\" and is %s", target->name, before, written, length, text,
		     after);
	*(right ? &target->taken : &target->refused) += 1;
}

/* What whoever may not set tries. */
static void try_to_get_in(struct target *target)
{
	char before[PAGE], after[PAGE];

	read_setting(target, before);
	if (open(target->path, chance(2) ? O_WRONLY : O_RDWR | O_TRUNC) >= 0 || errno != who->set)
		fail("%s can be opened by %s", target->name, who->name);
	if (!chance(8) && (!chmod(target->path, 0666) || errno != who->change_rights))
		fail("the rights of %s can be changed by %s", target->name, who->name);
	if (!chance(8) && (!chown(target->path, getuid(), getgid()) || errno != who->change_rights))
		fail("the owner of %s can be changed by %s", target->name, who->name);
	read_setting(target, after);
	if (strcmp(before, after))
		fail("%s was %s and is %s", target->name, before, after);
	target->refused++;
}

static void try_part_of_setting(const struct target *target)
{
	char text[PAGE], part[LONGEST];
	off_t from;
	size_t whole = read_all(target, text), length = read_part(target->path, part, &from);

	/* the number behind it is the kernel's, which may have another by now */
	if (!strncmp(text, "auto", strlen("auto")))
		return;
	if (length && ((size_t)from + length > whole || memcmp(part, text + from, length)))
		fail("%s reads %s, and %s from %lld on", target->name, text, part, (long long)from);
}

/* Who may not see debugfs can neither read nor write there. Returns whether it is so. */
static bool is_kept_out(struct statistics *it)
{
	if (!who->see_statistics)
		return false;
	if (open(it->path, chance(2) ? O_RDONLY : O_WRONLY) >= 0 || errno != who->see_statistics)
		fail("%s can be opened by %s", it->path, who->name);
	it->refused++;
	return true;
}

/* As the kernel's isspace(): a blank of Latin-1 is one. */
static bool is_blank(unsigned char byte)
{
	return isspace(byte) || byte == 0xa0;
}

/* Reads the name that the test point has. */
static void read_name(char *name)
{
	int file = open_or_fail(test_point.path, O_RDONLY);
	ssize_t length = read(file, name, PAGE - 1);

	close(file);
	if (length <= 0 || name[length - 1] != '\n')
		fail("%s gave %zd bytes", test_point.name, length);
	name[length - 1] = 0;
}

static void try_test_point(void)
{
	char text[LONGEST + 1], before[PAGE], after[PAGE], *wanted = text, *end;
	size_t length;
	ssize_t written;
	int file, error;
	bool bad, right;

	if (is_kept_out(&test_point))
		return;
	length = noise(text);
	bad = length && !chance(32);
	right = length <= LONGEST_NAME && !bad;
	read_name(before);
	file = open_or_fail(test_point.path, chance(2) ? O_WRONLY : O_RDWR);
	written = write(file, bad ? (char *)-PAGE : text, length);
	error = written < 0 ? errno : 0;
	close(file);
	text[length] = 0;
	for (end = text + strlen(text); end > text && is_blank(end[-1]); end--)
		end[-1] = 0;
	while (is_blank(*wanted))
		wanted++;
	read_name(after);
	if (right ? written != (ssize_t)length || strcmp(after, wanted) :
	    strcmp(after, before) || error != (bad ? EFAULT : EINVAL))
		fail("%s was %s, took %zd of %zu bytes and is %s", test_point.name, before, written, length, after);
	*(right ? &test_point.taken : &test_point.refused) += 1;
}

/* It changes all the time: whether it is right is for others to say. */
static void try_statistics(struct statistics *it)
{
	char text[LONGEST];
	off_t from;
	int file;

	if (is_kept_out(it))
		return;
	if (chance(2)) {
		read_part(it->path, text, &from);
		it->taken++;
		return;
	}
	file = open_or_fail(it->path, chance(2) ? O_WRONLY : O_RDWR);
	if (write(file, text, noise(text)) >= 0 || errno != EINVAL)
		fail("%s can be written", it->path);
	close(file);
	it->refused++;
}

static void expect(int file, unsigned long request, struct fs_write_stream *arg, int wanted, const char *what)
{
	int error = ioctl(file, request, arg) ? errno : 0;

	if (error != wanted)
		fail("ioctl on %s gave %d, not %d", what, error, wanted);
	*(error ? &refused : &taken) += 1;
}

static unsigned int stream_of(int file)
{
	struct fs_write_stream get = { .op_flags = FS_WRITE_STREAM_OP_GET };

	expect(file, FS_IOC_WRITE_STREAM, &get, 0, "a file");
	return get.stream_id;
}

static void try_ioctl(int own, int readable, int folder)
{
	struct fs_write_stream most = { .op_flags = FS_WRITE_STREAM_OP_GET_MAX };
	struct fs_write_stream arg = {
		.op_flags = chance(2) ? 1U << chance(3) : chance(4) ? chance(16) : chance(1ULL << 32),
		.stream_id = chance(2) ? chance(20) : chance(4) ? chance(300) : chance(1ULL << 32),
		.__reserved = chance(8) ? 0 : 1ULL << chance(64),
	};
	unsigned int set = arg.stream_id, before = stream_of(own), after;
	bool sets = arg.op_flags == FS_WRITE_STREAM_OP_SET;
	bool known = arg.op_flags == FS_WRITE_STREAM_OP_GET_MAX || arg.op_flags == FS_WRITE_STREAM_OP_GET || sets;
	bool right = known && !arg.__reserved;
	unsigned long request = FS_IOC_WRITE_STREAM;
	struct fs_write_stream *given = &arg;
	const char *what = "a file";
	int file = own, wanted;

	expect(own, request, &most, 0, what);
	if (most.max_streams > 255)
		fail("there are %u streams", most.max_streams);
	wanted = right && !(sets && set > most.max_streams) ? 0 : EINVAL;
	switch (chance(8)) {
	case 0:
		given = chance(2) ? NULL : (void *)-PAGE;
		wanted = EFAULT;
		what = "a bad address";
		break;
	case 1:
		file = folder;
		wanted = ENOTTY;
		what = "a folder";
		break;
	case 2:
		file = readable;
		wanted = !right ? EINVAL : sets ? EBADF : 0;
		what = "a file that is not open for writing";
		break;
	case 3:
		/* another size of the argument is another ioctl */
		request += 1UL << _IOC_SIZESHIFT;
		wanted = ENOTTY;
		what = "a request of another size";
		break;
	}
	expect(file, request, given, wanted, what);
	after = stream_of(own);
	if (after != (sets && !wanted ? set : before))
		fail("stream %u was to become %u, with %d from the ioctl on %s, and is %u", before, set, wanted, what, after);
}

static void try_everything(long count)
{
	int own = open(who->name, O_RDWR | O_CREAT, 0644);
	int readable = open_or_fail(who->name, O_RDONLY), folder = open_or_fail(".", O_RDONLY);

	if (own < 0)
		fail("%s cannot be made", who->name);
	while (count--) {
		struct target *target = &targets[chance(TARGETS)];

		switch (chance(12)) {
		case 0 ... 3:
			try_ioctl(own, readable, folder);
			break;
		case 4:
			try_part_of_setting(target);
			break;
		case 5:
			if (chance(STATISTICS + 1))
				try_statistics(&statistics[chance(STATISTICS)]);
			else
				try_test_point();
			break;
		default:
			(who->set ? try_to_get_in : try_setting)(target);
			break;
		}
	}
	for (int i = 0; i < TARGETS; i++)
		printf("%s %s: %ld taken, %ld refused\n", who->name, targets[i].name, targets[i].taken, targets[i].refused);
	for (int i = 0; i < STATISTICS; i++)
		printf("%s %s: %ld taken, %ld refused\n", who->name, statistics[i].name, statistics[i].taken,
		       statistics[i].refused);
	printf("%s %s: %ld taken, %ld refused\n", who->name, test_point.name, test_point.taken, test_point.refused);
	printf("%s ioctl: %ld taken, %ld refused\n", who->name, taken, refused);
}

int main(int argc, char **argv)
{
	const char *bdi, *xfs;
	long count;

	for (size_t i = 0; argc == 7 && i < sizeof(all) / sizeof(all[0]); i++)
		who = strcmp(argv[1], all[i].name) ? who : &all[i];
	if (!who) {
		fprintf(stderr, "usage: %s root|nobody|container SEED COUNT BDI XFS MOST\n", argv[0]);
		return 2;
	}
	state = strtoull(argv[2], NULL, 0) * 2 + 1;
	count = atol(argv[3]);
	bdi = argv[4];
	xfs = argv[5];
	targets[0].most = atoi(argv[6]);
	for (int i = 0; i < TARGETS; i++)
		snprintf(targets[i].path, PATH_MAX, "%s/%s", i < OF_BDI ? bdi : xfs, targets[i].name);
	for (int i = 0; i < STATISTICS; i++) {
		bool of_xfs = i == STATISTICS - 1;

		snprintf(statistics[i].path, PATH_MAX, DEBUGFS "/%s/%s/%s", of_xfs ? "xfs" : "bdi",
			 basename(of_xfs ? xfs : bdi), statistics[i].name);
	}
	try_everything(count);
	printf("%ld inputs of %s, all as documented\n", count, who->name);
	return 0;
}
