# SPDX-License-Identifier: GPL-2.0
"""What our change touches compiles for x86_64 too, with and without what it may depend on, and as modules."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from lab.tree.source import Source
from lab.tree.weave import BRANCH, STOCK_TAG, git, weave
from lab.util.lock import in_turn
from lab.util.paths import cache_dir
from tests.touched import ours, touched, without_block, without_cgroups, without_hints

pytestmark = pytest.mark.guest

# A warning is an error. Without mitigations and ORC the kernel needs fewer host tools.
BASE = """
CONFIG_64BIT=y
CONFIG_SMP=y
CONFIG_WERROR=y
CONFIG_PROC_FS=y
CONFIG_SYSFS=y
CONFIG_EXPERT=y
# CONFIG_CPU_MITIGATIONS is not set
CONFIG_UNWINDER_GUESS=y
"""
BLOCK = "CONFIG_BLOCK=y\nCONFIG_BLK_DEV=y\nCONFIG_BLK_DEV_LABBLK=y\n"
FILESYSTEMS = BLOCK + "CONFIG_XFS_FS=y\nCONFIG_XFS_RT=y\nCONFIG_EXT4_FS=y\nCONFIG_F2FS_FS=y\n"
MEMCG = "CONFIG_CGROUPS=y\nCONFIG_MEMCG=y\n"
CGROUPS = MEMCG + "CONFIG_BLK_CGROUP=y\n"
DEBUG_FS = "CONFIG_DEBUG_FS=y\n"
MODULES = BASE + FILESYSTEMS.replace("_FS=y", "_FS=m") + "CONFIG_MODULES=y\n"
AS_MODULES = ["CONFIG_XFS_FS=m", "CONFIG_EXT4_FS=m", "CONFIG_F2FS_FS=m"]
HINTS = "CONFIG_XFS_AGWB_HINTS=y\n"

# Where the kernel proper exports what a filesystem may use.
FOLDERS = (
    "arch/x86",
    "block",
    "crypto",
    "drivers",
    "fs",
    "include",
    "init",
    "kernel",
    "lib",
    "mm",
    "security",
)
# What is a module's own, and what a macro exports that puts its name together.
OTHERS = {
    *("__this_module", "get_random_u16", "get_random_u32"),
    *("io_cgrp_subsys_on_dfl_key", "memory_cgrp_subsys_on_dfl_key"),
}

SETTINGS = {
    "cgroups": (
        BASE + DEBUG_FS + FILESYSTEMS + HINTS + CGROUPS,
        ["CONFIG_CGROUP_WRITEBACK=y", HINTS.strip()],
    ),
    # Nor with debugfs.
    "nocgroups": (BASE + FILESYSTEMS, ["CONFIG_BLOCK=y", "# CONFIG_DEBUG_FS is not set"]),
    "modules": (MODULES + DEBUG_FS + HINTS + CGROUPS, AS_MODULES),
    "modules-nocgroups": (MODULES, AS_MODULES),
    # Memory cgroups without those of block devices: no cgroup writeback, either.
    "noblock": (
        BASE + DEBUG_FS + MEMCG + "# CONFIG_BLOCK is not set\n",
        ["# CONFIG_BLOCK is not set", "CONFIG_MEMCG=y"],
    ),
}


def make(tree: Path, objects: Path, *arguments: str) -> None:
    """Run make for x86_64 with its objects outside the tree, and fail with its words."""
    command = ["make", "ARCH=x86_64", f"O={objects}", "CC=ccache gcc", f"-j{os.cpu_count()}", *arguments]
    environment = os.environ | {"CCACHE_DIR": str(cache_dir() / "ccache"), "MAKEFLAGS": "", "LC_ALL": "C"}
    done = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False, errors="replace"
    )
    assert done.returncode == 0, done.stderr[-4000:]


def compiled(source: Source, name: str, wanted: list[str]) -> Path:
    """Compile for one of the settings; return the folder of the objects."""
    settings, expected = SETTINGS[name]
    tree = weave(source).path
    objects = cache_dir() / "build" / source.identity / f"x86-{name}"
    objects.mkdir(parents=True, exist_ok=True)
    with in_turn(objects / "lock"):
        fragment = objects / "fragment"
        if not fragment.exists() or fragment.read_text() != settings:
            fragment.write_text(settings)
            make(tree, objects, f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig")
        config = (objects / ".config").read_text().splitlines()
        assert [line for line in expected if line not in config] == []
        make(tree, objects, *wanted)
    return objects


@pytest.mark.parametrize("name", ["cgroups", "nocgroups", "noblock"])
def test_touched_objects_compile(kernel_source: Source, name: str) -> None:
    settings, _ = SETTINGS[name]
    wanted = [*touched(kernel_source), *ours()]
    if "CONFIG_BLOCK=y" not in settings:
        wanted = without_block(wanted)
    if CGROUPS not in settings:
        wanted = without_cgroups(wanted)
    if HINTS not in settings:
        wanted = without_hints(wanted)
    compiled(kernel_source, name, wanted)


def used_by_modules(source: Source, name: str) -> set[str]:
    """Compile the filesystems as modules, and return what these take from the kernel proper."""
    folders = {"fs/xfs": "xfs", "fs/ext4": "ext4", "fs/f2fs": "f2fs"}
    modules = [f"{folder}/{module}.o" for folder, module in folders.items()]
    objects = compiled(source, name, [f"{folder}/" for folder in folders])
    listed = subprocess.run(["nm", "-u", *modules], cwd=objects, capture_output=True, text=True, check=True)
    used = set(re.findall(r"^ +U (\w+)$", listed.stdout, re.MULTILINE))
    assert "blk_finish_plug" in used
    return used


def test_what_is_exported_has_a_user(kernel_source: Source) -> None:
    diff = git(weave(kernel_source).path, "diff", "-U0", STOCK_TAG, BRANCH, "--", "*.c")
    added = set(re.findall(r"^\+EXPORT_\w+\(\s*(\w+)", diff, re.MULTILINE))
    assert added
    used = used_by_modules(kernel_source, "modules") | used_by_modules(kernel_source, "modules-nocgroups")
    assert added - used == set()


@pytest.mark.parametrize("name", ["modules", "modules-nocgroups"])
def test_modules_use_only_what_is_exported(kernel_source: Source, name: str) -> None:
    used = used_by_modules(kernel_source, name)
    # Most of the tree are links to the pristine one.
    command = ["grep", "-RhoE", "--include=*.[chS]", r"\bEXPORT_\w+\(\s*\w+", *FOLDERS]
    tree = weave(kernel_source).path
    found = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True).stdout
    exported = {line.partition("(")[2].strip() for line in found.splitlines()}
    # Of an exported tracepoint or static call it is these that a module uses.
    pasted = re.compile(r"__(tracepoint|traceiter|SC[TK]__tp_func|SC[TK]_)_")
    assert sorted(name for name in used - OTHERS if pasted.sub("", name) not in exported) == []
