// SPDX-License-Identifier: GPL-2.0
/*
 * hostile SEED COUNT BDI XFS MOST: what do the settings of a device and of XFS, and the ioctl of write streams, make of
 * anything?
 *
 * COUNT inputs are made up by SEED: right ones, nearly right ones, and noise of any length. As root they are written to
 * the files below BDI (a folder of /sys/class/bdi) and XFS (one of /sys/fs/xfs), and given to the ioctl of files in
 * the working directory. What must be accepted is accepted and then read back, anything else is refused with
 * the error that is documented and changes nothing. MOST is the greatest number of contexts. A tenth of them goes to a
 * process of nobody: it may use the ioctl on its own files, and change no setting.
 *
 * Prints how many inputs each target took and refused. At the first wrong answer it says which, and ends with
 * status 1. The same arguments do the same.
 */
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
#include <sys/wait.h>
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

enum { PAGE = 4096, LONGEST = 2 * PAGE, NOBODY = 65534, SHARE_OF_NOBODY = 10 };

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
	if (target->takes_auto && is_word(text, "auto"))
		return strcpy(reads, "auto");
	if (!is_number(text, target->base, &value) || value < target->least || value > target->most)
		return false;
	sprintf(reads, "%u", value);
	return true;
}

/* Reads a setting: the word in brackets, or the first word. */
static void read_setting(const struct target *target, char *reads)
{
	char text[PAGE], *begin = text;
	int file = open(target->path, O_RDONLY);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);

	if (length <= 0)
		fail("%s cannot be read", target->name);
	close(file);
	text[length] = 0;
	if (target->words) {
		begin = strchr(text, '[');
		if (!begin || strchr(begin + 1, '['))
			fail("%s reads %s", target->name, text);
		begin++;
	}
	begin[strcspn(begin, "] \n")] = 0;
	strcpy(reads, begin);
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
	static const char *const tails[] = { "", "\n", "\n\n", " ", "x", "\t\n" };
	int count = 0;

	while (target->words && target->words[count])
		count++;
	return sprintf(text, "%s%s", count ? target->words[chance(count)] : "auto",
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
	int file = open(target->path, O_WRONLY);
	ssize_t written;
	int error;
	bool right;

	if (file < 0)
		fail("%s cannot be opened", target->name);
	read_setting(target, before);
	/* the kernel sees a string, and no more of it than a page */
	written = write(file, text, length);
	error = written < 0 ? errno : 0;
	close(file);
	text[seen] = 0;
	right = length && is_right(target, text, wanted);
	read_setting(target, after);
	if (right ? written != (ssize_t)seen || strcmp(after, wanted) : strcmp(after, before) ||
	    (length && error != EINVAL))
		fail("%s was %s, took %zd of %zu bytes \"%.40s\" and is %s", target->name, before, written, length, text,
		     after);
	*(right ? &target->taken : &target->refused) += 1;
}

static void expect(int file, struct fs_write_stream *arg, int wanted, const char *what)
{
	int error = ioctl(file, FS_IOC_WRITE_STREAM, arg) ? errno : 0;

	if (error != wanted)
		fail("ioctl on %s gave %d, not %d", what, error, wanted);
	*(error ? &refused : &taken) += 1;
}

static void try_ioctl(int own, int readable, int folder)
{
	struct fs_write_stream most = { .op_flags = FS_WRITE_STREAM_OP_GET_MAX };
	struct fs_write_stream arg = {
		.op_flags = chance(2) ? 1U << chance(3) : chance(4) ? chance(16) : chance(1ULL << 32),
		.stream_id = chance(2) ? chance(20) : chance(4) ? chance(300) : chance(1ULL << 32),
		.__reserved = chance(8) ? 0 : 1ULL << chance(64),
	};
	struct fs_write_stream get = { .op_flags = FS_WRITE_STREAM_OP_GET };
	unsigned int set = arg.stream_id;
	bool sets = arg.op_flags == FS_WRITE_STREAM_OP_SET && !arg.__reserved;
	bool known = arg.op_flags == FS_WRITE_STREAM_OP_GET_MAX || arg.op_flags == FS_WRITE_STREAM_OP_GET || sets;
	bool right = known && !arg.__reserved;

	expect(own, &most, 0, "a file");
	if (most.max_streams > 255)
		fail("there are %u streams", most.max_streams);
	switch (chance(8)) {
	case 0:
		expect(own, chance(2) ? NULL : (void *)-PAGE, EFAULT, "a bad address");
		return;
	case 1:
		expect(folder, &arg, ENOTTY, "a folder");
		return;
	case 2:
		expect(readable, &arg, !right ? EINVAL : sets ? EBADF : 0, "a file that is not open for writing");
		return;
	}
	expect(own, &arg, !right || (sets && set > most.max_streams) ? EINVAL : 0, "a file");
	if (!sets || set > most.max_streams)
		return;
	expect(own, &get, 0, "a file");
	if (get.stream_id != set)
		fail("stream %u was set, and %u is there", set, get.stream_id);
}

static void try_everything(long count, const char *name, bool may_set)
{
	int own = open(name, O_RDWR | O_CREAT, 0644), readable = open(name, O_RDONLY), folder = open(".", O_RDONLY);

	if (own < 0 || readable < 0 || folder < 0)
		fail("%s cannot be made", name);
	while (count--) {
		struct target *target = &targets[chance(TARGETS)];

		if (chance(3) == 0) {
			try_ioctl(own, readable, folder);
		} else if (may_set) {
			try_setting(target);
		} else {
			if (open(target->path, chance(2) ? O_WRONLY : O_RDWR) >= 0 || errno != EACCES)
				fail("%s can be opened by nobody", target->name);
			if (!chance(8) && (!chmod(target->path, 0666) || errno != EPERM))
				fail("the rights of %s can be changed by nobody", target->name);
			target->refused++;
		}
	}
	for (int i = 0; i < TARGETS; i++)
		printf("%s %s: %ld taken, %ld refused\n", name, targets[i].name, targets[i].taken, targets[i].refused);
	printf("%s ioctl: %ld taken, %ld refused\n", name, taken, refused);
	fflush(stdout);
}

/* Has a process without rights try. */
static void as_nobody(long count)
{
	int status;

	fflush(stdout);
	if (!fork()) {
		if (setgid(NOBODY) || setuid(NOBODY))
			fail("nobody cannot be become");
		try_everything(count, "nobody", false);
		exit(0);
	}
	if (wait(&status) < 0 || status)
		exit(1);
}

int main(int argc, char **argv)
{
	long count;

	if (argc != 6) {
		fprintf(stderr, "usage: %s SEED COUNT BDI XFS MOST\n", argv[0]);
		return 2;
	}
	state = strtoull(argv[1], NULL, 0) * 2 + 1;
	count = atol(argv[2]);
	targets[0].most = atoi(argv[5]);
	for (int i = 0; i < TARGETS; i++)
		snprintf(targets[i].path, PATH_MAX, "%s/%s", argv[i < OF_BDI ? 3 : 4], targets[i].name);
	if (chmod(".", 0777))
		fail("the working directory cannot be opened to all");
	as_nobody(count / SHARE_OF_NOBODY);
	try_everything(count - count / SHARE_OF_NOBODY, "root", true);
	printf("%ld inputs, all as documented\n", count);
	return 0;
}
