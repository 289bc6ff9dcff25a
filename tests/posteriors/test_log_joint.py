"""The log joint of stars: a plain sum of logarithms, two columns at a time or one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpbayes_sklearn.posteriors import log_joint
from dpbayes_sklearn.posteriors import network as network_posterior
from dpbayes_sklearn.statistics.network import Network


def star(sizes: list[int], n_classes: int) -> tuple[Network, Any]:
    rng = np.random.default_rng(sum(sizes))
    tables = [np.log(rng.dirichlet(np.ones(k), n_classes)) for k in sizes]
    return Network.star(sizes, n_classes), (*tables, np.log(rng.dirichlet(np.ones(n_classes))))


def naive(tables: Any, codes: npt.NDArray[Any]) -> list[list[float]]:
    return [
        [
            tables[-1][c] + sum(t[c, v] for t, v in zip(tables[:-1], row, strict=True))
            for c in range(len(tables[-1]))
        ]
        for row in codes.tolist()
    ]


@pytest.mark.parametrize("n_classes", [1, 2, 10])
@pytest.mark.parametrize(
    "sizes",
    [[2], [2, 2, 2], [3], [3, 2, 5, 8], [1, 4, 1], [32] * 5, [33, 2, 7], [300, 2], [256, 256, 3]],
)
def test_it_is_the_sum_of_logarithms(sizes: list[int], n_classes: int) -> None:
    network, tables = star(sizes, n_classes)
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, 37) for k in sizes], axis=1)
    codes = codes.astype(np.uint8 if max(sizes) <= 256 else np.uint16)
    expected = naive(tables, codes)
    for layout in (codes, np.asfortranarray(codes)):
        got = network_posterior.log_joint(network, tables, layout)
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_blocks_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for sizes in ([2] * 3, [4, 3, 2]):
        network, tables = star(sizes, 3)
        rng = np.random.default_rng(1)
        codes = np.stack([rng.integers(0, k, 50) for k in sizes], axis=1).astype(np.uint8)
        whole = network_posterior.log_joint(network, tables, codes)
        monkeypatch.setattr(network_posterior, "_ROWS", 7)
        monkeypatch.setattr(network_posterior, "_BLOCK", 7)
        np.testing.assert_allclose(
            network_posterior.log_joint(network, tables, codes), whole, rtol=1e-14
        )
        monkeypatch.undo()


def test_the_first_of_equal_classes_is_predicted() -> None:
    joint = np.array([[-1.0, -1.0], [-2.0, -1.0], [-1.0, -2.0]])
    assert log_joint.most_probable(np.array(["a", "b"]), joint).tolist() == ["a", "b", "a"]
    three = np.array([[-1.0, -3.0, -1.0], [-2.0, -1.0, -1.0]])
    assert log_joint.most_probable(np.array([5, 6, 7]), three).tolist() == [5, 6]


def test_probabilities_of_the_classes_add_up() -> None:
    joint = np.array([[-1000.0, -1001.0], [0.0, -5.0]])
    assert log_joint.proba(joint).sum(axis=1) == pytest.approx(1.0)
    assert np.exp(log_joint.log_sum(joint))[1] == pytest.approx(1 + np.exp(-5))
    assert log_joint.log_proba(joint)[0] == pytest.approx([-np.log1p(np.exp(-1)), -1.3132617])
