# SPDX-License-Identifier: GPL-2.0
"""What a log of make says of each object."""

from __future__ import annotations

from collections import Counter

from lab.check import messages

LOG = """\
  CC      fs/inode.o
../fs/inode.c: In function 'evict':
../fs/inode.c:12:6: warning: unused variable 'x' [-Wunused-variable]
   12 |  int x;
      |      ^
  CHECK   ../fs/inode.c
../fs/inode.c:700:6: warning: symbol 'y' was not declared. Should it be static?
  AR      fs/built-in.a
  CC [M]  fs/super.o
In file included from ../fs/super.c:3:
../include/linux/fs.h:3:1: warning: 'z' defined but not used, see line 7
Warning: ../fs/super.c:30 function parameter 'sb' not described in 'kill'
"""


def test_each_object_has_its_own() -> None:
    found = messages.parse(LOG.splitlines())
    assert found == {
        "fs/inode.o": Counter({"fs/inode.c: warning: unused variable 'x' [-Wunused-variable]": 1}),
        "../fs/inode.c": Counter(
            {"fs/inode.c: warning: symbol 'y' was not declared. Should it be static?": 1}
        ),
        "fs/built-in.a": Counter(),
        "fs/super.o": Counter(
            {
                "include/linux/fs.h: warning: 'z' defined but not used, see line N": 1,
                "fs/super.c: function parameter 'sb' not described in 'kill'": 1,
            }
        ),
    }


def test_kconfig_modpost_and_the_assembler_warn_in_other_words() -> None:
    log = """\
fs/xfs/Kconfig:12:warning: ignoring type redefinition
WARNING: unmet direct dependencies detected for FOO
WARNING: modpost: vmlinux: section mismatch in reference: f+0x1c (section: .text)
{standard input}:12: Warning: stand-alone data16 prefix
"""
    assert messages.parse(log.splitlines()) == {
        "": Counter(
            {
                "fs/xfs/Kconfig: warning: ignoring type redefinition": 1,
                "WARNING: unmet direct dependencies detected for FOO": 1,
                "WARNING: modpost: vmlinux: section mismatch in reference: f+ (section: .text)": 1,
                "{standard input}: Warning: stand-alone data16 prefix": 1,
            }
        )
    }


def test_what_was_said_as_often_before_is_not_new() -> None:
    before = {"a.o": Counter({"h: one": 2}), "gone.o": Counter({"gone": 1})}
    after = {"a.o": Counter({"h: one": 2, "h: two": 1}), "b.o": Counter({"h: two": 1})}
    assert messages.new(before, after) == ["h: two"]
    assert messages.new(before, {"a.o": Counter({"h: one": 3})}) == ["h: one"]


def test_new_file_says_of_a_header_what_others_do() -> None:
    before = {"a.o": Counter({"h: one": 2, "a.c: x": 1}), "b.o": Counter({"h: one": 3})}
    assert messages.new(before, {"new.o": Counter({"h: one": 3})}) == []
    assert messages.new(before, {"a.o": Counter({"h: one": 3})}) == ["h: one"]
    assert messages.new(before, {"new.o": Counter({"h: one": 4, "h: two": 1, "new.c: x": 1})}) == [
        "h: one",
        "h: two",
        "new.c: x",
    ]


def test_words_of_the_compiler_come_before_those_of_make() -> None:
    make = "make[2]: *** [../scripts/Makefile.build:289: fs/inode.o] Error 1"
    error = "../fs/inode.c:5:1: fatal error: no-such.h: No such file or directory"
    assert messages.errors([make, error]) == [error.removeprefix("../")]
    assert messages.errors(["  CC      fs/inode.o", make]) == [make]
