# SPDX-License-Identifier: GPL-2.0
"""The archive of ``pwb field``: a script with the lab's modules that it needs, jobs, Debian packages."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

from lab.experiment import fiojob
from lab.field import job
from lab.field.command import COMMIT
from lab.package import folder
from lab.tree import change
from lab.util.errors import LabError
from lab.util.paths import REPO

#: The folder that it unpacks to.
TOP = "pwb-field"
#: What of the clone it has beside ``lab/field``, for ``./field``: what needs Python's standard library only.
MODULES = (
    "guest/extents.py",
    "guest/fio.py",
    "guest/plan.py",
    "guest/sampler.py",
    "guest/settings.py",
    "lab/__init__.py",
    "lab/experiment/__init__.py",
    "lab/experiment/fiojob.py",
    "lab/experiment/ownjob.py",
    "lab/util/__init__.py",
    "lab/util/errors.py",
    "lab/util/fionumber.py",
    "lab/util/process.py",
)
OWN_JOB = REPO / "field" / "overwrite.fio"


def make(target: Path, jobs: Sequence[Path], packages: Sequence[Path]) -> Path:
    """Pack everything into one archive; the same input gives the same one.

    Args:
        target: the archive, ``.tar.gz``; replaced where there is one.
        jobs: fio job files; none: our own, random overwrites.
        packages: ``.deb`` files to install on the server. The archive's commit is that of the kernel with
            contexts among them, or else the clone's.

    Returns:
        ``target``.

    Raises:
        LabError: a job that a server would refuse, a package that is none, or one of ``pwb deb`` of which is
            not known what it was made of.
    """
    chosen = [*jobs] or [OWN_JOB]
    for path in chosen:
        if path.suffix != ".fio":
            raise LabError(f"{path} is no job to pack: expected a name that ends in .fio; rename it")
        job.load(path, os.cpu_count() or 1)
    for path in packages:
        if path.suffix != ".deb" or not path.is_file():
            raise LabError(
                f"{path} is no Debian package: expected files that end in .deb, made by: ./pwb deb"
            )
    modules = [*MODULES, *(str(path.relative_to(REPO)) for path in (REPO / "lab" / "field").glob("*.py"))]
    files: dict[str, Path | bytes] = {f"lib/{name}": REPO / name for name in modules}
    files |= {name: REPO / "field" / name for name in ("field", "README.md")}
    # With what they include, which stays here.
    files |= {
        f"jobs/{path.name}": fiojob.inlined(path.name, path.read_text(encoding="utf-8"), path.parent).encode()
        for path in chosen
    }
    files |= {f"packages/{path.name}": path for path in packages}
    if len(files) < len(modules) + 2 + len(chosen) + len(packages):
        raise LabError("two jobs or packages have one name: expected each once; rename one of them")
    commits = {one.commit for one in folder.ours(packages) if one.change}
    commit = ", ".join(sorted(commits)) or change.commit()
    new = target.with_name(f".{target.name}.new")
    try:
        # Neither the time of day nor the name of this file is a part of it.
        with (
            new.open("wb") as file,
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            for name in sorted(files):
                held = files[name]
                data = held if isinstance(held, bytes) else held.read_bytes()
                _add(archive, name, data, executable=name == "field")
            _add(archive, COMMIT, f"{commit}\n".encode())
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
    return target


def _add(archive: tarfile.TarFile, name: str, data: bytes, *, executable: bool = False) -> None:
    member = tarfile.TarInfo(f"{TOP}/{name}")
    member.size = len(data)
    member.mode = 0o755 if executable else 0o644
    archive.addfile(member, io.BytesIO(data))
