# SPDX-License-Identifier: GPL-2.0
"""Which QEMU is taken, and how it comes into the cache; apt and QEMU are stand-ins."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.machine import qemu
from lab.util import apt as apts
from lab.util.errors import LabError

# An apt-get whose archive has one package.
APT_GET = r"""#!/bin/sh
for argument; do
	case $argument in
	-oDir::Cache=*) cache=${argument#*=} ;;
	-oDir::State::status=*) status=${argument#*=} ;;
	esac
done
case "$*" in
*indextargets*) echo http://mirror.example/debian ;;
*update*) ;;
*install*)
	echo "$@" >>"$FAKE/log"
	cp "$status" "$FAKE/status"
	[ -e "$FAKE/says" ] && { cat "$FAKE/says" >&2; exit 100; }
	cp "$FAKE/package.deb" "$cache/archives" ;;
esac
"""
QEMU = """#!/bin/sh
[ -e "{needs}" ] || {{ echo "libfdt.so.1: cannot open shared object file" >&2; exit 127; }}
echo "QEMU emulator version {version} (Debian)"
"""
KNOWN = "Package: libc6\nStatus: install ok installed\n\nPackage: seabios\nStatus: install ok installed\n"


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PWB_QEMU", raising=False)
    return tmp_path / "cache" / "qemu"


@pytest.fixture
def fake(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a stand-in for apt-get first in PATH; return the folder that steers it."""
    folder = tmp_path / "fake"
    executable(folder / "bin" / "apt-get", APT_GET)
    pack(folder, "10.0.2")
    (folder / "known").write_text(KNOWN)
    (folder / "keyring").touch()
    monkeypatch.setattr(apts, "STATUS", folder / "known")
    monkeypatch.setattr(apts, "KEYRING", folder / "keyring")
    monkeypatch.setenv("FAKE", str(folder))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    return folder


def pack(folder: Path, version: str) -> None:
    """Put a QEMU of a version into the archive; it starts as long as its library is there."""
    package = folder / "package"
    library = folder / f"library-{version}"
    library.touch()
    text = QEMU.format(version=version, needs=library)
    executable(package / "usr/bin/qemu-system-x86_64", text)
    (package / "usr/lib/x86_64-linux-gnu").mkdir(parents=True, exist_ok=True)
    (package / "DEBIAN").mkdir(exist_ok=True)
    control = f"Package: qemu-system-x86\nVersion: 1:{version}\nArchitecture: all\n"
    (package / "DEBIAN/control").write_text(control + "Maintainer: t <t@t>\nDescription: t\n")
    subprocess.run(["dpkg-deb", "--build", package, folder / "package.deb"], check=True, capture_output=True)


def test_qemu_is_fetched_once(fake: Path, cache: Path) -> None:
    found = qemu.find()
    assert (found.version, found.path) == ("10.0.2", cache / "10.0.2/usr/bin/qemu-system-x86_64")
    assert found.libraries == (cache / "10.0.2/usr/lib/x86_64-linux-gnu",)
    assert found.data == (cache / "10.0.2/usr/share/qemu", cache / "10.0.2/usr/share/seabios")
    assert qemu.find() == found
    assert len((fake / "log").read_text().splitlines()) == 1
    assert sorted(path.name for path in cache.iterdir()) == ["10.0.2", "lock"]


def test_machine_is_asked_what_it_has_but_for_what_lies_beside_qemu(fake: Path, cache: Path) -> None:
    qemu.find()
    status = (fake / "status").read_text()
    assert "Package: libc6" in status
    assert "seabios" not in status
    (call,) = (fake / "log").read_text().splitlines()
    assert "--download-only" in call and "-t bookworm-backports qemu-system-x86" in call
    assert "-oDir::State::status=/var" not in call


def test_qemu_that_lost_a_library_is_fetched_again(fake: Path, cache: Path) -> None:
    qemu.find()
    (fake / "library-10.0.2").unlink()
    with pytest.raises(LabError, match=r"does not start \(libfdt.so.1: cannot open.*export PWB_QEMU="):
        qemu.find()
    pack(fake, "10.1.0")
    assert qemu.find().version == "10.1.0"


def test_half_a_qemu_is_not_used(fake: Path, cache: Path) -> None:
    executable(cache / "10.0.2/usr/bin/qemu-system-x86_64", "#!/bin/sh\necho QEMU emulator version 10.0.2\n")
    qemu.find()
    assert (fake / "log").exists()


def test_packaged_qemu_that_is_too_old_is_refused(fake: Path, cache: Path) -> None:
    pack(fake, "7.2.0")
    with pytest.raises(LabError, match=r"have QEMU 7.2.0, which is too old: expected 10 or later"):
        qemu.find()
    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_failed_download_is_told_without_the_mirror(fake: Path, cache: Path) -> None:
    (fake / "says").write_text("E: Failed to fetch http://mirror.example/x 404 Not Found\n")
    with pytest.raises(LabError, match="downloading qemu-system-x86 failed, try again or name") as caught:
        qemu.find()
    assert "mirror.example" not in str(caught.value)
    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_second_of_two_waits_for_what_the_first_fetches(fake: Path, cache: Path) -> None:
    with ThreadPoolExecutor() as pool:
        found = [done.result() for done in [pool.submit(qemu.find) for _ in range(4)]]
    assert len(set(found)) == 1
    assert len((fake / "log").read_text().splitlines()) == 1


def test_own_qemu_is_taken(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = executable(tmp_path / "q", QEMU.format(version="11.0.0", needs=tmp_path))
    monkeypatch.setenv("PWB_QEMU", str(own))
    assert qemu.find() == qemu.Qemu(own, "11.0.0")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "there is no such file: expected qemu-system-x86_64"),
        ("#!/bin/sh\necho QEMU emulator version 9.2.4\n", "QEMU 9.2.4, which is too old: expected 10"),
        ("#!/bin/sh\necho no >&2; exit 3\n", "which does not start as QEMU does: no"),
    ],
)
def test_own_qemu_that_will_not_do_is_refused(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, complaint: str
) -> None:
    own = tmp_path / "q"
    if text:
        executable(own, text)
    monkeypatch.setenv("PWB_QEMU", str(own))
    with pytest.raises(LabError, match=complaint):
        qemu.find()


def test_words_that_start_it() -> None:
    found = qemu.Qemu(Path("/q"), "10.0.2", (Path("/a"), Path("/b")), (Path("/bios"),))
    assert found.command() == ["/usr/bin/env", "LD_LIBRARY_PATH=/a:/b", "/q", "-L", "/bios"]
    assert found.command(Path("/v.so"))[-4:] == ["LD_PRELOAD=/v.so", "/q", "-L", "/bios"]
    assert qemu.Qemu(Path("/q"), "10.0.2").command() == ["/usr/bin/env", "/q"]
