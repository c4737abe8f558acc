# SPDX-License-Identifier: GPL-2.0
"""Pages of the docs, and the parts of them that are made of measurements.

Such a part stands between two comments, ``<!-- made: WHAT -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

from lab.docs import auto, derived, efforts, measurements, over_cpus
from lab.docs.derived import BOUNDS, TITLES, WIDEST
from lab.docs.measurements import MEASUREMENTS
from lab.experiment.axes import Variant
from lab.result import throttle
from lab.result.provenance import META, TABLE
from lab.util import markdown
from lab.util.errors import LabError, unknown_name
from lab.util.paths import REPO

PART = re.compile(r"(<!-- made: (?P<what>[\w -]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
SOURCE = "source"
#: Columns of a letter, as of a message of git.
LETTER_WIDTH = 75
COLUMNS: dict[tuple[Variant, int | None], str] = {
    ("parallel", 1): "1 context",
    ("parallel", 2): "2",
    ("parallel", 4): "4",
    ("parallel", 8): "8 contexts",
    ("bdis", None): BOUNDS["bdis"],
    ("direct", None): BOUNDS["direct"],
}


def pages() -> list[Path]:
    """List the pages that people write."""
    return [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))]


def renewed(page: Path) -> str:
    """Return the text of a page with all parts made again.

    Raises:
        LabError: a part of an unknown kind, or a page that shows measurements and not of which kernel.
    """
    text = page.read_text(encoding="utf-8")
    if _cited(text) and f"<!-- made: {SOURCE} -->\n" not in text:
        raise LabError(
            f"{page.name} shows measurements and does not say of which kernel: "
            f"add the lines <!-- made: {SOURCE} --> and <!-- end -->"
        )
    return PART.sub(lambda part: part[1] + _made(part["what"], text, page) + part[3], text)


def _made(what: str, text: str, page: Path) -> str:
    kind, *arguments = what.split()
    if kind == SOURCE:
        return source(_cited(text), page)
    if kind not in PARTS:
        raise unknown_name("part of a page", kind, [SOURCE, *PARTS])
    return PARTS[kind](*arguments)


def _cited(text: str) -> list[str]:
    """List the measurements that a page shows, or links to, in order."""
    linked = re.findall(rf"{MEASUREMENTS.name}/([a-z0-9-]+)/", PART.sub("", text))
    named = [word for part in PART.finditer(text) for word in part["what"].split()[1:]]
    shown = [word for word in named if (MEASUREMENTS / word).is_dir()]
    return list(dict.fromkeys([*shown, *linked]))


def source(names: list[str], page: Path) -> str:
    """Return the sentence that says of which kernel measurements are.

    Args:
        names: of the measurements.
        page: where it will stand.

    Raises:
        LabError: there are none.
    """
    if not names:
        raise LabError(f"{page.name} says of which kernel its measurements are, and links to none")
    kernels: dict[str, list[str]] = {"on this kernel": []}
    kernels |= {f"on this kernel but for {what}": [] for what in measurements.SMALL_DIFFERENCES.values()}
    kernels["on an earlier kernel"] = []
    for name in names:
        kernels[f"on {_kernel(name) or 'this kernel'}"].append(name)
    said = [
        f"{kernel}: {', '.join(_link(name, page) for name in of_it)}"
        for kernel, of_it in kernels.items()
        if of_it
    ]
    sentence = f"Measured {'; '.join(said)}."
    return textwrap.fill(sentence, WIDEST, break_long_words=False, break_on_hyphens=False) + "\n"


def _kernel(name: str) -> str | None:
    """Tell the kernel of a measurement; None for the present one."""
    meta = measurements.meta(name)
    if meta.is_of_this_kernel:
        return None
    return f"this kernel but for {meta.small_difference}" if meta.small_difference else "an earlier kernel"


def _link(name: str, page: Path) -> str:
    where = os.path.relpath(MEASUREMENTS / name / META, page.parent)
    return f"[{name}]({where})"


def figures(what: str) -> str:
    """Return a part of a page as plain text, in columns, as a mail shows it.

    Args:
        what: its kind, one of :data:`PARTS`, and the measurements that it is of.

    Raises:
        LabError: a part of an unknown kind.
    """
    kind, *arguments = what.split()
    if kind not in PARTS:
        raise unknown_name("part of a page", kind, PARTS)
    kernels = {name: _kernel(name) for name in arguments if (MEASUREMENTS / name).is_dir()}
    text = markdown.plain(PARTS[kind](*arguments)).rstrip("\n")
    for kernel in dict.fromkeys(filter(None, kernels.values())):
        of = [name for name in arguments if kernels.get(name) == kernel]
        of_all = "" if len(of) == len(arguments) else f": {', '.join(of)}"
        text += "\n\n" + textwrap.fill(f"(Measured on {kernel}{of_all}.)", LETTER_WIDTH)
    return text + "\n"


def table(name: str) -> str:
    """Return the table of a measurement, without what stands around it."""
    lines = (MEASUREMENTS / name / TABLE).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.startswith("|")) + "\n"


def session(name: str) -> str:
    """Return a session at a console, whole; a line that is too wide for a page goes on below itself."""
    wrap = textwrap.TextWrapper(WIDEST, subsequent_indent="    ", break_on_hyphens=False)
    wide = (MEASUREMENTS / name / TABLE).read_text(encoding="utf-8").splitlines()
    lines = (line if len(line) <= WIDEST else wrap.fill(line) for line in wide)
    return "".join(f"{line}\n" for line in lines)


def means(name: str) -> str:
    """Return the means over filesystems of what the throttle is asked for."""
    return throttle.means(measurements.cells(name))


def multiples(name: str) -> str:
    """Return the table of what contexts and bounds come to, as multiples of stock."""
    every = measurements.cells(name)
    rates = {
        (cell.fs, cell.dirty_limit_mib, cell.variant, cell.contexts): cell.mib_s.median for cell in every
    }
    rows = []
    for stock in every:
        if stock.variant == "stock":
            base = stock.mib_s.median
            shown = [
                rates[stock.fs, None if variant == "direct" else stock.dirty_limit_mib, variant, contexts]
                / base
                for variant, contexts in COLUMNS
            ]
            told = [f"{ratio:.2f} x" for ratio in shown]
            rows.append([TITLES[stock.fs], f"{stock.dirty_limit_mib} MiB", f"{base:.0f}", *told])
    heads = ("filesystem", "dirty limit", "stock, MiB/s", *COLUMNS.values())
    return markdown.table(heads, rows, left=2)


PARTS: dict[str, Callable[..., str]] = {
    "table": table,
    "means": means,
    "multiples": multiples,
    "session": session,
    "scaling": over_cpus.scaling,
    "over-cpus": over_cpus.multiples_over_cpus,
    "limits": over_cpus.limits,
    "losses": over_cpus.losses,
    "of-separate-bdis": over_cpus.of_separate_bdis,
    "affinity": derived.affinity,
    "asked": derived.asked,
    "blocked": derived.blocked,
    "claims": derived.claims,
    "curves": derived.curves,
    "efforts": efforts.efforts,
    "extents": derived.extents,
    "found": auto.found,
    "fragments": derived.fragments,
    "misses": auto.misses,
    "profiles": auto.profiles,
    "reads": auto.reads,
    "took": auto.took,
    "modes": derived.modes,
    "placements": derived.placements,
    "prepared": derived.prepared,
    "verdict": derived.verdict,
    "workers": derived.workers,
}
