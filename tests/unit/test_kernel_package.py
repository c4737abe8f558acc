# SPDX-License-Identifier: GPL-2.0
"""Packages of the kernel: what is built from which tree with which settings; ``make`` is a small fake."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from lab.package import folder, kernel, loaded
from lab.tree import change, config, held
from lab.tree.kbuild import Kbuild
from lab.tree.source import Source
from lab.tree.weave import Woven
from lab.util import host
from lab.util.errors import LabError
from lab.util.lock import exclusive
from lab.util.paths import REPO, cache_dir

# Grants all settings but those in $HOME/drop; its package holds the tree's Makefile.
FAKE_MAKE = """#!/bin/sh
PATH=/usr/bin:/bin
for goal in "$@"; do :; done
printf '%s\\n' "$@" > "$HOME/arguments"
if [ "$goal" = olddefconfig ]; then
    grep -v -f "$HOME/drop" obj/.config > obj/new
    mv obj/new obj/.config
    exit 0
fi
env > "$HOME/environment"
[ -e vmlinux ] || echo '  CC [M]  fs/xfs/xfs_super.o'
for word in "$@"; do case $word in LOCALVERSION=*) local=${word#*=} ;; esac; done
count=$(cat obj/count 2>/dev/null || echo 0)
echo $((count + 1)) > obj/count
cp Makefile "linux-image-7.3.4${local}_7.3.4-$((count + 1))_amd64.deb"
touch obj/vmlinux
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a fake make in front of the path, and a cache that has Debian's configuration."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "make").write_text(FAKE_MAKE)
    (tools / "make").chmod(0o755)
    (tmp_path / "drop").write_text("CONFIG_NEVER_ASKED\n")
    (tmp_path / "out").mkdir()
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(host, "check", lambda _: None)
    woven = tree(tmp_path / "woven", "woven")
    monkeypatch.setattr(held, "weave", lambda given, *_, **__: Woven(woven, given, given.identity))
    debian = cache_dir() / "source" / "config-7.3"
    debian.parent.mkdir(parents=True)
    debian.write_text("CONFIG_CLOUD=y\nCONFIG_INFINIBAND=m\n")
    return tmp_path


# As the kernel's script does: what is not in the list is not set.
FAKE_SCRIPT = """
open(my $config, "<", ".config");
print grep { !/INFINIBAND|F2FS/ } <$config>;
"""


def tree(path: Path, content: str) -> Path:
    script = path / loaded.SCRIPT
    script.parent.mkdir(parents=True)
    script.write_text(FAKE_SCRIPT)
    (path / "Makefile").write_text(content)
    return path


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tree(tmp_path / "linux", "stock"), "7.3.4", "7.3", "5ca1ab1e")


def test_stock_is_the_tree_as_it_comes_and_parallel_the_woven_one(home: Path, source: Source) -> None:
    stock = kernel.make("stock", source, home / "out")
    parallel = kernel.make("parallel", source, home / "out")
    assert stock == home / "out" / "linux-image-7.3.4-pwb-stock_7.3.4-1_amd64.deb"
    assert parallel == home / "out" / "linux-image-7.3.4-pwb-parallel_7.3.4-1_amd64.deb"
    assert (stock.read_text(), parallel.read_text()) == ("stock", "woven")


def test_the_fragments_go_over_debians_configuration(home: Path, source: Source) -> None:
    kernel.make("stock", source, home / "out")
    settings = (cache_dir() / "build" / "5ca1ab1e" / "deb-stock" / "tree" / "obj" / ".config").read_text()
    assert settings.startswith("CONFIG_CLOUD=y\nCONFIG_INFINIBAND=m\n")
    assert "CONFIG_INFINIBAND=n" in settings
    assert "CONFIG_BDI_WRITEBACK_AUTO" not in settings
    kernel.make("parallel", source, home / "out")
    parallel = cache_dir() / "build" / "5ca1ab1e" / "deb-parallel" / "tree" / "obj" / ".config"
    assert "CONFIG_BDI_WRITEBACK_AUTO=y" in parallel.read_text()


