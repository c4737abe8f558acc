# SPDX-License-Identifier: GPL-2.0
"""The kernel's Debian packages, stock and parallel, by the kernel's own ``make bindeb-pkg``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from lab.package import debian_config, folder, loaded
from lab.tree import change, config, held
from lab.tree.kbuild import MAKE_VARIABLES, Kbuild
from lab.tree.source import Source
from lab.util import host
from lab.util.lock import exclusive
from lab.util.paths import REPO, cache_dir
from lab.util.progress import Progress

# What is merged over Debian's configuration.
FRAGMENTS = {"stock": ("deb",), "parallel": ("deb", "contexts")}

# What lintian expects of packages that go into Debian: that a first one closes a bug.
ACCEPTED = ("initial-upload-closes-no-bugs",)

_DISK_BYTES = 6 << 30
_OBJECTS = 5000
_ENVIRONMENT = {
    "DEBFULLNAME": "parallel writeback",
    "DEBEMAIL": "pwb@pwb.invalid",
    "KDEB_CHANGELOG_DIST": "unstable",
    "DEB_BUILD_OPTIONS": "terse",
    # Neither the headers of the C library, which are Debian's business, nor those for other modules; so
    # not all that bindeb-pkg would have installed is needed.
    "DPKG_FLAGS": "--no-check-builddeps --rules-target=binary-image",
}


def make(
    flavour: str,
    source: Source,
    output: Path,
    modules: Path | None = None,
    *,
    show: Callable[[str], None] = lambda _: None,
) -> Path:
    """Build a kernel and its package; what an earlier call compiled is not compiled again.

    Args:
        flavour: ``stock``, the tree as it comes, or ``parallel``, woven; a name in :data:`FRAGMENTS`.
        source: the pristine tree; it stays as it is.
        output: folder for the package (:mod:`lab.package.folder`); it has to exist.
        modules: what ``lsmod`` printed on the server; of Debian's modules only these are built, and those
            that :data:`FRAGMENTS` ask for. None: all of Debian's.
        show: called with each line of what the kernel's script for that list complains about.

    Returns:
        The package, ``linux-image-VERSION-pwb-FLAVOUR_*.deb``.

    Raises:
        LabError: this computer lacks something, ``modules`` is no such list, Debian's configuration cannot be
            had, a setting was lost, the kernel's script for that list failed, make failed (with its first
            complaints and the path of the log), or another run makes the same package.
    """
    host.check(host.Need(disk_bytes=_DISK_BYTES))
    if modules is not None:
        loaded.check(modules)
    debian = debian_config.fetch(source.series).read_text(encoding="utf-8")
    home = cache_dir() / "build" / source.identity
    name = f"package of the {flavour} kernel {source.version}"
    # The later of two settings of one variable counts.
    variables = ("ARCH=x86_64", *MAKE_VARIABLES, f"LOCALVERSION=-pwb-{flavour}")
    doing = f"building the {name}"
    with exclusive(home / "lock", doing, waits=True), Progress(name) as progress, ExitStack() as stack:
        tree, identity = source.path, None
        if flavour == "parallel":
            progress.step("weave")
            tree = stack.enter_context(held.woven(source, f"{doing} from what was woven")).path
            identity = change.identity()
        commit = change.commit()
        # Read only now: the clone may have been changed while this waited.
        requests = config.merge([REPO / "config" / f"{name}.config" for name in FRAGMENTS[flavour]])
        kbuild = Kbuild(home / f"deb-{flavour}", name, variables, progress)
        kbuild.link(tree)
        (kbuild.objects / ".config").write_text(debian + config.text(requests), encoding="utf-8")
        kbuild.configure("olddefconfig", requests)
        if modules is not None:
            settings = kbuild.objects / ".config"
            kept = loaded.only(settings.read_text(encoding="utf-8"), source.path, modules, show)
            # What is asked for need not be loaded there.
            settings.write_text(kept + config.text(requests), encoding="utf-8")
            kbuild.configure("olddefconfig", requests)
        kbuild.compile("bindeb-pkg", kbuild.objects / "vmlinux", _OBJECTS, _ENVIRONMENT)
        [package] = kbuild.objects.parent.glob("linux-image-*.deb")
        return folder.put(package, output, change=identity, commit=commit)
