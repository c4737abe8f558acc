# SPDX-License-Identifier: GPL-2.0
"""wbctl with anything as arguments, as settings that are pinned, in sysfs and as names of files.

Inputs are made up by a seed: right ones, nearly right ones and noise. Whatever comes, wbctl does not crash,
and the compiler's checks at run time find nothing; it ends with a status of its manual, and has written
nothing that it refused.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tried import Tried
from tests.unit.test_wbctl import CONTEXTS, Machine, context
from tests.unit.test_wbctl_stream import MAX_STREAM, Files

SANITIZED = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
# A report ends wbctl with a status that it does not have by itself. The made-up ioctl is loaded ahead of it.
REPORT = 99
OPTIONS = {
    "ASAN_OPTIONS": f"exitcode={REPORT}:verify_asan_link_order=0",
    "UBSAN_OPTIONS": f"exitcode={REPORT}",
    "LC_ALL": "C",
}
# Each input is a process.
SEEDS = [(1, 200), *(pytest.param(seed, 5_000, marks=pytest.mark.long) for seed in (2, 3))]

DISK = b"252:0"
POLICIES = [b"fs", b"ino", b"rotor", b"least-loaded"]
MOST_CONTEXTS, MOST_WORKERS = 8, 8
NUMBERS = [
    b"",
    b"0",
    b"1",
    b"2",
    b"08",
    b"8",
    b"9",
    b"-1",
    b"+1",
    b" 1",
    b"4294967297",
    b"9" * 30,
    b"auto",
    b"0x2",
]
SETTINGS = [
    *(key + value for key in (b"contexts=", b"workers=") for value in NUMBERS),
    *(b"affinity=" + value for value in (*POLICIES, b"", b"[fs]", b"random")),
    *(b"", b"contexts", b"=", b"contexts=1 workers=1", b"#"),
]


@pytest.fixture(autouse=True)
def _tried(tried: Tried, seed: int, count: int) -> None:
    tried(commands=count, seeds=1)


class Chance(random.Random):
    """Inputs by a seed."""

    def noise(self) -> bytes:
        """Return up to 20 bytes, or up to 6000; none is 0, which no argument can have."""
        length = self.randrange(20) if self.randrange(20) else self.randrange(6000)
        return bytes(self.choice((self.randrange(1, 256), *b"0123456789:=/.#- \n")) for _ in range(length))

    def nearly(self, text: bytes) -> bytes:
        """Return a text with a byte more, less or changed."""
        where = self.randrange(len(text) + 1)
        new = bytes([self.randrange(1, 256)])
        return text[:where] + self.choice((new, b"", text[where : where + 1] * 2)) + text[where + 1 :]

    def of(self, right: Sequence[bytes]) -> bytes:
        """Return one of these, one that is nearly right, or noise."""
        word = self.choice(right)
        return self.choices((word, self.nearly(word), self.noise()), (12, 3, 1))[0]

    def some(self, right: Sequence[bytes], most: int) -> list[bytes]:
        """Return up to so many."""
        return [self.of(right) for _ in range(self.randrange(most + 1))]


@dataclass(frozen=True)
class Ended:
    """How wbctl ended."""

    arguments: list[bytes]
    status: int
    out: bytes
    err: bytes

    def check(self, statuses: Sequence[int]) -> None:
        """Assert that it ended as the manual says; only what `apply` has set was printed before an error."""
        assert self.status in statuses, self
        assert self.status == 0 or (self.err.startswith(b"wbctl: ") and self.err.endswith(b"\n")), self
        assert self.status or not self.err, self
        assert not (self.status and self.out) or self.arguments[0] == b"apply", self


def wbctl(program: str | Path, arguments: list[bytes], **more: object) -> Ended:
    """Run it."""
    done = subprocess.run(
        [os.fsencode(program), *arguments],
        capture_output=True,
        check=False,
        timeout=60,
        **more,  # type: ignore[call-overload]
    )
    return Ended(arguments, done.returncode, done.stdout, done.stderr)


def is_right(setting: bytes) -> bool:
    """Tell whether the made-up disk takes a setting."""
    key, _, value = setting.partition(b"=")
    if key == b"affinity":
        return value in POLICIES
    most = {b"contexts": MOST_CONTEXTS, b"workers": MOST_WORKERS}.get(key, 0)
    is_number = re.fullmatch(rb"[0-9]+", value) and 1 <= int(value) <= most
    return bool(is_number) or setting == b"contexts=auto"


class Disk:
    """The made-up disk of test_wbctl, its settings and its pinned ones."""

    def __init__(self, machine: Machine) -> None:
        """Make it."""
        self.machine = machine
        machine.reset()
        machine.add_bdi("252:0", 2, CONTEXTS)
        disk = machine.add_block("252:0", "nullb0")
        machine.add_block("259:1", "nullb0/nullb0p1")
        (disk / "nullb0p1" / "partition").write_text("1\n")
        machine.add_bdi("0:52")
        folder = machine.nwritebacks().parent
        files = {b"contexts": "nwritebacks", b"affinity": "wb_affinity", b"workers": "wb_workers"}
        self.files = {key: folder / name for key, name in files.items()}
        self.right = {
            self.files[b"contexts"]: b"2\n",
            self.files[b"affinity"]: b"[fs] ino rotor least-loaded\n",
            self.files[b"workers"]: b"1\n",
            machine.stats(): machine.stats().read_bytes(),
            machine.possible: b"0-1\n",
            disk / "dev": b"252:0\n",
            disk / "nullb0p1" / "dev": b"259:1\n",
        }
        self.names = [
            DISK,
            b"nullb0",
            b"nullb0p1",
            b"259:1",
            *(os.fsencode(path) for path in machine.dev.iterdir()),
        ]
        self.others = [b"0:52", b"8:0", b"sdx", b"/", b"", b".", b"/proc", b"252:", b"../nullb0", b"--json"]

    def write(self, odd: Chance | None = None) -> None:
        """Set all files to what they should have; with odd some of them to something else."""
        for path, content in self.right.items():
            path.write_bytes(odd.of([content]) if odd and not odd.randrange(3) else content)

    def tree(self) -> dict[Path, bytes]:
        """Return what is in all files."""
        roots = self.machine.sys, self.machine.dev, self.machine.config.parent
        return {path: path.read_bytes() for root in roots for path in root.rglob("*") if path.is_file()}

    def run(self, arguments: list[bytes]) -> tuple[Ended, dict[Path, bytes]]:
        """Run wbctl, and return also what files had then that were changed."""
        before = self.tree()
        [program] = self.machine.command()
        ended = wbctl(program, arguments, env=OPTIONS)
        after = self.tree()
        assert before.keys() == after.keys(), ended
        ended.check((0, 1))
        return ended, {path: after[path] for path in after if after[path] != before[path]}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    machine = Machine(tmp_path_factory.mktemp("wbctl"), SANITIZED)
    machine.make()
    return machine


@pytest.fixture
def disk(machine: Machine) -> Disk:
    return Disk(machine)


@pytest.mark.parametrize(("seed", "count"), SEEDS)
@pytest.mark.timeout(7200)
def test_set_writes_what_is_right_and_nothing_else(disk: Disk, seed: int, count: int) -> None:
    chance = Chance(seed)
    ends = []
    for _ in range(count):
        disk.write()
        name = chance.of(disk.names + disk.others)
        setting = chance.of(SETTINGS)
        more = [] if chance.randrange(10) else chance.some(SETTINGS, 2)
        ended, changed = disk.run([b"set", name, setting, *more][: chance.choice((2, 9, 9, 9))])
        given = ended.arguments[1:]
        if ended.status or given[-1] == b"--help":
            assert not changed, ended
            assert not (len(given) == 2 and name in disk.names and is_right(setting)), ended
        elif name == b"0:52":
            # No block device: one context, which it has.
            assert setting == b"contexts=1", ended
        else:
            key, value = setting.split(b"=")
            assert is_right(setting), ended
            assert changed == {disk.files[key]: value}, ended
        ends.append(ended.status)
    assert set(ends) == {0, 1}


@pytest.mark.parametrize(("seed", "count"), SEEDS)
@pytest.mark.timeout(7200)
def test_apply_writes_what_it_says_and_nothing_else(disk: Disk, seed: int, count: int) -> None:
    chance = Chance(seed)
    ends = []
    for _ in range(count):
        disk.write()
        lines = [
            b" ".join([chance.of(disk.names + disk.others + [b"#"]), *chance.some(SETTINGS, 3)])
            for _ in range(chance.randrange(5))
        ]
        pinned = b"\n".join(lines) + chance.choice((b"", b"\n", b"\0", b"\0x\n"))
        disk.machine.config.write_bytes(pinned)
        ended, changed = disk.run(
            [b"apply", *chance.choice(([], [b"--if-pinned"])), chance.choice(disk.names)]
        )
        said = re.findall(rb"/etc/wbctl\.conf line (\d+): (.+)\n", ended.out)
        assert ended.out.count(b"\n") == len(said), ended
        wanted = {}
        for number, setting in said:
            assert is_right(setting), ended
            line = pinned.split(b"\n")[int(number) - 1]
            assert setting in line.split(), (ended, pinned)
            assert b"\0" not in line, (ended, pinned)
            key, value = setting.split(b"=")
            wanted[disk.files[key]] = value
        assert changed == wanted, (ended, pinned)
        ends.append((ended.status, bool(said)))
    assert set(ends) == {(status, said) for status in (0, 1) for said in (False, True)}


@pytest.mark.parametrize(("seed", "count"), SEEDS)
@pytest.mark.timeout(7200)
def test_contexts_reads_only(disk: Disk, seed: int, count: int) -> None:
    # The intervals are refused: a right one would go on for ever.
    chance = Chance(seed)
    flags = [b"--json", b"--watch=0", b"--watch=nan", b"--watch=1e9", b"--watch=", b"-x"]
    ends = []
    for _ in range(count):
        disk.write()
        words = [chance.of(disk.names + disk.others), *chance.choices(flags, k=chance.randrange(3))]
        ended, changed = disk.run([b"contexts", *chance.sample(words, len(words))])
        assert not changed, ended
        if not ended.status and b"--json" in words and words[-1] != b"--help":
            assert json.loads(ended.out)[0]["bdi"] in ("252:0", "0:52"), ended
        assert not (ended.status and set(words) <= {b"--json", *disk.names}), ended
        ends.append(ended.status)
    assert set(ends) == {0, 1}


@pytest.mark.parametrize(("seed", "count"), SEEDS)
@pytest.mark.timeout(7200)
def test_another_sysfs_than_it_expects(disk: Disk, seed: int, count: int) -> None:
    chance = Chance(seed)
    disk.right[disk.machine.stats()] += context(3, dirty=1).encode()
    ends = []
    for _ in range(count):
        disk.write(chance)
        name = chance.choice(disk.names)
        words = chance.choice(([b"contexts", name], [b"contexts"], [b"set", name, chance.choice(SETTINGS)]))
        ended, changed = disk.run([*words, *([] if words[0] == b"set" else chance.some([b"--json"], 1))])
        # Not more than the one value, and that to a setting.
        assert not changed if ended.status or words[0] == b"contexts" else len(changed) <= 1, ended
        assert changed.keys() <= set(disk.files.values()), ended
        ends.append(ended.status)
    assert set(ends) == {0, 1}


@pytest.mark.parametrize(("seed", "count"), SEEDS)
@pytest.mark.timeout(7200)
def test_commands_that_there_are_not(disk: Disk, seed: int, count: int) -> None:
    chance = Chance(seed)
    commands = [b"set", b"apply", b"contexts", b"stream", b"--help", b"", b"-h"]
    disk.write()
    for _ in range(count):
        ended, changed = disk.run(chance.some(commands, 3))
        assert not changed, ended


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    """Files with odd names, in a tree with a link and a pipe."""
    files = Files(tmp_path_factory.mktemp("stream"), f"{SANITIZED} -Werror")
    files.make()
    below = files.folder / "tree" / "below"
    below.mkdir(parents=True)
    for name in map(os.fsdecode, NAMES):
        (below / name).touch()
    for name in "one", "none":
        (files.folder / name).touch()
    (files.folder / "tree" / "link").symlink_to("../one")
    os.mkfifo(files.folder / "tree" / "pipe")
    yield files


NAMES = [b"two", b"\xff\xfe", b"new\nline", b'"\\', b"\xc3\xa4\xed\xa0\x80\xf4\x90\x80\x80", b"\x01" * 255]


@pytest.mark.parametrize(("seed", "count"), SEEDS)
@pytest.mark.timeout(7200)
def test_streams_are_set_where_they_are_right(files: Files, seed: int, count: int) -> None:
    chance = Chance(seed)
    paths = [b"one", b"tree", b"none", b"tree/link", b"tree/pipe", b"gone", b"", b"tree/below"]
    paths += [b"tree/below/" + name for name in NAMES]
    numbers = [b"%d" % number for number in (0, 1, MAX_STREAM, MAX_STREAM + 1, 999, 2**32 + 1)]
    ends = []
    for _ in range(count):
        files.state.write_bytes(bytes(1 << 16))
        word = chance.of([b"set", b"get", b"max"])
        arguments = [chance.of(paths), *([chance.of(numbers)] if word == b"set" else [])]
        arguments += chance.some([b"-r", b"--json"], 2)
        environment = {**OPTIONS, "LD_PRELOAD": str(files.root / "ioctl.so")}
        program = files.root / "wbctl" / "wbctl"
        ended = wbctl(program, [b"stream", word, *arguments], cwd=files.folder, env=environment)
        ended.check((0, 1, 2))
        streams = set(files.state.read_bytes())
        if word != b"set" or (ended.status and b"-r" not in arguments):
            assert streams == {0}, ended
        else:
            given = [int(text) for text in arguments if re.fullmatch(rb"[0-9]{1,3}", text)]
            assert streams <= {0, *(number for number in given if number <= MAX_STREAM)}, ended
        if not ended.status and b"--json" in arguments and arguments[-1] != b"--help":
            found = [os.fsencode(entry["path"]) for entry in json.loads(ended.out)]
            assert all(os.path.exists(os.path.join(os.fsencode(files.folder), path)) for path in found), ended
        ends.append(ended.status)
    assert set(ends) == {0, 1, 2}