def test_modules_that_a_server_has_not_are_left_out_but_for_those_asked_for(
    home: Path, source: Source
) -> None:
    listed = home / "lsmod.txt"
    listed.write_text("Module                  Size  Used by\nxfs 2670592 1\n")
    kernel.make("parallel", source, home / "out", listed)
    obj = cache_dir() / "build" / "5ca1ab1e" / "deb-parallel" / "tree" / "obj"
    settings = (obj / ".config").read_text().splitlines()
    assert "CONFIG_INFINIBAND=m" not in settings
    assert "CONFIG_F2FS_FS=m" in settings
    assert "CONFIG_BDI_WRITEBACK_AUTO=y" in settings


@pytest.mark.parametrize("text", ["", "\n", "xfs\next4\n", "\x00\xff"])
def test_what_is_no_list_of_modules_is_refused(home: Path, source: Source, text: str) -> None:
    listed = home / "lsmod.txt"
    listed.write_bytes(text.encode("latin-1"))
    with pytest.raises(LabError, match=r"lsmod\.txt (is not what lsmod prints|cannot be read)"):
        kernel.make("stock", source, home / "out", listed)
    assert not (cache_dir() / "build").exists()


def test_a_list_without_modules_is_refused(home: Path, source: Source) -> None:
    listed = home / "lsmod.txt"
    listed.write_text("Module                  Size  Used by\n")
    with pytest.raises(LabError, match=r"lsmod\.txt names no module: expected the disk's driver"):
        kernel.make("stock", source, home / "out", listed)


def test_a_lost_setting_ends_the_build(home: Path, source: Source) -> None:
    (home / "drop").write_text("F2FS_FS\n")
    with pytest.raises(LabError, match=r"CONFIG_F2FS_FS=m \(deb\.config line \d+\) became absent"):
        kernel.make("stock", source, home / "out")


def test_another_call_makes_a_newer_package_of_what_is_there(home: Path, source: Source) -> None:
    kernel.make("stock", source, home / "out")
    again = kernel.make("stock", source, home / "out")
    assert again.name == "linux-image-7.3.4-pwb-stock_7.3.4-2_amd64.deb"
    assert [*(home / "out").glob("*.deb")] == [again]


def test_only_the_image_is_packed(home: Path, source: Source) -> None:
    kernel.make("stock", source, home / "out")
    [flags] = re.findall(r"^DPKG_FLAGS=(.*)$", (home / "environment").read_text(), re.MULTILINE)
    assert "--rules-target=binary-image" in flags.split()
    assert "bindeb-pkg" in (home / "arguments").read_text().splitlines()


def test_a_package_that_another_run_makes_is_refused(home: Path, source: Source) -> None:
    doing = "building the package of the stock kernel 7.3.4"
    with (
        exclusive(cache_dir() / "build" / "5ca1ab1e" / "lock", doing),
        pytest.raises(LabError, match="two runs at once"),
    ):
        kernel.make("stock", source, home / "out")


def test_another_build_of_the_source_is_waited_for(
    home: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def waiting(path: Path, what: str, *, waits: bool = False) -> AbstractContextManager[None]:
        asked.append((path, waits))
        return nullcontext()

    monkeypatch.setattr(kernel, "exclusive", waiting)
    kernel.make("stock", source, home / "out")
    assert asked == [(cache_dir() / "build" / "5ca1ab1e" / "lock", True)]


def test_no_other_clone_weaves_onto_a_tree_that_is_packed(
    home: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []

    def configure(*_: object) -> None:
        with pytest.raises(LabError, match="two runs at once"), exclusive(home / "lock", "weaving"):
            pass
        refused.append(True)
        raise LabError("enough")

    monkeypatch.setattr(Kbuild, "configure", configure)
    with pytest.raises(LabError, match="enough"):
        kernel.make("parallel", source, home / "out")
    assert refused == [True]
    with exclusive(home / "lock", "weaving"):
        pass


def test_it_is_noted_what_a_package_was_made_of(home: Path, source: Source) -> None:
    made = [kernel.make(flavour, source, home / "out") for flavour in kernel.FRAGMENTS]
    stock, parallel = folder.ours(made)
    assert (stock.change, parallel.change) == (None, change.identity())
    assert stock.commit == parallel.commit == change.commit() != ""


@pytest.mark.parametrize("flavour", kernel.FRAGMENTS)
def test_every_fragment_is_there(flavour: str) -> None:
    assert config.merge([REPO / "config" / f"{name}.config" for name in kernel.FRAGMENTS[flavour]])
