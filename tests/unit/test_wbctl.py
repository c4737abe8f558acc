# SPDX-License-Identifier: GPL-2.0
"""tools/wbctl, compiled for a made-up sysfs: what it prints, what it writes and how it fails."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lab.util.paths import REPO

SOURCES = REPO / "tools" / "wbctl"
UAPI = REPO / "kernel" / "include" / "uapi"

STATS = """\
BdiWriteback:           12 kB
b_dirty:                 9
bdi_list:                1
state:                   1
"""

DISK = {
    "device": "nullb0",
    "bdi": "252:0",
    "nwritebacks": 2,
    "auto": False,
    "contexts": [
        {
            "index": 0,
            "dirty": 3,
            "io": 1,
            "more_io": 0,
            "dirty_time": 0,
            "flushed_kib": 1234,
            "running": True,
        },
        {
            "index": 1,
            "dirty": 0,
            "io": 0,
            "more_io": 2,
            "dirty_time": 5,
            "flushed_kib": 77,
            "running": False,
        },
    ],
}


def context(
    index: int, *, dirty: int = 0, io: int = 0, more_io: int = 0, time: int = 0, kib: int = 0, run: int = 0
) -> str:
    lists = f"b_dirty {dirty} b_io {io} b_more_io {more_io} b_dirty_time {time}"
    return f"Context {index}: {lists} flushed {kib} kB running {run}\n"


CONTEXTS = context(0, dirty=3, io=1, kib=1234, run=1) + context(1, more_io=2, time=5, kib=77)


class Machine:
    """A made-up /sys and /dev, and the wbctl that looks at them."""

    def __init__(self, root: Path, cflags: str = "-O2") -> None:
        self.root = root
        self.cflags = cflags
        self.sys = root / "sys"
        self.dev = root / "dev"
        self.debugfs = self.sys / "kernel" / "debug"
        self.possible = self.sys / "devices" / "system" / "cpu" / "possible"
        self.config = root / "etc" / "wbctl.conf"

    def make(self) -> None:
        shutil.copytree(SOURCES, self.root / "wbctl", ignore=shutil.ignore_patterns("wbctl"))
        self.make_install()

    def make_install(self) -> None:
        places = {"SYSFS_ROOT": self.sys, "DEV_ROOT": self.dev, "CONFIG": self.config}
        flags = " ".join(f"""-D{name}='"{place}"'""" for name, place in places.items())
        arguments = [
            f"CPPFLAGS={flags}",
            f"CFLAGS={self.cflags} -Werror",
            f"DESTDIR={self.root}",
            "PREFIX=/usr",
        ]
        arguments.append(f"UAPI={UAPI}")
        subprocess.run(
            ["make", "--silent", "-C", str(self.root / "wbctl"), *arguments, "install"], check=True
        )

    def reset(self) -> None:
        for tree in self.sys, self.dev:
            shutil.rmtree(tree, ignore_errors=True)
        for folder in "class/bdi", "class/block", "dev/block", "block", "kernel/debug/bdi":
            (self.sys / folder).mkdir(parents=True)
        self.dev.mkdir()
        self.possible.parent.mkdir(parents=True)
        self.possible.write_text("0-1\n")

    def add_block(self, number: str, place: str) -> Path:
        folder = self.sys / "block" / place
        folder.mkdir(parents=True)
        (folder / "dev").write_text(f"{number}\n")
        (self.sys / "dev" / "block" / number).symlink_to(folder)
        (self.sys / "class" / "block" / folder.name).symlink_to(folder)
        node = self.dev / folder.name.replace("!", "/")
        node.parent.mkdir(exist_ok=True)
        node.touch()
        return folder

    def add_bdi(self, number: str, nwritebacks: int = 1, contexts: str = context(0)) -> None:
        # The device comes last, and whole: somebody may be watching.
        self.stats(number).parent.mkdir()
        self.stats(number).write_text(STATS + contexts)
        new = self.root / f"{number}.new"
        new.mkdir()
        (new / "nwritebacks").write_text(f"{nwritebacks}\n")
        new.rename(self.nwritebacks(number).parent)

    def nwritebacks(self, number: str = "252:0") -> Path:
        return self.sys / "class" / "bdi" / number / "nwritebacks"

    def stats(self, number: str = "252:0") -> Path:
        return self.debugfs / "bdi" / number / "stats"

    def command(self, *arguments: str) -> list[str]:
        return [str(self.root / "usr" / "sbin" / "wbctl"), *arguments]

    def run(self, *arguments: str) -> str:
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        [line] = self.run("contexts", "--json", *arguments).splitlines()
        return json.loads(line)

    def fails(self, *arguments: str, prefix: tuple[str, ...] = ()) -> str:
        done = subprocess.run(
            [*prefix, *self.command(*arguments)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (1, "")
        [sentence] = done.stderr.splitlines()
        assert sentence.startswith("wbctl: ")
        return sentence.removeprefix("wbctl: ").replace(str(self.root), "")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    machine = Machine(tmp_path_factory.mktemp("wbctl"))
    machine.make()
    return machine


@pytest.fixture
def machine(built: Machine) -> Machine:
    """A machine with the disk nullb0, its partition, and two contexts."""
    built.reset()
    disk = built.add_block("252:0", "nullb0")
    built.add_block("259:1", "nullb0/nullb0p1")
    (disk / "nullb0p1" / "partition").write_text("1\n")
    built.add_bdi("252:0", 2, CONTEXTS)
    return built


NO_RIGHTS = ("setpriv", "--bounding-set=-all") if os.geteuid() == 0 else ()


# what is shown


def test_table(machine: Machine) -> None:
    assert machine.run("contexts") == (
        "nullb0 (252:0): nwritebacks 2\n"
        "context    dirty       io  more_io  dirty_time    flushed KiB  running\n"
        "      0        3        1        0           0           1234      yes\n"
        "      1        0        0        2           5             77       no\n"
    )


def test_number_that_the_kernel_has_found(machine: Machine) -> None:
    machine.nwritebacks().write_text("auto (2)\n")
    assert machine.run("contexts").splitlines()[0] == "nullb0 (252:0): nwritebacks auto (2)"
    assert machine.json() == [DISK | {"auto": True}]
    machine.stats().write_text(context(0) + context(2, dirty=1))
    assert machine.run("contexts").splitlines()[-1].endswith("  draining")


def test_json(machine: Machine) -> None:
    assert machine.json() == [DISK]


def test_keys_may_come_in_any_order(machine: Machine) -> None:
    machine.stats().write_text(
        "Context 0: new 4 running 1 flushed 8 kB b_dirty_time 4 b_more_io 3 b_io 2 b_dirty 1\n"
    )
    [disk] = machine.json()
    assert disk["contexts"] == [
        {
            "index": 0,
            "dirty": 1,
            "io": 2,
            "more_io": 3,
            "dirty_time": 4,
            "flushed_kib": 8,
            "running": True,
        }
    ]


def test_contexts_that_do_not_exist_are_left_out(machine: Machine) -> None:
    machine.stats().write_text(context(0) + context(3, dirty=1))
    [disk] = machine.json()
    assert [entry["index"] for entry in disk["contexts"]] == [0, 3]


@pytest.mark.parametrize(
    ("inodes", "mark"),
    [
        ({"dirty": 1}, "draining"),
        ({"io": 1}, "draining"),
        ({"more_io": 1}, "draining"),
        ({"time": 1}, "draining"),
        ({"kib": 9}, "idle"),
    ],
)
def test_a_context_without_new_inodes_is_marked(machine: Machine, inodes: dict[str, int], mark: str) -> None:
    machine.stats().write_text(context(0) + context(1) + context(2, **inodes))
    rows = machine.run("contexts").splitlines()[2:]
    assert [row.split()[7:] for row in rows] == [[], [], [mark]]


@pytest.mark.parametrize(
    "argument", ["252:0", "nullb0", "{dev}/nullb0", "259:1", "nullb0p1", "{dev}/nullb0p1"]
)
def test_names_of_a_device(machine: Machine, argument: str) -> None:
    machine.add_bdi("7:0")
    assert machine.json(argument.format(dev=machine.dev)) == [DISK]


def test_a_path_means_the_device_of_its_filesystem(machine: Machine, tmp_path: Path) -> None:
    machine.reset()
    device = os.stat(tmp_path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    machine.add_bdi(number)
    (tmp_path / "file").touch()
    for path in tmp_path, tmp_path / "file":
        [found] = machine.json(str(path))
        assert found["bdi"] == found["device"] == number


def test_a_block_device_below_any_name(machine: Machine, tmp_path: Path) -> None:
    node = next((entry for entry in Path("/dev").iterdir() if entry.is_block_device()), None)
    if node is None:
        pytest.skip("/dev has no block device")
    machine.reset()
    device = node.stat().st_rdev
    machine.add_bdi(f"{os.major(device)}:{os.minor(device)}")
    (tmp_path / "link").symlink_to(node)
    [found] = machine.json(str(tmp_path / "link"))
    assert found["bdi"] == f"{os.major(device)}:{os.minor(device)}"


def test_all_devices_in_the_order_of_their_numbers(machine: Machine) -> None:
    machine.add_bdi("7:0")
    machine.add_block("104:0", "cciss!c0d0")
    machine.add_bdi("104:0")
    for other in "btrfs-1", "8:1-fuseblk":
        machine.add_bdi(other)
    assert [disk["device"] for disk in machine.json()] == ["7:0", "cciss/c0d0", "nullb0"]
    headers = [line for line in machine.run("contexts").splitlines() if "nwritebacks" in line]
    assert headers == [
        "7:0 (7:0): nwritebacks 1",
        "cciss/c0d0 (104:0): nwritebacks 1",
        "nullb0 (252:0): nwritebacks 2",
    ]


def test_a_device_is_shown_once(machine: Machine) -> None:
    assert machine.json("nullb0", "nullb0p1") == [DISK]


def test_a_device_without_statistics_is_on_its_way_out(machine: Machine) -> None:
    machine.add_bdi("7:0")
    machine.stats("7:0").unlink()
    assert machine.json() == [DISK]


def test_odd_names_leave_json_intact(machine: Machine) -> None:
    machine.add_block("252:1", 'we"ird\\')
    machine.add_bdi("252:1")
    [disk] = machine.json("252:1")
    assert disk["device"] == "we?ird?"


# --watch


@pytest.fixture
def watch(machine: Machine) -> Iterator[subprocess.Popen[str]]:
    command = machine.command("contexts", "--json", "--watch=0.05", "nullb0")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as process:
        yield process
        process.terminate()


def next_context(watch: subprocess.Popen[str]) -> Any:
    assert watch.stdout is not None
    [disk] = json.loads(watch.stdout.readline())
    return disk["contexts"][0]


def replace(stats: Path, contexts: str) -> None:
    (stats.parent / "new").write_text(contexts)
    (stats.parent / "new").replace(stats)


def test_watch_shows_a_rate(machine: Machine, watch: subprocess.Popen[str]) -> None:
    assert next_context(watch)["flushed_kib_per_s"] is None
    assert next_context(watch)["flushed_kib_per_s"] == 0
    replace(machine.stats(), context(0, kib=2258))
    while (now := next_context(watch))["flushed_kib"] == 1234:
        pass
    assert 0 < now["flushed_kib_per_s"] <= 1024 / 0.05


def test_watch_knows_no_rate_when_the_counter_falls(machine: Machine, watch: subprocess.Popen[str]) -> None:
    next_context(watch)
    replace(machine.stats(), context(0, kib=1))
    while (now := next_context(watch))["flushed_kib"] == 1234:
        pass
    assert now["flushed_kib_per_s"] is None


def test_watch_ends_with_its_device(machine: Machine, watch: subprocess.Popen[str]) -> None:
    next_context(watch)
    shutil.rmtree(machine.nwritebacks().parent)
    assert watch.wait(timeout=60) == 1
    assert watch.stderr is not None
    assert watch.stderr.read() == "wbctl: the device 252:0 is gone: attach it again\n"


def test_watch_shows_devices_that_come_and_go(machine: Machine) -> None:
    with subprocess.Popen(
        machine.command("contexts", "--json", "--watch=0.05"), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert len(json.loads(process.stdout.readline())) == 1
        machine.add_bdi("7:0")
        while len(json.loads(process.stdout.readline())) == 1:
            pass
        shutil.rmtree(machine.nwritebacks("7:0").parent)
        while len(json.loads(process.stdout.readline())) == 2:
            pass
        process.terminate()


def test_watch_in_a_table(machine: Machine) -> None:
    with subprocess.Popen(
        machine.command("contexts", "--watch=0.05"), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(9)]
        process.terminate()
    assert "flushed KiB/s" in lines[1]
    assert [lines[2].split()[5], lines[7].split()[5]] == ["-", "0"]
    assert lines[4] == "\n"


def test_watch_clears_a_terminal(machine: Machine) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(machine.command("contexts", "--watch=0.05"), stdout=theirs) as process:
        os.close(theirs)
        text = os.read(ours, 8)
        process.terminate()
    os.close(ours)
    assert text.startswith(b"\x1b[H\x1b[2J")


# set


@pytest.mark.parametrize("argument", ["252:0", "nullb0", "{dev}/nullb0p1"])
def test_set_writes_the_value(machine: Machine, argument: str) -> None:
    assert machine.run("set", argument.format(dev=machine.dev), "contexts=4") == ""
    assert machine.nwritebacks().read_text() == "4"


def test_set_lets_the_kernel_find_the_number(machine: Machine) -> None:
    assert machine.run("set", "nullb0", "contexts=auto") == ""
    assert machine.nwritebacks().read_text() == "auto"


@pytest.mark.parametrize("value", ["", "0", "00", "-1", "+1", "two", "Auto", "2 ", " 2", "0x2", "1.5"])
def test_set_refuses_what_is_no_number(machine: Machine, value: str) -> None:
    assert machine.fails("set", "nullb0", f"contexts={value}") == (
        f"'contexts={value}' is out of range: "
        "expected auto, or 1 to 4 times the possible CPUs, as in contexts=2"
    )
    assert machine.nwritebacks().read_text() == "2\n"


@pytest.mark.parametrize(
    ("key", "attribute", "was", "value"),
    [
        ("affinity", "wb_affinity", "[fs] ino rotor least-loaded\n", "least-loaded"),
        ("workers", "wb_workers", "1\n", "4"),
    ],
)
def test_set_writes_each_setting(machine: Machine, key: str, attribute: str, was: str, value: str) -> None:
    file = machine.nwritebacks().with_name(attribute)
    file.write_text(was)
    assert machine.run("set", "nullb0", f"{key}={value}") == ""
    assert file.read_text() == value


NUMBER = "auto, or 1 to 4 times the possible CPUs, as in contexts=2"
POLICIES = "fs, ino or another that wb_affinity shows, as in affinity=fs"
WORKERS = "1 to 8, as in workers=4"


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        *((f"affinity={value}", POLICIES) for value in ("", "Fs", "fs ", "2", "inode", "least")),
        *((f"workers={value}", WORKERS) for value in ("", "0", "-1", "two", "9")),
    ],
)
def test_set_refuses_what_a_setting_does_not_take(machine: Machine, argument: str, expected: str) -> None:
    assert machine.fails("set", "nullb0", argument) == f"'{argument}' is out of range: expected {expected}"


def test_set_takes_the_policies_that_the_kernel_has(machine: Machine) -> None:
    shown = machine.nwritebacks().with_name("wb_affinity")
    for value in "fs", "ino":
        shown.write_text("[fs] ino\n")
        machine.run("set", "nullb0", f"affinity={value}")
        assert shown.read_text() == value
    shown.write_text("fs [ino]\n")
    for value in "least-loaded", "[ino]", "in", "":
        sentence = machine.fails("set", "nullb0", f"affinity={value}")
        assert sentence == f"'affinity={value}' is out of range: expected {POLICIES}"
    assert shown.read_text() == "fs [ino]\n"


@pytest.mark.parametrize(("possible", "most"), [("0", 4), ("0-1", 8), ("0-3,8", 20), ("0-1,4-5,7", 20)])
def test_set_knows_the_most_contexts(machine: Machine, possible: str, most: int) -> None:
    machine.possible.write_text(f"{possible}\n")
    machine.run("set", "nullb0", f"contexts={most}")
    for value in most + 1, 2**64:
        sentence = machine.fails("set", "nullb0", f"contexts={value}")
        assert sentence == f"'contexts={value}' is out of range: expected {NUMBER}"
    assert machine.nwritebacks().read_text() == str(most)


def test_bounds_and_policies_are_those_of_the_kernel() -> None:
    ours = (SOURCES / "setting.c").read_text()
    headers = [*(REPO / "kernel" / "include" / "linux").glob("*.h"), *(REPO / "hooks").glob("*/*.diff")]
    text = "".join(path.read_text() for path in headers)
    for name in "CTX_PER_CPU", "MAX_WORKERS":
        [bound] = re.findall(rf"#define {name} (\d+)\n", ours)
        assert re.findall(rf"#define \w+_{name}\s+(\d+)\n", text) == [bound]
    affinity = "".join(path.read_text() for path in (REPO / "kernel" / "mm").glob("*affinity.c"))
    added = "".join(re.findall(r"^\+.*\n", text, re.MULTILINE))
    policies = re.findall(r'\[\w*AFFINITY_\w+\]\s*= "(.+)"', affinity + added)
    completion = (SOURCES / "wbctl.bash").read_text()
    [offered] = re.findall(r"set:affinity:\*\)\n\s*words='(.+)'", completion)
    assert policies == offered.split()


def test_set_cannot_tell_the_possible_cpus(machine: Machine) -> None:
    machine.possible.unlink()
    assert machine.fails("set", "nullb0", "contexts=2") == (
        "cannot read /sys/devices/system/cpu/possible: mount sysfs"
    )


def refuse(machine: Machine, number: str) -> None:
    """The kernel refuses an adjustment of 5000 as it refuses too many contexts."""
    machine.possible.write_text("0-1999\n")
    machine.nwritebacks(number).unlink()
    machine.nwritebacks(number).symlink_to("/proc/self/oom_score_adj")


def test_set_says_what_the_kernel_accepts(machine: Machine) -> None:
    refuse(machine, "252:0")
    assert machine.fails("set", "nullb0", "contexts=5000") == (
        "'contexts=5000' is out of range: expected auto, or 1 to 4 times the possible CPUs, as in contexts=2"
    )


@pytest.mark.parametrize(("key", "value"), [("contexts", "2"), ("contexts", "auto"), ("workers", "2")])
def test_set_without_a_block_device_takes_1_only(machine: Machine, key: str, value: str) -> None:
    machine.add_bdi("0:52")
    assert machine.fails("set", "0:52", f"{key}={value}") == (
        f"'{key}={value}' is out of range: expected {key}=1, as 0:52 is no block device"
    )
    machine.run("set", "0:52", "contexts=1")
    assert machine.nwritebacks("0:52").read_text() == "1"


def test_set_without_the_right(machine: Machine) -> None:
    machine.nwritebacks().chmod(0o444)
    assert machine.fails("set", "nullb0", "contexts=2", prefix=NO_RIGHTS) == (
        "cannot write /sys/class/bdi/252:0/nwritebacks (Permission denied): run wbctl as root"
    )


def test_set_where_nothing_can_be_written(machine: Machine) -> None:
    machine.nwritebacks().unlink()
    machine.nwritebacks().symlink_to("/dev/full")
    assert machine.fails("set", "nullb0", "contexts=2") == (
        "cannot write /sys/class/bdi/252:0/nwritebacks (No space left on device): "
        "attach the device, and mount sysfs writable"
    )


# apply


@pytest.fixture
def pinned(machine: Machine) -> Machine:
    """The machine with a link to its disk and one to another, and all settings."""
    machine.add_block("252:1", "nullb1")
    machine.add_bdi("252:1")
    by_id = machine.dev / "disk" / "by-id"
    by_id.mkdir(parents=True)
    (by_id / "wwn-0x1").symlink_to("../../nullb0")
    (by_id / "wwn-0x1-part1").symlink_to("../../nullb0p1")
    (by_id / "wwn-0x2").symlink_to("../../nullb1")
    (by_id / "wwn-0x3").symlink_to("../../gone")
    for attribute, value in {"wb_affinity": "[fs] ino rotor least-loaded\n", "wb_workers": "1\n"}.items():
        machine.nwritebacks().with_name(attribute).write_text(value)
    return machine


def settings(machine: Machine) -> list[str]:
    names = ("nwritebacks", "wb_affinity", "wb_workers")
    return [machine.nwritebacks().with_name(name).read_text().split()[0] for name in names]


def pin(machine: Machine, *lines: str) -> None:
    by_id = str(machine.dev / "disk" / "by-id")
    machine.config.write_text("".join(f"{line}\n" for line in lines).replace("ID/", f"{by_id}/"))


@pytest.mark.parametrize("argument", ["252:0", "nullb0", "{dev}/nullb0", "{dev}/nullb0p1"])
def test_apply_sets_what_is_pinned_for_the_device(pinned: Machine, argument: str) -> None:
    pin(
        pinned,
        "# ID/wwn-0x1 contexts=9",
        "",
        "ID/wwn-0x2 contexts=3",
        "  ID/wwn-0x1\tcontexts=4  workers=2 # workers=3",
        "ID/wwn-0x3 contexts=5",
        "ID/wwn-0x1-part1 affinity=ino",
    )
    assert pinned.run("apply", argument.format(dev=pinned.dev)).replace(str(pinned.root), "") == (
        "/etc/wbctl.conf line 4: contexts=4\n"
        "/etc/wbctl.conf line 4: workers=2\n"
        "/etc/wbctl.conf line 6: affinity=ino\n"
    )
    assert settings(pinned) == ["4", "ino", "2"]
    assert pinned.nwritebacks("252:1").read_text() == "1\n"


def test_apply_leaves_a_number_that_the_kernel_has_found(pinned: Machine) -> None:
    """A disk changes whenever somebody has had it open, and to write "auto" begins from one context again."""
    pinned.nwritebacks().write_text("auto (8)\n")
    pin(pinned, "nullb0 contexts=auto workers=2")
    assert pinned.run("apply", "nullb0").endswith(
        "contexts=auto\n/etc/wbctl.conf line 1: workers=2\n".replace("/etc", str(pinned.config.parent))
    )
    assert pinned.nwritebacks().read_text() == "auto (8)\n"
    pinned.nwritebacks().write_text("8\n")
    pinned.run("apply", "nullb0")
    assert pinned.nwritebacks().read_text() == "auto"


@pytest.mark.parametrize("name", ["nullb0", "252:0", "nullb0p1"])
def test_a_line_may_name_the_device_in_any_way(pinned: Machine, name: str) -> None:
    pin(pinned, f"{name} contexts=7")
    pinned.run("apply", "nullb0")
    assert settings(pinned)[0] == "7"


def test_apply_as_it_comes_sets_nothing(pinned: Machine) -> None:
    shutil.copy(SOURCES / "wbctl.conf", pinned.config)
    assert pinned.run("apply", "--if-pinned", "nullb0") == ""
    assert settings(pinned) == ["2", "[fs]", "1"]


@pytest.mark.parametrize(
    "line", ["", "# nullb0 contexts=4", "ID/wwn-0x2 contexts=4", "ID/wwn-0x3 contexts=4"]
)
def test_apply_says_that_no_line_names_the_device(pinned: Machine, line: str) -> None:
    pin(pinned, line)
    assert pinned.fails("apply", "nullb0") == (
        "no line of /etc/wbctl.conf names 'nullb0': add one, see wbctl(8)"
    )
    assert pinned.run("apply", "--if-pinned", "nullb0") == ""


def test_apply_if_pinned_sets_what_is_pinned(pinned: Machine) -> None:
    pin(pinned, "ID/wwn-0x1 contexts=4")
    assert pinned.run("apply", "--if-pinned", "nullb0").endswith("line 1: contexts=4\n")
    assert settings(pinned)[0] == "4"


def test_a_link_to_a_disk_may_have_an_equals_sign(pinned: Machine) -> None:
    (pinned.dev / "disk" / "by-id" / "odd=name").symlink_to("../../nullb0")
    pin(pinned, "ID/odd=name contexts=4")
    pinned.run("apply", "nullb0")
    assert settings(pinned)[0] == "4"


def test_every_example_of_the_file_can_be_applied(pinned: Machine) -> None:
    examples = [line for line in (SOURCES / "wbctl.conf").read_text().splitlines() if "=" in line]
    assert examples
    for example in examples:
        pin(pinned, re.sub(r"^# \S+", "ID/wwn-0x1", example))
        assert pinned.run("apply", "nullb0").count("=") == example.count("=")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("ID/wwn-0x1 contexts=0", f"'contexts=0' is out of range: expected {NUMBER}"),
        ("ID/wwn-0x1 workers=2 affinity=", f"'affinity=' is out of range: expected {POLICIES}"),
        ("ID/wwn-0x1 affinity=ino contexts=9", f"'contexts=9' is out of range: expected {NUMBER}"),
        ("ID/wwn-0x1 contexts=4 affinity=random", f"'affinity=random' is out of range: expected {POLICIES}"),
        ("ID/wwn-0x1 contexts=4 workers=9", f"'workers=9' is out of range: expected {WORKERS}"),
        (
            "ID/wwn-0x1 contexts=4 workers=2 4",
            "'4' is not a setting: expected contexts=N, affinity=POLICY or workers=N",
        ),
        (
            "ID/wwn-0x1 contexts=4 worker=2",
            "'worker=2' is not a setting: expected contexts=N, affinity=POLICY or workers=N",
        ),
        ("/ contexts=2", "'/' is no block device: name one that is in /dev/disk/by-id"),
        ("UUID=1-2 contexts=2", "'UUID=1-2' is no block device: name one that is in /dev/disk/by-id"),
        ("contexts=2", "'contexts=2' is no block device: name one that is in /dev/disk/by-id"),
    ],
)
def test_a_line_with_a_mistake_sets_nothing(pinned: Machine, line: str, sentence: str) -> None:
    pin(pinned, "", line)
    assert pinned.fails("apply", "nullb0") == f"/etc/wbctl.conf line 2: {sentence}"
    assert settings(pinned) == ["2", "[fs]", "1"]


def test_a_line_with_a_policy_that_the_kernel_has_not_sets_nothing(pinned: Machine) -> None:
    pinned.nwritebacks().with_name("wb_affinity").write_text("[fs] ino\n")
    pin(pinned, "ID/wwn-0x1 contexts=4 affinity=least-loaded")
    assert pinned.fails("apply", "nullb0") == (
        f"/etc/wbctl.conf line 1: 'affinity=least-loaded' is out of range: expected {POLICIES}"
    )
    assert settings(pinned) == ["2", "[fs]", "1"]


# One that does not exist is refused as well: whether it does is not looked at.
@pytest.mark.parametrize("name", ["/", "/no/such/path", "./nullb0", "ID/..", "UUID=1-2"])
def test_lines_below_one_that_names_no_block_device_are_set(pinned: Machine, name: str) -> None:
    pin(pinned, "ID/wwn-0x1 workers=2", f"{name} contexts=3", "ID/wwn-0x1 contexts=4")
    done = subprocess.run(pinned.command("apply", "nullb0"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.replace(str(pinned.root), "")) == (
        1,
        "/etc/wbctl.conf line 1: workers=2\n/etc/wbctl.conf line 3: contexts=4\n",
    )
    [sentence] = done.stderr.splitlines()
    assert re.search("line 2: '.+' is no block device: name one that is in /dev/disk/by-id$", sentence)
    assert settings(pinned) == ["4", "[fs]", "2"]


def test_a_name_is_not_that_of_a_file_where_apply_runs(pinned: Machine, tmp_path: Path) -> None:
    (tmp_path / "gone").touch()
    pin(pinned, "gone contexts=3", "nullb0 contexts=4")
    subprocess.run(pinned.command("apply", "nullb0"), cwd=tmp_path, capture_output=True, check=True)
    assert settings(pinned)[0] == "4"


def test_lines_above_a_mistake_stay_set(pinned: Machine) -> None:
    pin(pinned, "ID/wwn-0x1 contexts=4", "ID/wwn-0x1 workers=2 affinity=random")
    done = subprocess.run(pinned.command("apply", "nullb0"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.replace(str(pinned.root), "")) == (
        1,
        "/etc/wbctl.conf line 1: contexts=4\n",
    )
    assert settings(pinned) == ["4", "[fs]", "1"]


def test_a_line_with_a_byte_of_0_sets_nothing(pinned: Machine) -> None:
    pinned.config.write_bytes(b"nullb0 workers=2\nnullb0 contexts=4\0 contexts=99\n")
    done = subprocess.run(pinned.command("apply", "nullb0"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.replace(str(pinned.root), "")) == (
        1,
        "wbctl: /etc/wbctl.conf line 2: there is a byte of 0: make it a text file\n",
    )
    assert settings(pinned) == ["2", "[fs]", "2"]


def test_of_a_setting_that_is_given_twice_the_last_holds(pinned: Machine) -> None:
    pin(pinned, "ID/wwn-0x1 contexts=4 workers=2 contexts=3")
    assert pinned.run("apply", "nullb0").replace(str(pinned.root), "") == (
        "/etc/wbctl.conf line 1: contexts=3\n/etc/wbctl.conf line 1: workers=2\n"
    )
    assert settings(pinned) == ["3", "[fs]", "2"]


def test_apply_says_what_the_kernel_accepts(pinned: Machine) -> None:
    refuse(pinned, "252:0")
    pin(pinned, "ID/wwn-0x1 contexts=5000")
    assert pinned.fails("apply", "nullb0") == (
        f"/etc/wbctl.conf line 1: 'contexts=5000' is out of range: expected {NUMBER}"
    )


def test_apply_without_a_file_to_read(pinned: Machine) -> None:
    pinned.config.unlink(missing_ok=True)
    assert pinned.fails("apply", "nullb0") == (
        "cannot open /etc/wbctl.conf (No such file or directory): make it, or install the package wbctl again"
    )
    pinned.config.mkdir()
    sentence = pinned.fails("apply", "nullb0")
    pinned.config.rmdir()
    assert sentence == "cannot read /etc/wbctl.conf (Is a directory): make it a text file"


def test_a_file_that_an_administrator_has_removed_pins_nothing(pinned: Machine) -> None:
    pinned.config.unlink(missing_ok=True)
    assert pinned.run("apply", "--if-pinned", "nullb0") == ""


def test_a_file_may_have_the_line_ends_of_windows(pinned: Machine) -> None:
    pinned.config.write_bytes(b"# of mine\r\nnullb0 contexts=4\r\n")
    pinned.run("apply", "nullb0")
    assert settings(pinned)[0] == "4"


# what goes wrong


@pytest.mark.parametrize("command", [("contexts", "{}"), ("set", "{}", "contexts=2"), ("apply", "{}")])
@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("", "a device is an empty string: give /dev/NAME, NAME, MAJ:MIN or a path"),
        (
            "sdx",
            "'sdx' is neither a block device nor a file (No such file or directory): "
            "give /dev/NAME, NAME, MAJ:MIN or a path",
        ),
        (
            "/dev/null/x",
            "'/dev/null/x' is neither a block device nor a file (Not a directory): "
            "give /dev/NAME, NAME, MAJ:MIN or a path",
        ),
        ("8:99", "there is no block device '8:99': give one that 'lsblk -o NAME,MAJ:MIN' lists"),
    ],
)
def test_no_such_device(machine: Machine, command: tuple[str, ...], argument: str, sentence: str) -> None:
    assert machine.fails(*(word.format(argument) for word in command)) == sentence


def test_a_name_that_is_too_long(machine: Machine) -> None:
    for name in "x" * 5000, f"{machine.dev}/{'x' * 5000}":
        assert "is neither a block device nor a file (File name too long)" in machine.fails("contexts", name)
    assert "neither" in machine.fails("contexts", "1" * 30 + ":0")


def test_a_filesystem_without_a_device(machine: Machine) -> None:
    device = os.stat("/proc").st_dev
    assert machine.fails("contexts", "/proc") == (
        f"the filesystem of '/proc' ({os.major(device)}:{os.minor(device)}) is not on a block device: "
        "name the device"
    )


def test_a_partition_without_a_disk(machine: Machine) -> None:
    (machine.sys / "block" / "nullb0" / "dev").unlink()
    assert machine.fails("contexts", "nullb0p1") == (
        "the partition 'nullb0p1' has no disk: give the disk itself"
    )


@pytest.mark.parametrize(
    "arguments",
    [("contexts",), ("contexts", "nullb0"), ("set", "nullb0", "contexts=2"), ("apply", "nullb0")],
)
def test_a_kernel_without_contexts(machine: Machine, arguments: tuple[str, ...]) -> None:
    machine.nwritebacks().unlink()
    assert machine.fails(*arguments) == (
        "this kernel has no writeback contexts: boot one that has, see 'uname -r'"
    )


def test_no_device_and_no_sysfs(machine: Machine) -> None:
    shutil.rmtree(machine.nwritebacks().parent)
    assert machine.fails("contexts") == "there is no device in /sys/class/bdi: attach one"
    shutil.rmtree(machine.sys)
    assert machine.fails("contexts") == (
        "cannot list /sys/class/bdi (No such file or directory): mount sysfs"
    )


@pytest.mark.parametrize("arguments", [(), ("nullb0",), ("--json",), ("--watch",)])
def test_debugfs_is_not_mounted(machine: Machine, arguments: tuple[str, ...]) -> None:
    shutil.rmtree(machine.debugfs / "bdi")
    assert machine.fails("contexts", *arguments) == (
        "debugfs is not mounted: run 'mount -t debugfs none /sys/kernel/debug' as root"
    )


def test_debugfs_is_not_readable(machine: Machine) -> None:
    machine.debugfs.chmod(0)
    try:
        sentence = machine.fails("contexts", prefix=NO_RIGHTS)
    finally:
        machine.debugfs.chmod(0o700)
    assert sentence == (
        "cannot read /sys/kernel/debug/bdi/252:0/stats in debugfs (Permission denied): run wbctl as root"
    )


@pytest.mark.parametrize(
    "line",
    [
        "Context 0: b_dirty 3",
        "Context x: b_dirty 3",
        context(0).replace("b_io 0", "b_io x").rstrip("\n"),
        context(70000).rstrip("\n"),
    ],
)
def test_statistics_of_another_kernel(machine: Machine, line: str) -> None:
    machine.stats().write_text(STATS + context(0) + line + "\n")
    assert machine.fails("contexts") == (
        f"cannot understand '{line}' of 252:0: use the wbctl that came with this kernel"
    )


def test_statistics_without_contexts(machine: Machine) -> None:
    machine.stats().write_text(STATS)
    assert machine.fails("contexts") == (
        "/sys/kernel/debug/bdi/252:0/stats has no line 'Context': use the wbctl that came with this kernel"
    )


def test_output_that_cannot_be_written(machine: Machine) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            machine.command("contexts"), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == (
        "wbctl: cannot write to standard output (No space left on device): make room there\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "no command: expected contexts, set, apply or stream, see 'wbctl --help'"),
        (
            ("context",),
            "unknown command 'context': expected contexts, set, apply or stream, see 'wbctl --help'",
        ),
        (("",), "unknown command '': expected contexts, set, apply or stream, see 'wbctl --help'"),
        (("contexts", "--jason"), "unknown option '--jason': expected --json or --watch[=SECONDS]"),
        (("contexts", "-j"), "unknown option '-j': expected --json or --watch[=SECONDS]"),
        (("set",), "'set' takes a device and a setting, as in 'wbctl set sda contexts=2'"),
        (("set", "nullb0"), "'set' takes a device and a setting, as in 'wbctl set sda contexts=2'"),
        (("set", "a", "b", "c"), "'set' takes a device and a setting, as in 'wbctl set sda contexts=2'"),
        (("set", "nullb0", "4"), "'4' is not a setting: expected contexts=N, affinity=POLICY or workers=N"),
        (("set", "nullb0", ""), "'' is not a setting: expected contexts=N, affinity=POLICY or workers=N"),
        (("apply",), "'apply' takes a device, as in 'wbctl apply sda'"),
        (("apply", "a", "b"), "'apply' takes a device, as in 'wbctl apply sda'"),
        (("apply", "--if-pinned"), "'apply' takes a device, as in 'wbctl apply sda'"),
    ],
)
def test_usage(machine: Machine, arguments: tuple[str, ...], sentence: str) -> None:
    assert machine.fails(*arguments) == sentence


@pytest.mark.parametrize("seconds", ["", "0", "-1", "nan", "inf", "1s", "0.001", "100000"])
def test_watch_refuses_odd_intervals(machine: Machine, seconds: str) -> None:
    assert machine.fails("contexts", f"--watch={seconds}") == (
        f"'--watch={seconds}': expected 0.01 to 86400 seconds, as in --watch=2"
    )


@pytest.mark.parametrize("arguments", [("--help",), ("contexts", "--help"), ("set", "--help")])
def test_help(machine: Machine, arguments: tuple[str, ...]) -> None:
    assert machine.run(*arguments).startswith("wbctl contexts [--json]")


# what comes with it


def test_install_and_clean(built: Machine) -> None:
    assert (built.root / "usr" / "share" / "man" / "man8" / "wbctl.8").is_file()
    assert (built.root / "wbctl" / "wbctl").is_file()
    subprocess.run(["make", "--silent", "-C", str(built.root / "wbctl"), "clean"], check=True)
    assert sorted(path.name for path in (built.root / "wbctl").iterdir()) == [
        "Makefile",
        "debian",
        "device.c",
        "device.h",
        "setting.c",
        "setting.h",
        "stream-example.c",
        "stream.c",
        "stream.h",
        "wbctl.8",
        "wbctl.bash",
        "wbctl.c",
        "wbctl.conf",
        "wbctl.rules.in",
    ]


def test_the_udev_rule_runs_what_is_installed(built: Machine) -> None:
    rule = built.root / "usr" / "lib" / "udev" / "rules.d" / "90-wbctl.rules"
    [program] = set(re.findall(r'RUN\+="(\S+) apply --if-pinned \$devnode"', rule.read_text()))
    assert program == "/usr/sbin/wbctl"
    assert (built.root / program.lstrip("/")).is_file()


def test_the_udev_rule_is_for_disks_and_for_partitions_whose_links_come_later(built: Machine) -> None:
    rule = built.root / "usr" / "lib" / "udev" / "rules.d" / "90-wbctl.rules"
    lines = [line for line in rule.read_text().replace("\\\n", "").splitlines() if not line.startswith("#")]
    tests = [re.findall(r'(?:DEVTYPE}|TEST)=="([^"]*)"', line) for line in lines]
    assert tests == [
        ["disk", "/sys/class/bdi/$major:$minor/nwritebacks"],
        ["partition", "../bdi/nwritebacks"],
    ]


def test_paths_with_a_blank(tmp_path: Path) -> None:
    place = tmp_path / "my clone"
    shutil.copytree(SOURCES, place / "tools" / "wbctl")
    shutil.copytree(UAPI, place / "kernel" / "include" / "uapi")
    command = ["make", "--silent", "-C", str(place / "tools" / "wbctl"), "install"]
    subprocess.run([*command, f"DESTDIR={tmp_path / 'a root'}", "PREFIX=/usr"], check=True)
    assert (tmp_path / "a root" / "usr" / "sbin" / "wbctl").is_file()


def test_install_keeps_what_is_pinned(built: Machine) -> None:
    built.config.write_text("nullb0 contexts=2\n")
    built.make_install()
    assert built.config.read_text() == "nullb0 contexts=2\n"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["wbctl", "s"], ["set", "stream"]),
        (["wbctl", "stream", ""], ["max", "get", "set"]),
        (["wbctl", "stream", "get", "-"], ["--json", "-r"]),
        (["wbctl", "contexts", "--w"], ["--watch"]),
        (["wbctl", "set", "sda", "c"], ["contexts="]),
        (["wbctl", "set", "sda", "affinity", "="], ["fs", "ino", "rotor", "least-loaded"]),
        (["wbctl", "set", "sda", "affinity", "=", "r"], ["rotor"]),
        (["wbctl", "set", "sda", "contexts", "=", "a"], ["auto"]),
        (["wbctl", "set", "8", ":", "0", "c"], ["contexts="]),
        (["wbctl", "set", "8", ":"], []),
        (["wbctl", "set", "8", ":", "0"], []),
        (["wbctl", "set", "8", ":", "0", "contexts", "=", "a"], ["auto"]),
        (["wbctl", "set", "sda", "contexts", "=", "2", ""], []),
        (["wbctl", "set", "/dev/s"], []),
        (["wbctl", "apply", ""], []),
        (["wbctl", "apply", "-"], ["--if-pinned"]),
    ],
)
def test_completion(words: list[str], offered: list[str]) -> None:
    # compopt, too, works only below readline.
    script = """
        . "$1"; shift
        compopt() { :; }
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _wbctl && printf '%s\n' "${COMPREPLY[@]}"
    """
    command = ["bash", "-uec", script, "bash", str(SOURCES / "wbctl.bash"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (offered, "")


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_manual_page_is_sound() -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", str(SOURCES / "wbctl.8")], capture_output=True, check=True
    )
    assert done.stderr == b""


def section(name: str) -> list[str]:
    """Return the lines of a section of the manual page, with what is marked up as plain words."""
    page = (SOURCES / "wbctl.8").read_text()
    [body] = re.findall(rf"^\.SH {name}\n(.*?)(?=^\.SH)", page, re.MULTILINE | re.DOTALL)
    return [plain(line) for line in body.splitlines()]


def plain(line: str) -> str:
    text = re.sub(r"\\f.", "", line.replace(r"\-", "-"))
    if fonts := re.match(r"\.([BIR]{1,2}) ", text):
        # Words of which each has the other font have no space between them.
        return (" " if len(fonts[1]) == 1 else "").join(text.split()[1:])
    return text


def named(line: str) -> str:
    """Return the option that a line describes."""
    return re.split(r"[\s\[]", line.strip())[0]


def test_the_manual_page_has_what_the_help_has_and_no_more(machine: Machine) -> None:
    usage, options, _ = machine.run("--help").split("\n\n")
    forms = [line for line in usage.splitlines() if not line.startswith("\t")]
    written = " ".join(section("SYNOPSIS")).split(" .br ")
    assert [re.sub(r" *\| *", "|", form) for form in written] == forms
    described = section("DESCRIPTION")
    commands = dict.fromkeys(form.split()[1] for form in forms if not form.startswith("wbctl --"))
    assert [line.split()[-1] for line in described if line.startswith(".SS ")] == [*commands]
    listed = section("OPTIONS")
    tags = [named(after) for line, after in pairwise(listed) if line == ".TP"]
    assert sorted(tags) == sorted([*map(named, options.splitlines()), "--help"])
