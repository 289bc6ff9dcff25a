"""Bugs of the noise itself: too little of it, of the wrong law, from the wrong place."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn import _estimator
from dpbayes_sklearn.mechanisms import (
    _coefficient_draws,
    _moment_release,
    _noisy_arrays,
    _row_noise,
    _split_release,
    fourier,
    geometric,
    laplace,
)
from dpbayes_sklearn.noise import bernoulli, discrete_laplace, zero_sum
from dpbayes_sklearn.noise import class_rows as rows
from dpbayes_sklearn.noise.source import random_source

Replacements = Iterator[tuple[Any, str, Any]]


@fault("noise", "enumeration", "The scale of the counts' noise is half of what it should be")
def half_the_scale() -> Replacements:
    real = laplace.noise_scale
    yield laplace, "noise_scale", lambda *args: real(*args) / 2


@fault("noise", "sampler laws", "The sampler draws with half the scale it was given")
def half_the_scale_inside_the_sampler() -> Replacements:
    real = discrete_laplace._proposals
    yield discrete_laplace, "_proposals", lambda scale, *rest: real(scale / 2, *rest)


@fault(
    "noise",
    "sampler laws",
    "A loop that ends by chance is ended after two rounds, which cuts the tails",
)
def capped_loop() -> Replacements:
    def capped(size: int, source: Any) -> Any:
        counts = np.zeros(size, np.int64)
        for _ in range(2):
            coins = bernoulli.bernoulli_exp(np.ones(size, np.uint16), 1, source, first=2)
            counts += coins & (counts == _)
        return counts

    yield discrete_laplace, "geometric", capped


@fault(
    "noise",
    "sampler laws",
    "Rejected words are taken after all, so that a die favours some of its faces",
)
def rejection_without_a_second_try() -> Replacements:
    def once(limit: Any, size: int, source: Any, word: Any) -> Any:
        drawn = np.frombuffer(source(size * np.dtype(word).itemsize), dtype=word)
        return drawn % np.asarray(limit, dtype=word)

    yield bernoulli, "words_below", once


@fault("noise", "source of bytes", "Noise comes from numpy's global generator")
def numpy_noise() -> Replacements:
    def careless(arrays: Any, scale: Fraction, source: Any) -> Any:
        q = 1 - np.exp(-1 / float(scale))
        pair = (np.random.geometric, np.random.geometric)
        return tuple(a + pair[0](q, a.shape) - pair[1](q, a.shape) for a in arrays)

    yield laplace, "with_noise", careless


@fault("noise", "source of bytes", "Points are chosen with numpy's global generator")
def numpy_choice() -> Replacements:
    def careless(weights: Any, source: Any) -> Any:
        shares = np.cumsum(weights / weights.sum(axis=-1, keepdims=True, dtype=float), axis=-1)
        at = np.random.random(shares.shape[:-1])  # noqa: NPY002
        return np.minimum((shares <= at[..., None]).sum(axis=-1), weights.shape[-1] - 1)

    yield _split_release, "finite_draw", careless


@fault("noise", "values", "Noise is a float, whose last bits tell what it was added to")
def floating_point_noise() -> Replacements:
    def floats(arrays: Any, scale: Fraction, source: Any) -> Any:
        seed = int.from_bytes(source(8), "little")
        rng = np.random.default_rng(seed)
        return tuple(a + rng.laplace(scale=float(scale), size=a.shape) for a in arrays)

    yield laplace, "with_noise", floats


@fault(
    "noise",
    "source of bytes",
    "Every release uses the same seed, so that its noise can be taken off again",
)
def a_fixed_seed() -> Replacements:
    yield _estimator, "random_source", lambda state=None, stream=0: random_source(state or 12)


@fault("noise", "source of bytes", "Batches with one seed repeat each other's noise")
def one_stream_for_all_batches() -> Replacements:
    yield _estimator, "random_source", lambda state=None, stream=0: random_source(state)


@fault(
    "noise", "enumeration", "All cells share one draw, so that differences between them are exact"
)
def one_noise_for_all_cells() -> Replacements:
    def shared(arrays: Any, scale: Fraction, source: Any) -> Any:
        noise = discrete_laplace.discrete_laplace(scale, 1, source)[0]
        return tuple(array + noise for array in arrays)

    yield fourier, "with_noise", shared


@fault("noise", "enumeration", "A cell that counts nobody gets no noise, which tells that it does")
def no_noise_for_the_absent() -> Replacements:
    real = laplace.with_noise

    def skipping(arrays: Any, *rest: Any) -> Any:
        noisy = real(arrays, *rest)
        return tuple(np.where(a == 0, 0, z) for a, z in zip(arrays, noisy, strict=True))

    yield laplace, "with_noise", skipping


@fault("noise", "enumeration", "Noise that should cancel over all counts leaves the last one exact")
def noise_that_does_not_cancel_everywhere() -> Replacements:
    real = geometric.zero_sum_laplace

    def all_but_one(scale: Any, cells: int, size: int, source: Any) -> Any:
        noise = real(scale, cells, size, source)
        return np.hstack([noise[:, :-1], np.zeros_like(noise[:, -1:])])

    yield geometric, "zero_sum_laplace", all_but_one


@fault(
    "noise", "enumeration", "The box of the moments' noise is half as wide as what one record moves"
)
def a_box_too_small() -> Replacements:
    real = _moment_release.add_noise

    def narrow(sums: Any, block: Any, grid: int, epsilon: Fraction, source: Any) -> Any:
        return real(sums, block, grid, epsilon * 2 if len(block) > 1 else epsilon, source)

    yield _moment_release, "add_noise", narrow


@fault("noise", "enumeration", "Weights of the draws are rounded to eight bits")
def coarse_weights() -> Replacements:
    real = _split_release.integer_weights

    def coarse(log_weights: Any) -> Any:
        weights = real(log_weights).astype(float)
        top = weights.max(axis=-1, keepdims=True)
        return np.rint(255 * weights / top).astype(np.uint64)

    yield _split_release, "integer_weights", coarse


@fault("noise", "enumeration", "Draws of a regression follow a likelihood with twice its weight")
def draws_too_sharp() -> Replacements:
    real = _coefficient_draws.largest_residual
    yield _coefficient_draws, "largest_residual", lambda prior: real(prior) / 2**0.5


@fault("noise", "sampler laws", "Noise that cancels is accepted whatever its last part is")
def a_sum_that_is_cut_off() -> Replacements:
    yield zero_sum, "_coins", lambda size, scale, source: np.ones(size.size, bool)


@fault("noise", "enumeration", "Tables that should share one noise get one each, of the same scale")
def noise_of_every_table() -> Replacements:
    def apart(statistics: Any, law: Any, source: Any) -> Any:
        steps = [law.grid * table for table in statistics.tables]
        for state in np.ndindex(steps[-1].shape):
            for table, size in zip(steps[:-1], law.sizes, strict=True):
                [(total, (row,))] = _row_noise.many_rows([size], law.steps, 1, source)
                table[state] += row
            steps[-1][state] += total
        return tuple(table / law.grid for table in steps)

    yield laplace, "with_row_noise", apart


@fault("noise", "sampler laws", "Rows of noise are accepted however few of them there are")
def rows_as_proposed() -> Replacements:
    yield rows, "_accepts", lambda *args: True


@fault("noise", "enumeration", "Only the first table of those that get the same noise gets it")
def noise_of_a_batch() -> Replacements:
    real = _noisy_arrays.with_noise

    def first_only(arrays: Any, *rest: Any) -> Any:
        return (*real(arrays[:1], *rest), *arrays[1:])

    yield laplace, "with_noise", first_only
