# SPDX-License-Identifier: GPL-2.0
"""Kernel config fragments: merging, and the proof that every line survived kconfig."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.tree import config
from lab.util.errors import LabError


def fragment(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_merge_lets_the_later_fragment_win(tmp_path: Path) -> None:
    common = fragment(tmp_path, "common.config", '# why\nCONFIG_A=y\nCONFIG_ORDER=2\n\nCONFIG_NAME="fd:0"\n')
    debug = fragment(tmp_path, "debug.config", "CONFIG_ORDER=3\n# CONFIG_A is not set\n")
    merged = config.merge([common, debug])
    assert config.text(merged) == 'CONFIG_A=n\nCONFIG_ORDER=3\nCONFIG_NAME="fd:0"\n'
    assert {request.symbol: (request.fragment.name, request.line) for request in merged} == {
        "CONFIG_A": ("debug.config", 2),
        "CONFIG_ORDER": ("debug.config", 1),
        "CONFIG_NAME": ("common.config", 5),
    }


def test_merge_refuses_a_line_that_sets_nothing(tmp_path: Path) -> None:
    path = fragment(tmp_path, "common.config", "CONFIG_A=y\nXFS_FS=y\n")
    with pytest.raises(LabError, match=r"common\.config line 2: 'XFS_FS=y' is no kernel setting"):
        config.merge([path])


def test_merge_names_a_missing_fragment(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"absent\.config is missing"):
        config.merge([tmp_path / "absent.config"])


def test_verify_accepts_what_kconfig_granted(tmp_path: Path) -> None:
    asked = config.merge(
        [
            fragment(
                tmp_path,
                "a.config",
                'CONFIG_A=y\nCONFIG_N=16\nCONFIG_S="x y"\n# CONFIG_B is not set\nCONFIG_C=n\n',
            )
        ]
    )
    config.verify(asked, 'CONFIG_A=y\nCONFIG_N=16\nCONFIG_S="x y"\n# CONFIG_B is not set\nCONFIG_OTHER=y\n')


@pytest.mark.parametrize(
    ("asked", "became"),
    [
        ("CONFIG_A=y", "absent"),
        ("CONFIG_N=16", "8"),
        ('CONFIG_S="null"', '"xterm"'),
        ("# CONFIG_B is not set", "y"),
        ("CONFIG_OFF=y", "n"),
    ],
)
def test_verify_names_a_lost_symbol_its_fragment_and_line(tmp_path: Path, asked: str, became: str) -> None:
    requests = config.merge([fragment(tmp_path, "common.config", f"# why\nCONFIG_KEPT=y\n{asked}\n")])
    granted = 'CONFIG_KEPT=y\nCONFIG_N=8\nCONFIG_S="xterm"\nCONFIG_B=y\n# CONFIG_OFF is not set\n'
    with pytest.raises(LabError) as caught:
        config.verify(requests, granted)
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert requests[1].symbol in lines[1]
    assert "(common.config line 3)" in lines[1]
    assert lines[1].endswith(f"became {became}")


def test_verify_names_every_lost_symbol(tmp_path: Path) -> None:
    requests = config.merge([fragment(tmp_path, "a.config", "CONFIG_A=y\nCONFIG_B=y\n")])
    with pytest.raises(LabError, match=r"(?s)CONFIG_A=y.*CONFIG_B=y"):
        config.verify(requests, "")


@pytest.mark.parametrize("machine", config.FRAGMENTS)
def test_stock_and_parallel_ask_for_the_same_settings(machine: str) -> None:
    ours = [path for path in config.fragments("parallel", machine) if path.stem not in ("contexts", "hints")]
    assert config.fragments("stock", machine) == ours


@pytest.mark.parametrize(
    ("machine", "flavour"),
    [(machine, flavour) for machine, flavours in config.FRAGMENTS.items() for flavour in flavours],
)
def test_our_own_fragments_are_well_formed(machine: str, flavour: str) -> None:
    asked = {request.symbol: request.value for request in config.merge(config.fragments(flavour, machine))}
    assert asked["CONFIG_EXT4_FS"] == "y"
    assert asked.get("CONFIG_KASAN", "n") == ("y" if flavour == "debug" else "n")
    assert asked["CONFIG_CGROUP_WRITEBACK"] == ("n" if flavour == "nocgroup" else "y")


def test_the_machine_for_measurements_has_many_cpus_and_stacks_that_can_be_walked() -> None:
    asked = {request.symbol: request.value for request in config.merge(config.fragments("parallel", "smp"))}
    assert asked["CONFIG_NR_CPUS"] == "256"
    assert asked["CONFIG_FRAME_POINTER"] == asked["CONFIG_PREEMPT_LAZY"] == "y"


def test_what_the_tests_boot_can_be_built() -> None:
    for machine, flavours in config.TESTED.items():
        assert set(flavours) <= set(config.FRAGMENTS[machine])


def test_an_unknown_flavour_is_named_with_its_neighbours() -> None:
    with pytest.raises(LabError, match=r"unknown smp kernel 'paralel': expected parallel"):
        config.fragments("paralel", "smp")


def test_an_unknown_machine_is_named_with_its_neighbours() -> None:
    with pytest.raises(LabError, match=r"unknown machine 'umll': expected uml"):
        config.fragments("stock", "umll")
