# SPDX-License-Identifier: GPL-2.0
"""``wbctl stream`` on this kernel, which has no write streams: a library in between makes them up.

The library also stands for a user who puts something else in a file's place just before it is opened.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.util.paths import REPO

SOURCES = REPO / "tools" / "wbctl"
UAPI = REPO / "kernel" / "include" / "uapi"
MAX_STREAM = 16

# Streams are kept by inode number in a file; files with a name that begins with none have no streams.
IOCTL = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/write_stream.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_STREAM 16

static unsigned char streams[1 << 16];	/* by inode number */

static void keep(const char *mode)
{
	FILE *file = fopen(STATE, mode);

	if (!file)
		return;
	if (*mode == 'r')
		fread(streams, sizeof(streams), 1, file);
	else
		fwrite(streams, sizeof(streams), 1, file);
	fclose(file);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct fs_write_stream *arg;
	unsigned char *stream;
	char path[64], name[4096] = "";
	struct stat st;
	va_list args;

	va_start(args, request);
	arg = va_arg(args, struct fs_write_stream *);
	va_end(args);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	readlink(path, name, sizeof(name) - 1);
	errno = ENOTTY;
	if (request != FS_IOC_WRITE_STREAM || strstr(name, "/none") || fstat(fd, &st))
		return -1;

	keep("r");
	/* XFS numbers the inodes of all groups alike in the low bits. */
	stream = &streams[st.st_ino * 0x9e3779b97f4a7c15ULL >> 48];
	errno = EINVAL;
	switch (arg->op_flags) {
	case FS_WRITE_STREAM_OP_GET_MAX:
		arg->max_streams = MAX_STREAM;
		return 0;
	case FS_WRITE_STREAM_OP_GET:
		arg->stream_id = *stream;
		return 0;
	case FS_WRITE_STREAM_OP_SET:
		if (arg->stream_id > MAX_STREAM)
			return -1;
		*stream = arg->stream_id;
		keep("w");
		return 0;
	}
	return -1;
}

int open(const char *path, int flags, ...)
{
	int (*libc_open)(const char *path, int flags, ...) = dlsym(RTLD_NEXT, "open");
	const char *replaced = getenv("REPLACED"), *by = getenv("BY");
	const char *removed = getenv("REMOVED");

	if (replaced && by && !strcmp(path, replaced))
		rename(by, path);
	if (removed && !strcmp(path, removed))
		unlink(path);
	return libc_open(path, flags);
}
"""


