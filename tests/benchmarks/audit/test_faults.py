"""Every layer of the audit in short: silent as things stand, and each planted fault is seen."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import dpbayes_sklearn
from benchmarks.audit._cases import Case, first_finding
from benchmarks.audit._layers import LAYERS, noise_files, source_code
from benchmarks.audit._planted import FAULTS, Fault
from benchmarks.audit.faults import CRASHED, WANTED, sees
from benchmarks.audit.tools import enumerate_loss


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_finds_nothing_wrong(layer: str) -> None:
    assert sees(layer) is None


def test_no_generator_but_the_source_is_used_for_noise() -> None:
    assert list(source_code()) == []
    rooms = {file.parent.name for file in noise_files(Path(dpbayes_sklearn.__path__[0]))}
    assert rooms >= {"noise", "counts", "categories", "columns", "logistic", "regression", "sums"}


@pytest.mark.parametrize(
    "line",
    [
        "import secrets",
        "from random import gauss",
        "from numpy.random import laplace",
        "np.random.default_rng().laplace()",
        "np.random.default_rng(seed).laplace()",
        "check_random_state(seed).normal()",
    ],
)
def test_a_generator_beside_the_source_is_found(line: str, tmp_path: Path) -> None:
    room = tmp_path / "counts"
    room.mkdir()
    file = room / "plans.py"
    file.write_text(f"from dpbayes_sklearn.noise import Noise\n{line}\n")
    assert list(source_code(tmp_path))
    file.write_text("from dpbayes_sklearn.noise import Noise\nnp.random.default_rng(0)\n")
    assert list(source_code(tmp_path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_planted_fault_is_seen(fault: Fault) -> None:
    with fault.planted():
        what = sees(fault.seen_by, fault.shows_in)
    assert what is not None
    assert not what.startswith(CRASHED), what


def test_every_place_of_a_fault_exists() -> None:
    for fault in FAULTS:
        with fault.planted():
            pass


def test_there_are_enough_faults_of_every_kind() -> None:
    assert len(FAULTS) >= WANTED
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert {fault.area for fault in FAULTS} >= {"noise", "counts", "regression", "spending"}
    assert {fault.seen_by for fault in FAULTS} <= set(LAYERS)
    for layer, cases in LAYERS.items():
        names = [case.name for case in cases()]
        assert len({*names}) == len(names)
        assert all(any(f.shows_in in n for n in names) for f in FAULTS if f.seen_by == layer)


def test_a_case_that_is_tried_first_hides_no_other() -> None:
    names = ("one", "two", "silent")
    cases = [Case(n, lambda n=n: iter([n] * (n != "silent"))) for n in names]  # type: ignore[misc]
    assert [first_finding(cases, first) for first in ("", "two", "silent")] == ["one", "two", "one"]
    assert first_finding(cases[2:]) is None


def test_a_fault_is_gone_when_its_block_ends() -> None:
    (fault,) = (fault for fault in FAULTS if fault.name.startswith("The scale of the counts'"))
    with fault.planted():
        assert enumerate_loss("laplace", 3, 2).loss == 2.0
    assert enumerate_loss("laplace", 3, 2).loss == 1.0
    assert math.isfinite(enumerate_loss("geometric", 2, 2).loss)
