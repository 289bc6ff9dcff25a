"""Trees of convolutions against plain enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dpbayes_sklearn.counts.messages import LINEAR, LOG, Segment, SumTree

WEIGHTS = [
    (2, [1.0, 3.0, 0.5]),
    (0, [2.0, 1.0]),
    (5, [0.1, 0.2, 0.3, 0.4]),
    (1, [1.0]),
    (0, [1.0, 7.0]),
]


def everything(first, last):
    return 0, 100


def tree_of(algebra, parts=WEIGHTS):
    segments = [Segment(start, algebra.of_log(np.log(values))) for start, values in parts]
    return SumTree(segments, everything, algebra)


def enumerated(parts=WEIGHTS):
    for values in product(*(range(start, start + len(w)) for start, w in parts)):
        yield values, np.prod([w[v - start] for v, (start, w) in zip(values, parts, strict=True)])


@pytest.mark.parametrize("algebra", [LINEAR, LOG])
def test_law_of_the_total(algebra):
    expected = np.zeros(20)
    for values, weight in enumerated():
        expected[sum(values)] += weight
    total = tree_of(algebra).total
    got = np.zeros(20)
    got[total.start : total.stop] = np.exp(algebra.to_log(total.values))
    np.testing.assert_allclose(got / got.sum(), expected / expected.sum(), atol=1e-14)


@pytest.mark.parametrize("algebra", [LINEAR, LOG])
def test_law_of_each_part_given_weights_of_the_total(algebra):
    given = {10: 2.0, 12: 1.0}
    expected = np.zeros((len(WEIGHTS), 20))
    for values, weight in enumerated():
        for part, value in enumerate(values):
            expected[part, value] += weight * given.get(sum(values), 0.0)
    with np.errstate(divide="ignore"):
        log_given = np.log([given.get(s, 0.0) for s in range(10, 13)])
    tree = tree_of(algebra)
    for part, rest in enumerate(tree.parts_given(Segment(10, algebra.of_log(log_given)))):
        law = np.zeros(20)
        law[rest.start : rest.stop] = algebra.product(tree.parts[part].values, rest.values)
        np.testing.assert_allclose(
            law / law.sum(), expected[part] / expected[part].sum(), atol=1e-14
        )


@pytest.mark.parametrize("algebra", [LINEAR, LOG])
def test_draws_add_up_and_have_the_right_law(algebra):
    totals = np.full(20_000, 11)
    draws = tree_of(algebra).sample(totals, np.random.default_rng(0))
    assert np.all(draws.sum(axis=1) == 11)
    law = {values: weight for values, weight in enumerated() if sum(values) == 11}
    scale = sum(law.values())
    assert set(map(tuple, draws)) <= set(law)
    for values, weight in law.items():
        share, p = np.mean(np.all(draws == values, axis=1)), weight / scale
        assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / len(draws))


def test_windows_keep_what_they_hold():
    """A window that holds the asked total leaves its weight unchanged up to scale."""
    whole = tree_of(LINEAR).total
    part = SumTree(
        [Segment(start, np.array(values)) for start, values in WEIGHTS],
        lambda first, last: (9, 13) if last - first == len(WEIGHTS) else (0, 100),
        LINEAR,
    ).total
    assert (part.start, part.stop) == (9, 14)
    inside = LINEAR.window(whole, 9, 13)
    np.testing.assert_allclose(part.values / part.values.sum(), inside / inside.sum())


def test_logarithms_hold_what_doubles_do_not():
    """Weights that differ by a thousand nats, both of which the total needs."""
    steep = Segment(0, -700.0 * np.arange(4.0))
    tree = SumTree([steep, steep, steep], lambda first, last: (0, 9), LOG)
    assert LOG.to_log(LOG.window(tree.total, 9, 9))[0] == pytest.approx(-6300.0)