class Files:
    """A folder with files whose streams are made up, and the wbctl that works on them."""

    def __init__(self, root: Path, cflags: str = "-O2") -> None:
        self.root = root
        self.cflags = cflags
        self.folder = root / "files"
        self.state = root / "state"

    def make(self) -> None:
        tree = self.root / "wbctl"
        subprocess.run(["cp", "-r", str(SOURCES), str(tree)], check=True)
        variables = [f"UAPI={UAPI}", f"CFLAGS={self.cflags}"]
        subprocess.run(["make", "--silent", "-B", "-C", str(tree), *variables], check=True)
        source = self.root / "ioctl.c"
        source.write_text(IOCTL)
        state = f"""-DSTATE="{self.state}\""""
        options = ["-shared", "-fPIC", "-O2", "-w", f"-I{UAPI}", state]
        subprocess.run(["gcc", *options, "-o", str(self.root / "ioctl.so"), str(source)], check=True)

    def call(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "wbctl" / "wbctl"), "stream", *arguments],
            cwd=self.folder,
            env={**os.environ, "LC_ALL": "C", "LD_PRELOAD": str(self.root / "ioctl.so"), **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def run(self, *arguments: str, **more: str) -> str:
        done = self.call(*arguments, **more)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def fails(self, *arguments: str, status: int = 1, **more: str) -> str:
        done = self.call(*arguments, **more)
        assert (done.returncode, done.stdout) == (status, "")
        [sentence] = done.stderr.splitlines()
        assert sentence.startswith("wbctl: ")
        return sentence.removeprefix("wbctl: ")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Files:
    files = Files(tmp_path_factory.mktemp("stream"))
    files.make()
    return files


@pytest.fixture
def files(built: Files) -> Iterator[Files]:
    """A tree of files, a link and a pipe among them."""
    built.state.unlink(missing_ok=True)
    (built.folder / "tree" / "below").mkdir(parents=True)
    for name in ("one", "tree/two", "tree/below/three", "none"):
        (built.folder / name).touch()
    (built.folder / "tree" / "link").symlink_to("../one")
    os.mkfifo(built.folder / "tree" / "pipe")
    yield built
    subprocess.run(["rm", "-r", str(built.folder)], check=True)


def test_maximum(files: Files) -> None:
    assert files.run("max", "one") == f"{MAX_STREAM}\n"
    assert json.loads(files.run("max", "--json", "one")) == [{"path": "one", "max": MAX_STREAM}]


def test_get_and_set(files: Files) -> None:
    assert files.run("get", "one") == "0\n"
    assert files.run("set", "one", "3") == ""
    assert files.run("get", "one") == "3\n"
    assert json.loads(files.run("get", "one", "--json")) == [{"path": "one", "stream": 3}]
    assert json.loads(files.run("set", "--json", "one", "0")) == [{"path": "one", "stream": 0}]
    assert files.run("get", "one") == "0\n"


def test_trees(files: Files) -> None:
    assert files.run("set", "-r", "tree", "5") == ""
    assert sorted(files.run("get", "-r", "tree").splitlines()) == [
        "  5 tree/below/three",
        "  5 tree/two",
    ]
    assert files.run("get", "one") == "0\n"
    shown = json.loads(files.run("get", "-r", "--json", "tree"))
    assert sorted(shown, key=lambda one: str(one["path"])) == [
        {"path": "tree/below/three", "stream": 5},
        {"path": "tree/two", "stream": 5},
    ]
    assert files.run("get", "-r", "one") == "  0 one\n"


def test_files_that_are_gone_when_their_turn_comes(files: Files) -> None:
    """A directory in use, such as the log of a database, has files that come and go."""
    victim = files.folder / "tree" / "two"
    assert files.run("get", "-r", "tree", REMOVED="tree/two") == "  0 tree/below/three\n"
    assert not victim.exists()


def test_a_tree_without_files(files: Files) -> None:
    (files.folder / "empty").mkdir()
    assert files.run("get", "-r", "empty") == ""
    assert files.run("get", "-r", "--json", "empty") == "[]\n"


@pytest.mark.parametrize("name", ["way", "way/"])
def test_a_link_to_a_tree_is_not_walked_through(files: Files, name: str) -> None:
    (files.folder / "way").symlink_to("tree")
    said = files.fails("set", "-r", name, "5")
    assert said == f"'{name}' is a symbolic link, which -r does not follow: give '{name}/.'"
    files.run("set", "-r", "way/.", "5")
    assert files.run("get", "tree/two") == "5\n"


def test_a_link_that_is_named_is_followed(files: Files) -> None:
    files.run("set", "tree/link", "7")
    assert files.run("get", "one") == "7\n"


@pytest.mark.parametrize(
    ("arguments", "name", "by"),
    [
        (("set", "-r", "tree", "5"), "tree/below/three", "tree/pipe"),
        (("set", "-r", "tree", "5"), "tree/below/three", "outside"),
        (("get", "one"), "one", "tree/pipe"),
    ],
)
def test_what_is_put_in_the_place_of_a_file_is_not_opened(
    files: Files, arguments: tuple[str, ...], name: str, by: str
) -> None:
    (files.folder / "outside").symlink_to(files.folder / "one")
    assert files.fails(*arguments, REPLACED=name, BY=by) == (
        f"'{name}' has changed meanwhile: give a regular file, or a directory with -r that stays"
    )
    if by == "outside":
        assert files.run("get", "one") == "0\n"


@pytest.mark.parametrize("name", ['a "quoted" name', "back\\slash", "new\nline", "Ä"])
def test_names_survive_json(files: Files, name: str) -> None:
    (files.folder / name).touch()
    assert json.loads(files.run("get", "--json", name)) == [{"path": name, "stream": 0}]


@pytest.mark.parametrize(
    "name",
    [
        *(b"\xff", b"\xc3", b"\x80ab", b"\xe2\x82", b"a\xf0\x9f\x98"),
        # Too long for what they say, half of a pair, beyond the last character, and no character begins so.
        *(b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80"),
        *("Ä€\U0001f600".encode(), "\ud7ff\ue000\uffff\U0010ffff".encode()),
    ],
)
def test_names_that_are_no_text_survive_json(files: Files, name: bytes) -> None:
    (files.folder / os.fsdecode(name)).touch()
    [found] = json.loads(files.run("get", "--json", os.fsdecode(name)))
    assert os.fsencode(found["path"]) == name


def test_no_streams_has_a_status_of_its_own(files: Files) -> None:
    sentence = files.fails("get", "none", status=2)
    assert sentence == "there are no write streams for 'none': use XFS and a kernel that has them"
    assert files.fails("set", "-r", ".", "1", status=2) == sentence.replace("none'", "./none'")


def test_above_the_maximum(files: Files) -> None:
    assert files.fails("set", "one", "17") == "'17' is out of range for 'one': expected 0 (none) to 16"


@pytest.mark.parametrize("number", ["", "-1", "1x", "two", "1000", " 1"])
def test_odd_numbers(files: Files, number: str) -> None:
    if number.startswith("-"):
        assert files.fails("set", "one", number) == f"unknown option '{number}': expected --json or -r"
    else:
        assert files.fails("set", "one", number) == (
            f"'{number}' is out of range: expected 0 (none) to the maximum, as in 'wbctl stream set FILE 2'"
        )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "'stream' expects max, get or set, as in 'wbctl stream get FILE'"),
        (("put",), "'stream' expects max, get or set, as in 'wbctl stream get FILE'"),
        (("get",), "no file: give a regular file, or a directory with -r"),
        (("get", "one", "2"), "'2' is one argument too many: give a regular file, or a directory with -r"),
        (
            ("set", "one"),
            "no stream for 'one': expected 0 (none) to the maximum, as in 'wbctl stream set FILE 2'",
        ),
        (
            ("set", "one", "1", "2"),
            "'2' is one argument too many: give a regular file, or a directory with -r",
        ),
        (("get", "-x", "one"), "unknown option '-x': expected --json or -r"),
        (("get", "tree"), "'tree' is not a regular file: give a regular file, or a directory with -r"),
        (
            ("get", "tree/pipe"),
            "'tree/pipe' is not a regular file: give a regular file, or a directory with -r",
        ),
        (
            ("get", "gone"),
            "there is no 'gone' (No such file or directory): give a regular file, or a directory with -r",
        ),
    ],
)
def test_usage(files: Files, arguments: tuple[str, ...], sentence: str) -> None:
    assert files.fails(*arguments) == sentence


def test_the_example_is_short_and_works_without_streams(files: Files) -> None:
    source = SOURCES / "stream-example.c"
    program = files.root / "example"
    assert len(source.read_text().splitlines()) <= 30
    subprocess.run(
        ["gcc", "-Wall", "-Wextra", "-Werror", f"-I{UAPI}", "-o", str(program), str(source)], check=True
    )
    log = files.folder / "none.log"
    subprocess.run([str(program), str(log)], check=True)
    subprocess.run([str(program), str(log)], check=True)
    assert log.read_text() == "a line\na line\n"
