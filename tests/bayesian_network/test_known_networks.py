"""Fits of four networks of the literature."""

from __future__ import annotations

from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from scipy.stats import chi2

from dpbayes_sklearn import BayesianNetworkClassifier
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.mechanisms import Fourier, Laplace

MECHANISMS = ("laplace", "fourier", "sampler", "map")
SHAPES = {  # nodes, edges and free parameters of the published BIF files
    (8, 8): 18,
    (37, 46): 509,
    (20, 25): 230,
    (27, 52): 1008,
}


def fitted(known, X, y, epsilon: float, **options) -> BayesianNetworkClassifier:
    model = BayesianNetworkClassifier(
        epsilon, parents=known.parents, schema=known.schema, random_state=0, **options
    )
    return model.fit(X, y)


def test_the_graphs_are_those_of_the_published_files(known) -> None:
    nodes, edges = len(known.names), sum(map(len, known.network.parents))
    free = sum(prod(shape[:-1]) * (shape[-1] - 1) for shape in known.network.shapes)
    assert SHAPES[nodes, edges] == free


def deviance_p_value(counts: np.ndarray, table: np.ndarray) -> float:
    """P-value of Pearson's test that every row of counts has this row's law."""
    expected = counts.sum(axis=-1, keepdims=True) * table
    used = expected > 5
    rows = used.any(axis=-1)
    statistic = ((counts - expected)[used] ** 2 / expected[used]).sum()
    return float(chi2.sf(statistic, max(used.sum() - rows.sum(), 1)))


def test_without_privacy_the_tables_are_recovered(known, records) -> None:
    posterior = fitted(known, *records, float("inf"), inference="plug_in").posterior_.untempered
    assert posterior.network == known.network
    p_values = []
    for mean, rows, table in zip(
        posterior.mean(), posterior.concentrations, known.tables, strict=True
    ):
        n_rows = rows.sum(axis=-1, keepdims=True)  # with the prior's one for each value
        tolerance = 5 * np.sqrt(table * (1 - table) / n_rows) + 2 * table.shape[-1] / n_rows
        assert (np.abs(mean - table) <= tolerance).all()
        p_values.append(deviance_p_value(rows - 1, table))
    assert min(p_values) > 1e-3 / len(p_values)


def test_tables_slightly_off_are_not_taken_for_recovered(known, records) -> None:
    """The tolerance is narrow enough to tell a table from one a twentieth nearer to uniform."""
    posterior = fitted(known, *records, float("inf"), inference="plug_in").posterior_.untempered
    p_values = [
        deviance_p_value(rows - 1, 0.95 * table + 0.05 / table.shape[-1])
        for rows, table in zip(posterior.concentrations, known.tables, strict=True)
    ]
    assert np.mean(np.array(p_values) < 1e-6) > 0.5


@pytest.fixture(scope="module")
def unseen(known, records) -> tuple[np.ndarray, float]:
    """New records, and the mean log likelihood of what is learned without privacy."""
    X, _ = known.simulate(2000, seed=2)
    exact = fitted(known, *records, float("inf"), inference="plug_in")
    return X, exact.log_likelihood(X).mean()


@pytest.mark.parametrize(
    ("mechanism", "inference"),
    [(m, "plug_in") for m in MECHANISMS] + [(m, "noise_aware") for m in ("laplace", "fourier")],
)
def test_all_mechanisms_run_and_learn(
    known, records, unseen, mechanism: str, inference: str
) -> None:
    # a learned temperature takes most of the time of a fit, so one mechanism does
    fixed = {} if (mechanism, inference) == ("laplace", "noise_aware") else {"temperature": 1.0}
    model = fitted(known, *records, 1.0, mechanism=mechanism, inference=inference, **fixed)
    assert model.guarantee_.epsilon == 1
    for table, shape in zip(model.posterior_.mean(), known.network.shapes, strict=True):
        assert table.shape == shape
        np.testing.assert_allclose(table.sum(axis=-1), 1)
    X_new, without_privacy = unseen
    knowing_nothing = -np.log(known.network.sizes[:-1]).sum()
    learned = model.log_likelihood(X_new).mean() - knowing_nothing
    # the least of all is 0.44, Fourier on insurance
    assert learned > (without_privacy - knowing_nothing) / 3


def marginal(table: np.ndarray, family: tuple[int, ...], nodes: tuple[int, ...]) -> np.ndarray:
    """Return a table summed down to some of its nodes, in increasing order."""
    summed = table.sum(axis=tuple(a for a, u in enumerate(family) if u not in nodes))
    left = [u for u in family if u in nodes]
    return summed.transpose(np.argsort(left))


def disagreements(network: Network, tables) -> tuple[int, int]:
    """Count overlaps of two families, and those whose two marginals differ in any bit."""
    overlaps = differ = 0
    for (f, a), (g, b) in combinations(zip(network.families, tables, strict=True), 2):
        if shared := tuple(sorted({*f} & {*g})):
            overlaps += 1
            differ += not np.array_equal(marginal(a, f, shared), marginal(b, g, shared))
    return overlaps, differ


@pytest.mark.parametrize("unit", ["record", "feature"])
def test_fourier_tables_agree_bit_for_bit(alarm, unit: str) -> None:
    X, y = alarm.simulate(5000, seed=1)
    released = {
        mechanism: fitted(
            alarm, X, y, 1.0, mechanism=mechanism, inference="plug_in", privacy_unit=unit
        ).posterior_.released.tables
        for mechanism in ("fourier", "laplace")
    }
    assert disagreements(alarm.network, released["fourier"]) == (70, 0)
    overlaps, differ = disagreements(alarm.network, released["laplace"])
    assert differ > 0.9 * overlaps  # noise of their own in every table


def test_scale_of_the_noise_is_the_graphs(alarm) -> None:
    """2|I| / epsilon for counts, the exact change of the characters in the Fourier domain."""
    X, y = alarm.simulate(100, seed=1)
    kinds = [Laplace(noise="independent"), Fourier(noise="independent")]
    scales = {
        (mechanism.name(), unit): fitted(
            alarm, X, y, 2.0, mechanism=mechanism, inference="plug_in", privacy_unit=unit
        )
        .posterior_.released.laws[0]
        .scales
        for mechanism, unit in product(kinds, ("record", "feature"))
    }
    assert scales["laplace", "record"] == (37,) * 37
    most_families = max(sum(u in f for f in alarm.network.families) for u in range(36))
    assert scales["laplace", "feature"] == (most_families,) * 37
    assert scales["fourier", "record"] == (601 / 2,)
    assert scales["fourier", "feature"] == (152 / 2,)
