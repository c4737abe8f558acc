# SPDX-License-Identifier: GPL-2.0
"""The build: what is cached, when it is built again, what is said when it fails; ``make`` is a small fake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lab.tree import build, config, held, kbuild
from lab.tree.source import Source
from lab.tree.weave import Woven
from lab.util import host
from lab.util.errors import LabError
from lab.util.lock import exclusive
from lab.util.paths import REPO, cache_dir

# Grants what is asked for but not what is in $HOME/drop; fails with the words in $HOME/fail; counts builds.
FAKE_MAKE = """#!/bin/sh
PATH=/usr/bin:/bin
mkdir -p obj
for goal in "$@"; do :; done
if [ "$goal" = allnoconfig ]; then
    grep -v -f "$HOME/drop" "$KCONFIG_ALLCONFIG" > obj/.config
    exit 0
fi
echo built >> "$HOME/builds"
env > "$HOME/environment"
printf '%s\\n' "$@" > "$HOME/arguments"
echo '  CC      fs/inode.o'
echo $$ > "$HOME/make"
if [ -e "$HOME/hang" ]; then sleep 1000 & echo $! > "$HOME/child"; wait; fi
if [ -e "$HOME/fail" ]; then cat "$HOME/fail"; exit 2; fi
echo '  LD      vmlinux.o'
image=linux
if [ "$goal" = bzImage ]; then
    image=arch/x86/boot/bzImage
    mkdir -p obj/arch/x86/boot
    echo 'ffffffff81000000 T _text' > obj/System.map
fi
cat fs/inode.c > "obj/$image"
[ "$image" != linux ] || chmod +x obj/linux
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with fake tools in front of the path, and a cache of its own."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in {"make": FAKE_MAKE, "gcc": "#!/bin/sh\necho 'gcc (made up) 12'\n"}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    (tmp_path / "drop").write_text("CONFIG_NEVER_ASKED\n")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(host, "check", lambda _: None)
    monkeypatch.setattr(build, "weave_identity", lambda given, part: given.identity)
    monkeypatch.setattr(held, "weave", lambda given, *_, **__: Woven(given.path, given, given.identity))
    return tmp_path


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return tree(tmp_path / "linux", "stock")


def tree(path: Path, content: str) -> Source:
    (path / "fs").mkdir(parents=True, exist_ok=True)
    (path / "fs" / "inode.c").write_text(content)
    (path / "Makefile").write_text("")
    (path / ".git").mkdir(exist_ok=True)
    return Source(path, "7.3.4", "7.3", f"id-{content}")


def builds(home: Path) -> int:
    log = home / "builds"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_a_kernel_is_built_once_and_then_taken_from_the_cache(home: Path, source: Source) -> None:
    kernel = build.build("stock", source)
    assert kernel.path.read_text() == "stock"
    assert kernel.path.is_relative_to(cache_dir() / "kernel" / kernel.identity)
    assert "CONFIG_XFS_FS=y" in kernel.config.read_text()
    assert (kernel.flavour, kernel.version, kernel.machine) == ("stock", "7.3.4", "uml")
    assert kernel.symbols is None
    assert build.build("stock", source) == kernel
    assert builds(home) == 1


def test_a_kernel_is_found_whether_it_is_built_or_not(home: Path, source: Source) -> None:
    kernel, is_built = build.find("stock", source)
    assert (is_built, builds(home)) == (False, 0)
    assert build.build("stock", source) == kernel
    assert build.find("stock", source) == (kernel, True)
    kernel.config.unlink()
    assert build.find("stock", source) == (kernel, False)


def test_a_kernel_for_the_other_machine_is_another_one_with_its_symbols(home: Path, source: Source) -> None:
    uml = build.build("stock", source)
    smp = build.build("stock", source, "smp")
    assert (smp.flavour, smp.machine, smp.path.name) == ("stock", "smp", "bzImage")
    assert smp.path.read_text() == "stock"
    assert smp.symbols is not None
    assert smp.symbols.read_text() == "ffffffff81000000 T _text\n"
    assert "CONFIG_9P_FS=y" in smp.config.read_text()
    assert "CONFIG_9P_FS=y" not in uml.config.read_text()
    assert {"ARCH=x86_64", "bzImage"} <= set((home / "arguments").read_text().splitlines())
    assert (build.build("stock", source), build.build("stock", source, "smp")) == (uml, smp)
    assert builds(home) == 2


def test_missing_symbols_are_made_again(home: Path, source: Source) -> None:
    kernel = build.build("stock", source, "smp")
    assert kernel.symbols is not None
    kernel.symbols.unlink()
    assert build.build("stock", source, "smp") == kernel
    assert kernel.symbols.exists()
    assert builds(home) == 2


