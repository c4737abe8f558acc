# SPDX-License-Identifier: GPL-2.0
"""The archive of ``pwb field``: it needs nothing else, is the same for the same input, and is run."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from lab import cli
from lab.field import command
from lab.package import field, folder
from lab.tree import change
from lab.util.errors import LabError
from lab.util.paths import REPO
from tests.server import JOB, write


def packed(place: Path, name: str, *, change: str | None = None, commit: str = "c0ffee") -> Path:
    """Return a package as ``pwb deb`` leaves it in a folder."""
    (place / "packages").mkdir(exist_ok=True)
    return folder.put(write(place / name, "deb"), place / "packages", change=change, commit=commit)


def commit_of(archive: Path) -> str:
    with tarfile.open(archive) as opened:
        file = opened.extractfile(f"{field.TOP}/{command.COMMIT}")
        assert file is not None
        return file.read().decode().strip()


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the archive's folder, unpacked."""
    place = tmp_path_factory.mktemp("field")
    made = field.make(place / "field.tar.gz", [], [packed(place, "wbctl_1_amd64.deb")])
    subprocess.run(["tar", "xf", made], cwd=place, check=True)
    return place / field.TOP


def ran(unpacked: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ./field as an administrator does, without anything of the clone."""
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(REPO), "HOME": "/nonexistent"}
    return subprocess.run(
        ["./field", *arguments], cwd=unpacked, env=env, capture_output=True, text=True, check=False
    )


def test_what_is_in_it(unpacked: Path) -> None:
    assert sorted(path.name for path in unpacked.iterdir()) == [
        "README.md",
        "commit",
        "field",
        "jobs",
        "lib",
        "packages",
    ]
    assert [path.name for path in (unpacked / "jobs").iterdir()] == ["overwrite.fio"]
    assert (unpacked / "packages" / "wbctl_1_amd64.deb").read_text() == "deb"


def test_it_runs_on_the_systems_python_alone(unpacked: Path) -> None:
    before = sorted(unpacked.rglob("*"))
    done = ran(unpacked, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "check|run|restore|pack" in done.stdout
    # Python puts nothing beside the modules.
    assert sorted(unpacked.rglob("*")) == before
    done = ran(unpacked, "check", "/proc")
    assert done.returncode == 1
    assert done.stderr.startswith("field: error: /proc lies on proc: expected xfs, ext4, f2fs")
    assert sorted(unpacked.rglob("*")) == before
    assert ran(unpacked).returncode == 2


def test_the_readme_names_every_command_and_option(unpacked: Path) -> None:
    text = (unpacked / "README.md").read_text()
    for word in ("./field check", "./field run", "./field restore", "./field pack"):
        assert word in text
    usage = ran(unpacked, "run", "--help").stdout.split()
    options = {word.strip("[],") for word in usage if word.strip("[],").startswith("--")} - {"--help"}
    assert options and all(option in text for option in options)
    assert max(map(len, text.splitlines())) <= 110


def test_the_readme_keeps_the_kernel_that_runs_before_it_installs_others(unpacked: Path) -> None:
    text = (unpacked / "README.md").read_text()
    setting = "/etc/default/grub.d/saved.cfg"
    steps = (
        f"echo GRUB_DEFAULT=saved > {setting}",
        "grub-set-default",
        # The saved entry is listed also where GRUB does not look at it: only the menu that was made tells.
        """grep 'default="${saved_entry}"' /boot/grub/grub.cfg""",
        "on no hardware yet",
        "apt-get install ./packages",
        "grub-reboot",
        f"rm {setting}",
    )
    assert sorted(map(text.index, steps)) == [*map(text.index, steps)]


def test_the_same_input_gives_the_same_archive(tmp_path: Path) -> None:
    first = field.make(tmp_path / "a.tar.gz", [], []).read_bytes()
    assert field.make(tmp_path / "b.tar.gz", [], []).read_bytes() == first


def test_the_commit_is_that_of_the_kernel_which_is_measured(tmp_path: Path) -> None:
    stock = packed(tmp_path, "linux-image-7.3.4-pwb-stock_1_amd64.deb", commit="early")
    wbctl = packed(tmp_path, "wbctl_1_amd64.deb", commit="late")
    parallel = packed(tmp_path, "linux-image-7.3.4-pwb-parallel_1_amd64.deb", change="it", commit="c0ffee")
    target = tmp_path / "out.tar.gz"
    assert commit_of(field.make(target, [], [parallel, stock, wbctl])) == "c0ffee"
    assert commit_of(field.make(target, [], [stock, wbctl])) == change.commit() != ""


def test_a_package_of_which_is_not_known_what_it_is(tmp_path: Path) -> None:
    package = packed(tmp_path, "linux-image-7.3.4-pwb-parallel_1_amd64.deb", change="it")
    package.write_text("stale")
    with pytest.raises(LabError, match=r"was made of is not known: .* with: ./pwb deb"):
        field.make(tmp_path / "out.tar.gz", [], [package])
    assert not (tmp_path / "out.tar.gz").exists()


def test_jobs_and_packages_are_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = write(tmp_path / "mine.fio", JOB)
    write(tmp_path / "debs" / "linux-image-1-pwb-stock_1.deb", "deb")
    write(tmp_path / "debs" / "notes", "none of it")
    target = tmp_path / "out.tar.gz"
    options = ["--job", str(mine), "--packages", str(tmp_path / "debs"), "--output", str(target)]
    assert cli._run(["field", *options]) == 0
    said = capsys.readouterr().out
    assert said == f"{target}\npackages in it: linux-image-1-pwb-stock_1.deb\n"
    with tarfile.open(target) as archive:
        names = archive.getnames()
    kept = [name for name in names if not name.startswith(f"{field.TOP}/lib/")]
    assert [name.removeprefix(f"{field.TOP}/") for name in kept] == [
        "README.md",
        "field",
        "jobs/mine.fio",
        "packages/linux-image-1-pwb-stock_1.deb",
        "commit",
    ]


def test_without_packages_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli._run(["field", "--output", "out.tar.gz"]) == 0
    assert "packages in it: none, pwb deb makes them" in capsys.readouterr().out


def test_a_job_that_a_server_would_refuse(tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.fio", "[x]\nrw=write\nsize=1m\ndirectory=/var\n")
    with pytest.raises(LabError, match="directory=/var leads out of the directory"):
        field.make(tmp_path / "out.tar.gz", [bad], [])
    assert os.listdir(tmp_path) == ["bad.fio"]


def test_a_job_is_packed_with_what_it_includes(tmp_path: Path) -> None:
    write(tmp_path / "common.fio", "size=1m\n")
    mine = write(tmp_path / "mine.fio", "[x]\nrw=write\ninclude common.fio\n")
    made = field.make(tmp_path / "out.tar.gz", [mine], [])
    with tarfile.open(made) as archive:
        packed_job = archive.extractfile(f"{field.TOP}/jobs/mine.fio")
        assert packed_job is not None
        assert packed_job.read() == b"[x]\nrw=write\nsize=1m\n"


def test_a_job_that_would_not_be_found(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"mine\.job is no job to pack: expected a name that ends in \.fio"):
        field.make(tmp_path / "out.tar.gz", [write(tmp_path / "mine.job", JOB)], [])


def test_two_jobs_of_one_name(tmp_path: Path) -> None:
    jobs = [write(tmp_path / name / "x.fio", JOB) for name in ("a", "b")]
    with pytest.raises(LabError, match="have one name: expected each once"):
        field.make(tmp_path / "out.tar.gz", jobs, [])


def test_a_package_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="is no Debian package"):
        field.make(tmp_path / "out.tar.gz", [], [write(tmp_path / "x.rpm", "")])
