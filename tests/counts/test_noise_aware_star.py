"""Noisy counts: the posterior equals enumeration, on every lattice, and so do its draws."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from dpbayes_sklearn.counts.noise_aware import StarInference, dirichlet_draws, infer_star
from dpbayes_sklearn.noise import Marginal
from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal
from dpbayes_sklearn.noise.law import sum_of

FloatArray = npt.NDArray[np.float64]


def splits(total: int, cells: int) -> Iterator[tuple[int, ...]]:
    if cells == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in splits(total - first, cells - 1):
            yield (first, *rest)


def log_prior(counts: FloatArray, alpha: FloatArray) -> float:
    """Log probability of one split of a row under a Dirichlet-multinomial."""
    n, a = counts.sum(), alpha.sum()
    cells = gammaln(alpha + counts) - gammaln(alpha) - gammaln(counts + 1)
    return float(gammaln(n + 1) + gammaln(a) - gammaln(n + a) + cells.sum())


GRID = np.arange(-1500.0, 1501.0)


@lru_cache
def log_sum_law(scales: tuple[float, ...]) -> FloatArray:
    """Log law on the grid of a sum of discrete Laplace variables."""
    log_law = -np.abs(GRID) / scales[0]
    for scale in scales[1:]:
        log_law = np.array([logsumexp(log_law - np.abs(v - GRID) / scale) for v in GRID])
    return log_law


def log_noise(x: FloatArray, scales: Sequence[float]) -> float:
    """Log probability of noises, each a sum over ``scales``, by summing over all but the last."""
    *inner, last = scales
    if not inner:
        return float(-np.abs(x).sum() / last)
    log_law = log_sum_law(tuple(inner))
    return float(sum(logsumexp(log_law - np.abs(v - GRID) / last) for v in x.ravel()))


def enumerate_posterior(
    z: FloatArray,
    tables: list[FloatArray],
    n: int,
    class_scales: Sequence[float],
    table_scales: list[Sequence[float]],
    class_alpha: FloatArray,
    table_alphas: list[FloatArray],
) -> tuple[FloatArray, list[FloatArray]]:
    """Posterior means by going through all count tables."""
    log_weights, class_means, all_means = [], [], []
    for split in splits(n, len(z)):
        counts = np.array(split, dtype=float)
        log_weight = log_prior(counts, class_alpha) + log_noise(z - counts, class_scales)
        means = []
        for table, scales, alpha in zip(tables, table_scales, table_alphas, strict=True):
            rows = []
            for row, total in zip(table, split, strict=True):
                cells = np.array(list(splits(total, len(row))), dtype=float)
                logs = np.array([log_prior(k, alpha) + log_noise(row - k, scales) for k in cells])
                log_weight += logsumexp(logs)
                weights = np.exp(logs - logsumexp(logs))
                rows.append(weights @ (alpha + cells) / (alpha.sum() + total))
            means.append(np.stack(rows))
        log_weights.append(log_weight)
        class_means.append((class_alpha + counts) / (class_alpha.sum() + n))
        all_means.append(means)
    weights = np.exp(np.array(log_weights) - logsumexp(log_weights))
    return weights @ np.stack(class_means), [
        np.tensordot(weights, np.stack([means[j] for means in all_means]), 1)
        for j in range(len(tables))
    ]


@st.composite
def problems(draw: st.DrawFn) -> dict[str, object]:
    """Draw tiny released tables, near to and far from what the noise explains."""
    n_classes, n = draw(st.integers(1, 3)), draw(st.integers(0, 6))
    sizes = draw(st.lists(st.integers(1, 3), max_size=2))
    count = st.one_of(st.integers(-3, 9), st.integers(-500, 500))
    scale = st.floats(0.05, 300.0)
    alpha = st.floats(0.02, 20.0)

    def array(strategy: st.SearchStrategy[float], *shape: int) -> FloatArray:
        total = int(np.prod(shape))
        values = draw(st.lists(strategy, min_size=total, max_size=total))
        return np.array(values, dtype=float).reshape(shape)

    return {
        "z": array(count, n_classes),
        "tables": [array(count, n_classes, size) for size in sizes],
        "n": n,
        "class_scales": [draw(scale)],
        "table_scales": [[draw(scale)] for _ in sizes],
        "class_alpha": array(alpha, n_classes),
        "table_alphas": [array(alpha, size) for size in sizes],
    }


def infer(problem: dict[str, object]) -> StarInference:
    return infer_star(
        problem["z"],
        problem["tables"],
        problem["n"],
        class_noise=noise(problem["class_scales"]),
        table_noises=[noise(scales) for scales in problem["table_scales"]],
        class_alpha=problem["class_alpha"],
        table_alphas=problem["table_alphas"],
    )


def noise(scales: Sequence[float]) -> Marginal:
    """Independent Laplace noises of these scales, added up."""
    return sum_of([LaplaceMarginal(scale) for scale in scales])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems())
def test_means_equal_enumeration_of_all_count_tables(problem):
    class_mean, table_means = enumerate_posterior(**problem)
    inference = infer(problem)
    np.testing.assert_allclose(inference.class_mean, class_mean, atol=1e-10, rtol=0)
    assert len(inference.table_means) == len(table_means)
    for mean, expected in zip(inference.table_means, table_means, strict=True):
        np.testing.assert_allclose(mean, expected, atol=1e-10, rtol=0)


SEVERAL = [[2.0, 2.0], [0.7, 3.0], [1.5, 1.5, 1.5], [0.4]]


@pytest.mark.slow
@pytest.mark.parametrize("scales", SEVERAL)
@pytest.mark.parametrize("seed", range(3))
def test_noise_of_several_batches(scales, seed):
    rng = np.random.default_rng(seed)
    problem = {
        "z": rng.integers(-4, 9, 2).astype(float),
        "tables": [rng.integers(-4, 9, (2, 3)).astype(float)],
        "n": 4,
        "class_scales": scales,
        "table_scales": [scales[::-1]],
        "class_alpha": np.array([1.0, 0.5]),
        "table_alphas": [np.array([1.0, 0.2, 2.0])],
    }
    class_mean, (table_mean,) = enumerate_posterior(**problem)
    inference = infer(problem)
    np.testing.assert_allclose(inference.class_mean, class_mean, atol=1e-10)
    np.testing.assert_allclose(inference.table_means[0], table_mean, atol=1e-10)


def test_enumeration_notices_a_wrong_scale():
    problem = {
        "z": np.array([2.0, 5.0]),
        "tables": [np.array([[3.0, -1.0], [2.0, 4.0]])],
        "n": 6,
        "class_scales": [2.0],
        "table_scales": [[2.0]],
        "class_alpha": np.ones(2),
        "table_alphas": [np.ones(2)],
    }
    _, (expected,) = enumerate_posterior(**problem)
    for wrong in (1.98, 2.02):
        mean = infer(problem | {"table_scales": [[wrong]]}).table_means[0]
        assert np.abs(mean - expected).max() > 1e-5


@pytest.mark.parametrize("known", ["classes", "a table"])
def test_counts_without_noise_fix_the_class_counts(known):
    classes = np.array([2.0, 3.0])
    exact_table = np.array([[2.0, 0.0], [1.0, 2.0]])
    noisy_table = np.array([[-2.0, 5.0, 1.0], [2.0, 0.0, 2.0]])
    alpha = [np.array([1.0, 2.0]), np.array([0.3, 1.0, 1.0])]
    class_scales = [0.0] if known == "classes" else [4.0]
    table_scales = [[0.0] if known == "a table" else [3.0], [3.0]]
    inference = infer_star(
        classes + (0 if known == "classes" else np.array([40, -7])),
        [exact_table, noisy_table],
        5,
        class_noise=noise(class_scales),
        table_noises=[noise(scales) for scales in table_scales],
        class_alpha=np.ones(2),
        table_alphas=alpha,
    )
    np.testing.assert_allclose(inference.class_mean, (classes + 1) / 7)
    almost = [[1e-3], [3.0]] if known == "a table" else [[3.0], [3.0]]
    nearly = enumerate_posterior(
        classes, [exact_table, noisy_table], 5, [1e-3], almost, np.ones(2), alpha
    )
    for mean, expected in zip(inference.table_means, nearly[1], strict=True):
        np.testing.assert_allclose(mean, expected, atol=1e-10)


def release(
    rng: np.random.Generator, n: int, n_classes: int, sizes: Sequence[int], scale: float
) -> tuple[list[FloatArray], StarInference]:
    """Simulate a star, release it with noise of this scale and infer it."""
    q = np.exp(-1 / scale)

    def noisy(counts: FloatArray) -> FloatArray:
        return counts + rng.geometric(1 - q, counts.shape) - rng.geometric(1 - q, counts.shape)

    classes = rng.multinomial(n, rng.dirichlet(np.ones(n_classes)))
    truth = [np.stack([rng.dirichlet(np.ones(k)) for _ in classes]) for k in sizes]
    counts = [
        np.stack([rng.multinomial(m, p) for m, p in zip(classes, theta, strict=True)])
        for theta in truth
    ]
    inference = infer_star(
        noisy(classes),
        [noisy(table) for table in counts],
        n,
        class_noise=LaplaceMarginal(scale),
        table_noises=[LaplaceMarginal(scale)] * len(sizes),
        class_alpha=np.ones(n_classes),
        table_alphas=[np.ones(k) for k in sizes],
    )
    return truth, inference


@pytest.mark.parametrize("scale", [3.0, 400.0])
def test_draws_have_the_posterior_means(scale):
    _, inference = release(np.random.default_rng(3), 2000, 3, [2, 5], scale)
    size = 3000
    classes, tables = inference.sample(np.random.default_rng(4), size)
    pairs = [(classes, inference.class_mean), *zip(tables, inference.table_means, strict=True)]
    for draws, mean in pairs:
        assert draws.shape == (size, *mean.shape)
        np.testing.assert_allclose(draws.sum(axis=-1), 1.0)
        error = draws.std(axis=0) / np.sqrt(size)
        assert np.all(np.abs(draws.mean(axis=0) - mean) < 4.5 * error)
        assert np.any(np.abs(draws.mean(axis=0) - mean * 1.3) > 4.5 * error)


def test_draws_cover_the_truth():
    """Ranks of the truth among posterior draws are uniform if and only if the law is right."""
    rng = np.random.default_rng(11)
    ranks, narrow = [], []
    for _ in range(60):
        truth, inference = release(rng, 300, 2, [2, 3], 12.0)
        _, tables = inference.sample(rng, 60)
        for theta, draws in zip(truth, tables, strict=True):
            centre = draws.mean(axis=0)
            ranks += (draws < theta).mean(axis=0)[:, 0].tolist()
            narrow += (centre + (draws - centre) / 2 < theta).mean(axis=0)[:, 0].tolist()
    # the variance of a uniform rank is 1/12; 240 ranks give it a standard error of 0.005
    assert abs(np.var(ranks) - 1 / 12) < 0.02
    assert np.var(narrow) - 1 / 12 > 0.02


def test_a_pickled_inference_is_the_same():
    _, inference = release(np.random.default_rng(5), 500, 2, [3], 6.0)
    before = inference.table_means[0]
    copy = pickle.loads(pickle.dumps(inference))
    np.testing.assert_array_equal(copy.table_means[0], before)


@pytest.mark.parametrize("epsilon", [0.001, 0.03, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("n", [1, 1000, 10**8])
def test_extreme_scales_and_sizes_give_probabilities(epsilon, n):
    _, inference = release(np.random.default_rng(6), n, 3, [2, 7], 6.0 / epsilon)
    for mean in (inference.class_mean, *inference.table_means):
        assert np.all(mean > 0)
        np.testing.assert_allclose(mean.sum(axis=-1), 1.0)


def test_impossible_counts_still_give_probabilities():
    """Counts that no noise of this scale explains do not break the inference."""
    inference = infer_star(
        [5.0e6, -3.0e6],
        [[[1.0e7, 2.0e7], [-4.0e6, 3.0]]],
        10**5,
        class_noise=LaplaceMarginal(0.5),
        table_noises=[LaplaceMarginal(0.5)],
        class_alpha=np.ones(2),
        table_alphas=[np.ones(2)],
    )
    for mean in (inference.class_mean, *inference.table_means):
        assert np.all(mean > 0)
        np.testing.assert_allclose(mean.sum(axis=-1), 1.0)


def test_strong_priors_stay_in_charge():
    """With many pseudo-counts and wide noise the posterior is the prior."""
    alpha = np.array([2.0e5, 6.0e5])
    inference = infer_star(
        [300.0, 700.0],
        [[[150.0, 150.0], [100.0, 600.0]]],
        1000,
        class_noise=LaplaceMarginal(200.0),
        table_noises=[LaplaceMarginal(200.0)],
        class_alpha=np.ones(2),
        table_alphas=[alpha],
    )
    np.testing.assert_allclose(inference.table_means[0], [[0.25, 0.75]] * 2, atol=1e-3)


def test_dirichlet_draws_survive_small_parameters():
    rng = np.random.default_rng(0)
    draws = dirichlet_draws(np.full((500, 3), 1e-4), rng)
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(draws.mean(axis=0), 1 / 3, atol=0.1)