def test_the_tree_stays_as_it_is(source: Source) -> None:
    before = sorted(source.path.rglob("*"))
    build.build("stock", source)
    assert sorted(source.path.rglob("*")) == before


def test_a_cached_kernel_needs_neither_make_nor_room(
    home: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = build.build("stock", source)
    (home / "bin" / "make").unlink()
    monkeypatch.setattr(host, "check", lambda _: pytest.fail("checked the host for a cached kernel"))
    assert build.build("stock", source) == kernel


@pytest.mark.parametrize(
    "damage", ["shorter", "other", "not executable", "no record", "garbled record", "config"]
)
def test_a_broken_cache_entry_is_built_again_with_a_note(
    home: Path, source: Source, damage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    kernel = build.build("stock", source)
    meta = kernel.path.with_name("meta.json")
    if damage == "shorter":
        kernel.path.write_text("sto")
    elif damage == "other":
        kernel.path.write_text("stick")
    elif damage == "not executable":
        kernel.path.chmod(0o644)
    elif damage == "no record":
        meta.unlink()
    elif damage == "garbled record":
        meta.write_text("[]")
    else:
        kernel.config.write_text("")
    capfd.readouterr()
    assert build.build("stock", source) == kernel
    assert kernel.path.read_text() == "stock"
    assert os.access(kernel.path, os.X_OK)
    assert builds(home) == 2
    assert "is broken: building it again" in capfd.readouterr().err
    assert [entry.name for entry in (cache_dir() / "kernel").iterdir()] == [kernel.identity]


def test_tree_settings_and_compiler_each_make_another_kernel(
    home: Path, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build.build("stock", source)
    keys = {first.identity, build.build("stock", tree(tmp_path / "other", "other")).identity}
    (home / "bin" / "gcc").write_text("#!/bin/sh\necho 'gcc (made up) 13'\n")
    keys.add(build.build("stock", source).identity)
    fragment = tmp_path / "more.config"
    fragment.write_text("CONFIG_MORE=y\n")
    monkeypatch.setattr(config, "fragments", lambda *_: [fragment])
    keys.add(build.build("stock", source).identity)
    assert len(keys) == builds(home) == 4
    assert json.loads(first.path.with_name("meta.json").read_text())["flavour"] == "stock"


@pytest.mark.parametrize(
    ("flavour", "part"), [("stock", "lab"), ("prepared", "prepared"), ("parallel", "all"), ("debug", "all")]
)
def test_kernels_are_built_from_as_much_as_is_woven_for_their_flavour(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavour: str, part: str
) -> None:
    woven = tree(tmp_path / "woven", "woven").path
    identity = {part: "first"}

    def weave(given: Source, repo: Path, *, part: str) -> Woven:
        return Woven(woven, given, identity[part])

    monkeypatch.setattr(build, "weave_identity", lambda _, part: identity[part])
    monkeypatch.setattr(held, "weave", weave)
    first = build.build(flavour, source, "smp")
    assert first.path.read_text() == "woven"
    (woven / "fs" / "inode.c").write_text("changed")
    identity[part] = "second"
    second = build.build(flavour, source, "smp")
    assert (first.path.read_text(), second.path.read_text()) == ("woven", "changed")


def test_objects_are_kept_for_the_next_build_of_the_flavour(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.build("stock", source)
    objects = next((cache_dir() / "build").rglob("obj"))
    (objects / "kept.o").write_text("")
    monkeypatch.setattr(build, "MAKE_VARIABLES", (*kbuild.MAKE_VARIABLES, "V=1"))
    build.build("stock", source)
    assert (objects / "kept.o").exists()


def test_make_sees_nothing_of_the_callers_make(
    home: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEFLAGS", "-j --jobserver-auth=3,4")
    monkeypatch.setenv("CFLAGS", "-O0")
    build.build("stock", source)
    environment = (home / "environment").read_text()
    assert "MAKEFLAGS" not in environment
    assert "CFLAGS" not in environment
    assert f"CCACHE_DIR={cache_dir() / 'ccache'}" in environment
    assert "ARCH=um" in (home / "arguments").read_text().splitlines()


def test_a_lost_setting_ends_the_build_before_it_compiles(home: Path, source: Source) -> None:
    (home / "drop").write_text("CONFIG_F2FS_FS=\n")
    with pytest.raises(LabError, match=r"CONFIG_F2FS_FS=y \(common\.config line \d+\) became absent"):
        build.build("stock", source)
    assert builds(home) == 0


def test_a_failed_build_shows_the_compilers_words_and_the_log(home: Path, source: Source) -> None:
    (home / "fail").write_text(
        "  CC mm/x.o\n../mm/x.c:3:1: error: unknown type name 'wb'\nmake[2]: *** [x.o] Error 1\n"
    )
    with pytest.raises(LabError) as caught:
        build.build("stock", source)
    said = str(caught.value)
    assert said.startswith("building the stock kernel 7.3.4 for uml failed (make's status 2)")
    assert "error: unknown type name 'wb'" in said
    assert "CC mm/x.o" not in said
    assert "***" not in said
    log = Path(said.partition("the whole log is ")[2].partition(":\n")[0])
    assert "CC mm/x.o" in log.read_text()
    assert not (cache_dir() / "kernel").exists()
    (home / "fail").unlink()
    assert build.build("stock", source).path.read_text() == "stock"


@pytest.mark.parametrize("said", ["make[2]: *** No rule to make target 'x.o'.  Stop.", "something odd"])
def test_a_failure_without_a_compilers_complaint_shows_what_there_is(
    home: Path, source: Source, said: str
) -> None:
    (home / "fail").write_text(f"{said}\n")
    with pytest.raises(LabError) as caught:
        build.build("stock", source)
    assert said in str(caught.value)


def test_an_unknown_flavour_is_refused_with_its_neighbours(source: Source) -> None:
    with pytest.raises(LabError, match="unknown uml kernel 'stok': expected stock"):
        build.build("stok", source)


def test_an_unknown_machine_is_refused(source: Source) -> None:
    with pytest.raises(LabError, match="unknown machine 'smb': expected smp"):
        build.build("stock", source, "smb")


def test_a_kernel_that_another_run_builds_is_refused(source: Source) -> None:
    doing = "building the stock kernel 7.3.4 for uml"
    with (
        exclusive(cache_dir() / "build" / source.identity / "lock", doing),
        pytest.raises(LabError, match="two runs at once"),
    ):
        build.build("stock", source)


def test_after_waiting_the_clone_is_built_as_it_is_then(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    identities = []

    @contextmanager
    def edited_meanwhile(path: Path, what: str, *, waits: bool = False) -> Iterator[None]:
        assert waits
        identities.append("edited")
        monkeypatch.setattr(build, "weave_identity", lambda *_, **__: "edited")
        yield

    before = build._wanted("stock", source, "uml")[0].identity
    monkeypatch.setattr(build, "exclusive", edited_meanwhile)
    built = build.build("stock", source)
    assert identities == ["edited"]
    assert built.identity != before
    assert build.build("stock", source) == built


def test_no_other_clone_weaves_onto_a_tree_that_is_being_built(
    home: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = source.path.parent / "lock"
    said = []

    def run(*_: object) -> list[Path]:
        with pytest.raises(LabError, match="two runs at once") as caught, exclusive(lock, "weaving"):
            pass
        said.append(str(caught.value))
        raise LabError("enough")

    monkeypatch.setattr(build, "_run", run)
    with pytest.raises(LabError, match="enough"):
        build.build("stock", source)
    assert len(said) == 1
    with exclusive(lock, "weaving"):
        pass


def test_a_cache_folder_that_make_cannot_take_is_refused(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "my cache"))
    with pytest.raises(LabError, match="has a space or a colon"):
        build.build("stock", source)


RUN = """
import signal
import sys
from pathlib import Path
from lab.tree import build, held
from lab.util import host
from lab.tree.source import Source
from lab.tree.weave import Woven
signal.signal(signal.SIGINT, signal.default_int_handler)
host.check = lambda _: None
build.weave_identity = lambda given, part: given.identity
held.weave = lambda given, *_, **__: Woven(given.path, given, given.identity)
build.build("stock", Source(Path(sys.argv[1]), "7.3.4", "7.3", "id"))
"""


@pytest.mark.parametrize(("end", "watched"), [(signal.SIGINT, "child"), (signal.SIGKILL, "make")])
def test_no_make_outlives_its_build(home: Path, source: Source, end: signal.Signals, watched: str) -> None:
    (home / "hang").touch()
    command = [sys.executable, "-c", RUN, str(source.path)]
    with subprocess.Popen(command, cwd=REPO, stderr=subprocess.DEVNULL) as run:
        child = home / "child"
        while not (child.exists() and child.read_text().endswith("\n")):
            assert run.poll() is None
            time.sleep(0.01)
        run.send_signal(end)
        run.wait()
    process = Path("/proc", (home / watched).read_text().strip(), "cwd")  # gone for a zombie, too
    deadline = time.monotonic() + 30
    while process.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    left = process.exists()
    with suppress(ProcessLookupError):
        os.kill(int(child.read_text()), signal.SIGKILL)
    assert not left
