# SPDX-License-Identifier: GPL-2.0
"""Fixtures that several test files share. Tests that boot a guest carry the mark ``guest``."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.tree.build import Kernel
from lab.tree.source import Source, fetch
from tests.built import built
from tests.guest import output
from tests.madeup import clone, linux_tree
from tests.tried import Tried

#: Files whose tests have one machine only.
MACHINE_OF = {"test_data_races.py": "smp", "test_packages.py": "uml"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--machine", choices=("uml", "smp"), default="uml", help="machine of the debug kernel")
    parser.addoption("--cpus", type=int, default=2, help="its CPUs")


def pytest_configure(config: pytest.Config) -> None:
    # What tests start speaks one language, and nobody's terminal is theirs.
    os.environ["LC_ALL"] = "C.UTF-8"
    for name in ("LANGUAGE", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        os.environ.pop(name, None)
    output.cpus = config.getoption("--cpus")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if output.cpus > output.UML_CPUS and worker:
        # A guest in virtual time keeps one core busy, if it has one, and loses time where it has several.
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what has a kernel and a machine of its own, but once."""
    machine = config.getoption("--machine")
    return MACHINE_OF.get(collection_path.name, machine) != machine or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out on a further machine what does not boot the kernel of that machine."""
    if config.getoption("--machine") == "uml":
        return
    again = [
        item
        for item in items
        if "debug_kernel" not in getattr(item, "fixturenames", ()) and item.path.name not in MACHINE_OF
    ]
    config.hook.pytest_deselected(items=again)
    items[:] = [item for item in items if item not in again]


@pytest.fixture(scope="session", autouse=True)
def signals_end_children() -> Iterator[None]:
    """Let signals end what the tests start, also where our caller has us ignore them, as nohup and ``&`` do.

    A child inherits what is ignored, but not a handler.
    """
    ignored = [n for n in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture
def tried(record_property: Callable[[str, object], None]) -> Tried:
    """Return what notes how much a test has tried."""

    def note(**counts: int) -> None:
        for name, count in counts.items():
            record_property(name.replace("_", " "), count)

    return note


@pytest.fixture(scope="session")
def kernel_source() -> Source:
    return fetch()


@pytest.fixture(scope="session")
def debug_kernel(request: pytest.FixtureRequest, kernel_source: Source) -> Kernel:
    return built("debug", kernel_source, request.config.getoption("--machine"))


@pytest.fixture(scope="session")
def uml_debug_kernel(kernel_source: Source) -> Kernel:
    """Return the debug kernel of User-mode Linux, for what only that machine has."""
    return built("debug", kernel_source)


@pytest.fixture(scope="session")
def uml_stock_kernel(kernel_source: Source) -> Kernel:
    return built("stock", kernel_source)


@pytest.fixture(scope="session")
def uml_parallel_kernel(kernel_source: Source) -> Kernel:
    return built("parallel", kernel_source)


@pytest.fixture(scope="session")
def nocgroup_kernel(kernel_source: Source) -> Kernel:
    return built("nocgroup", kernel_source)


@pytest.fixture(scope="session")
def smp_stock_kernel(kernel_source: Source) -> Kernel:
    return built("stock", kernel_source, "smp")


@pytest.fixture(scope="session")
def smp_parallel_kernel(kernel_source: Source) -> Kernel:
    return built("parallel", kernel_source, "smp")


@pytest.fixture(scope="session")
def smp_debug_kernel(kernel_source: Source) -> Kernel:
    return built("debug", kernel_source, "smp")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    """Return a made-up kernel tree, with a cache of its own."""
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    return Source(linux_tree(tmp_path / "linux"), "7.3.4", "7.3", "5ca1ab1e")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Return a made-up clone, with hooks and files of ours."""
    return clone(tmp_path / "clone")
