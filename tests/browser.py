# SPDX-License-Identifier: GPL-2.0
"""A browser without a screen, Debian's Chromium, unpacked into the cache: to look at the page of a result."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.util.apt import reachable, unpack
from lab.util.lock import in_turn
from lab.util.paths import cache_dir

SUITES = ["bookworm"]
PACKAGE = "chromium-headless-shell"
STAMP = ".complete"
# Chromium's numbers of the schemes that a page can ask for.
SCHEMES = {"dark": 0, "light": 1}
# Asked of the page once it is laid out, and left in its title, which comes back with the page.
PROBE = """
<script>
const wide = [...document.querySelectorAll('body *')].filter(one =>
    !one.closest('.wide, pre') && one.getBoundingClientRect().right > innerWidth + 1);
const style = getComputedStyle(document.body);
document.title = JSON.stringify({
    width: innerWidth, scroll_width: document.documentElement.scrollWidth,
    wide: wide.map(one => one.outerHTML.slice(0, 80)),
    text: style.color, back: style.backgroundColor,
    broken: [...document.images].filter(one => !one.naturalWidth).length,
    pictures: [...document.querySelectorAll('img, svg')].map(one => one.getBoundingClientRect().width),
    flames: [...document.querySelectorAll('.flame')].map(one => one.getBoundingClientRect().top),
});
</script>
"""


@dataclass(frozen=True)
class Look:
    """What a page is like on a screen.

    Attributes:
        width: of the window, in pixels.
        scroll_width: of the page.
        wide: the elements that stick out on the right, but for those that scroll by themselves.
        text: colour of the text, as ``rgb(...)``.
        back: colour behind it.
        broken: images that cannot be shown.
        pictures: widths of all pictures, in pixels.
        flames: where each flame graph begins, in pixels from the top.
    """

    width: int
    scroll_width: int
    wide: list[str]
    text: str
    back: str
    broken: int
    pictures: list[float]
    flames: list[float]


def find() -> Path:
    """Return the folder of the unpacked browser, fetched when it is missing."""
    place = cache_dir() / "browser" / PACKAGE
    with in_turn(place.with_suffix(".lock")):
        if (place / STAMP).exists():
            return place
        work = place.with_suffix(".partial")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        try:
            apt = reachable(work, SUITES, "a browser", "leave this test out")
            unpack(apt.download_missing(PACKAGE, "chromium-.*"), work / "tree", "the browser", mib=500)
            (work / "tree" / STAMP).touch()
            shutil.rmtree(place, ignore_errors=True)
            (work / "tree").rename(place)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return place


def look(page: Path, screenshot: Path, width: int, scheme: str) -> Look:
    """Open a page in a window, and take a picture of it.

    Args:
        page: an HTML file that needs nothing else.
        screenshot: picture to write.
        width: of the window, in pixels.
        scheme: ``light`` or ``dark``.
    """
    probed = screenshot.with_suffix(".html")
    probed.write_text(
        page.read_text(encoding="utf-8").replace("</body>", f"{PROBE}</body>"), encoding="utf-8"
    )
    tree = find()
    libraries = sorted({path.parent for path in tree.rglob("*.so*")})
    command = [
        *(
            str(tree / "usr" / "lib" / "chromium" / PACKAGE),
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ),
        f"--user-data-dir={screenshot.parent / 'profile'}",
        f"--window-size={width},4000",
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
        f"--screenshot={screenshot}",
        *("--dump-dom", probed.as_uri()),
    ]
    env = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries)), "HOME": str(screenshot.parent)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    found = re.search(r"<title>({.*?})</title>", done.stdout, re.DOTALL)
    assert found, f"{done.stderr[-2000:]}\n{done.stdout[:500]}"
    return Look(**json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")))
