"""Loss sums: exact, additive, and no more sensitive than they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.counts import temperature
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.posterior import DrawsPosterior
from dpbayes_sklearn.counts.temperature import (
    TEMPERINGS,
    LossSums,
    Tempering,
    emphases,
    steps_at_most,
    stride,
    temperature_share,
)
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit

CLASSES = 3
LOG_PRIOR = np.log([0.5, 0.3, 0.2])
ONE = st.tuples(
    st.integers(0, CLASSES - 1),
    st.lists(st.floats(-1e6, 0) | st.just(-np.inf), min_size=3 * CLASSES, max_size=3 * CLASSES),
)


def sums(records: list[tuple[int, list[float]]]) -> LossSums:
    values = np.array([r[1] for r in records]).reshape(len(records), 3, CLASSES)
    with np.errstate(invalid="ignore"):
        evidence = {emphasis: values[:, i] for i, emphasis in enumerate(emphases())}
        return LossSums.of(LOG_PRIOR, evidence, np.array([r[0] for r in records]))


@given(st.lists(ONE, min_size=1, max_size=6), ONE, st.data())
def test_replaced_record_moves_sums_by_no_more_than_the_sensitivity(
    records: list[tuple[int, list[float]]], other: tuple[int, list[float]], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(records) - 1))
    neighbour = [*records[:at], other, *records[at + 1 :]]
    here, there = sums(records), sums(neighbour)
    assert np.abs(here.sums - there.sums).max() <= here.sensitivity(RECORD)


def test_sensitivity_is_attained() -> None:
    sure = [0.0, -1e6, -1e6] * 3
    right, wrong = sums([(0, sure)]), sums([(1, sure)])
    assert (wrong.sums - right.sums).max() == right.sensitivity(RECORD)


@given(st.lists(ONE, min_size=2, max_size=8))
def test_sums_of_parts_add_up(records: list[tuple[int, list[float]]]) -> None:
    parts = sums(records[:1]) + sums(records[1:])
    assert (parts.sums == sums(records).sums).all()
    assert parts.n == len(records)


def test_best_score_is_the_smallest_loss() -> None:
    # evidence that is right four times out of five, and far too sure of it
    rng = np.random.default_rng(0)
    classes = rng.integers(0, CLASSES, 2000)
    seen = np.where(rng.random(2000) < 0.7, classes, rng.integers(0, CLASSES, 2000))
    evidence = np.where(np.arange(CLASSES) == seen[:, None], 0.0, -12.0)
    found = LossSums.of(np.log(np.ones(3) / 3), dict.fromkeys(emphases(), evidence), classes)
    best = [*TEMPERINGS][int(found.scores(RECORD, 100.0).argmax())]
    assert best.temperature in (0.12, 0.2)


def test_scores_are_within_their_public_bound() -> None:
    found = sums([(1, [0.0, -1e6, -1e6] * 3)] * 50)
    assert np.abs(found.scores(RECORD, 2.0)).max() <= LossSums.magnitude(50, 2.0, RECORD)


@pytest.mark.parametrize("change", ["replace", "add_remove"])
@pytest.mark.parametrize("unit", [("record", 1), ("person", 3)], ids=str)
def test_the_bound_on_scores_holds_for_every_unit_and_is_nearly_attained(
    unit: tuple[str, int], change: str
) -> None:
    n, whom = 10**6, PrivacyUnit(unit[0], max_records=unit[1], neighbours=change)
    worst = LossSums(np.full(len(TEMPERINGS), n * steps_at_most(2)), n, 2)
    most = np.abs(worst.scores(whom, 1.0)).max()
    assert most <= LossSums.magnitude(n, 1.0, whom) <= most + 8


@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("values", [2, 5])
@pytest.mark.parametrize("star", [True, False])
def test_a_loss_is_the_same_wherever_its_record_stands(
    monkeypatch: pytest.MonkeyPatch, n_classes: int, values: int, star: bool
) -> None:
    monkeypatch.setattr(temperature, "_STEPS_IN_A_NAT", 2**45)  # of a few last bits
    rng, n, d = np.random.default_rng(0), 203, 13
    sizes = [values] * d
    network = Network.star(sizes, n_classes)
    if not star:
        network = Network((*sizes, n_classes), ((d,), *((d, j) for j in range(d - 1)), ()))
    tables = tuple(rng.dirichlet(np.ones(k[-1]), (1, *k[:-1])) for k in network.shapes)
    codes = rng.integers(0, values, (n, d)).astype(np.uint8)
    classes = rng.integers(0, n_classes, n)
    model = DrawsPosterior(network, tables, np.ones(1))

    def losses(rows: slice) -> IntArray:
        prior, evidence = model.evidence(emphases())(codes[rows].copy())
        return LossSums.of(prior, evidence, classes[rows]).sums

    each = np.array([losses(slice(i, i + 1)) for i in range(n)])
    for first, last in ((0, n), (1, n), (2, n - 1), (5, n - 3), (n - 2, n)):
        assert np.array_equal(losses(slice(first, last)), each[first:last].sum(axis=0))


def test_grid_weights_are_a_distribution() -> None:
    assert sum(TEMPERINGS.values()) == pytest.approx(1.0)
    assert len(TEMPERINGS) == 30


def test_emphasis_keeps_the_most_informative_feature() -> None:
    weights = Tempering(0.5, 2.0).weights(np.array([0.1, 0.4, 0.0]))
    np.testing.assert_allclose(weights, [0.5 / 16, 0.5, 0.0])
    np.testing.assert_allclose(Tempering(0.5, 2.0).weights(np.zeros(2)), 0.5)


@given(st.integers(1, 10**8), st.floats(1e-4, 100))
def test_shares_and_strides_are_sensible(n: int, epsilon: float) -> None:
    share = temperature_share(n, Fraction(epsilon))
    assert share == 0 or Fraction(1, 25) <= share <= Fraction(3, 20)
    step = stride(n, float(share) * epsilon)
    assert 1 <= step <= n
    assert step == 1 or n // step >= 20_000
