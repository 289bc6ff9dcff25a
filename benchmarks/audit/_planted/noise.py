"""Bugs of the noise itself: too little of it, of the wrong law, from the wrong place."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.categories import counts
from dpbayes_sklearn.counts import splits, tables
from dpbayes_sklearn.noise import ClassRows, discrete_laplace, integers, zero_sum
from dpbayes_sklearn.noise import class_rows as rows
from dpbayes_sklearn.noise import noise as drawing
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.regression import ball_draws, step_noise

Replacements = Iterator[tuple[Any, str, Any]]


@fault(
    "noise", "enumeration of counts", "The scale of the counts' noise is half of what it should be"
)
def half_the_scale() -> Replacements:
    real = tables.laplace_scale
    for module in (tables, counts):
        yield module, "laplace_scale", lambda *args: real(*args) / 2


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
        tables = np.zeros(size, np.int64)
        for _ in range(2):
            coins = integers.bernoulli_exp(np.ones(size, np.uint16), 1, source, first=2)
            tables += coins & (tables == _)
        return tables

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

    yield integers, "words_below", once


@fault("noise", "source of bytes", "Noise comes from numpy's global generator")
def numpy_noise() -> Replacements:
    def careless(arrays: Any, law: Any, source: Any) -> Any:
        q = [1 - np.exp(-((law.variance(i) / 2) ** -0.5)) for i in range(len(arrays))]
        pair = (np.random.geometric, np.random.geometric)
        both = zip(arrays, q, strict=True)
        return tuple(a + pair[0](p, a.shape) - pair[1](p, a.shape) for a, p in both)

    yield drawing, "add", careless


@fault("noise", "source of bytes", "Points are chosen with numpy's global generator")
def numpy_choice() -> Replacements:
    def careless(weights: Any, source: Any) -> Any:
        shares = np.cumsum(weights / weights.sum(axis=-1, keepdims=True, dtype=float), axis=-1)
        at = np.random.random(shares.shape[:-1])  # noqa: NPY002
        return np.minimum((shares <= at[..., None]).sum(axis=-1), weights.shape[-1] - 1)

    yield drawing, "finite_draw", careless


@fault("noise", "values", "Noise is a float, whose last bits tell what it was added to")
def floating_point_noise() -> Replacements:
    def floats(arrays: Any, law: Any, source: Any) -> Any:
        seed = int.from_bytes(source(8), "little")
        rng = np.random.default_rng(seed)
        scales = [(law.variance(i) / 2) ** 0.5 for i in range(len(arrays))]
        pairs = zip(arrays, scales, strict=True)
        return tuple(a + rng.laplace(scale=b, size=a.shape) for a, b in pairs)

    yield drawing, "add", floats


@fault(
    "noise",
    "source of bytes",
    "Every release uses the same seed, so that its noise can be taken off again",
)
def a_fixed_seed() -> Replacements:
    yield drawing, "random_source", lambda state=None, stream=0: random_source(state or 12)


@fault("noise", "source of bytes", "Batches with one seed repeat each other's noise")
def one_stream_for_all_batches() -> Replacements:
    yield drawing, "random_source", lambda state=None, stream=0: random_source(state)


@fault(
    "noise",
    "enumeration of counts",
    "All cells share one draw, so that differences between them are exact",
    "fourier, Network",
)
def one_noise_for_all_cells() -> Replacements:
    real = drawing.add

    def shared(arrays: Any, law: Any, source: Any) -> Any:
        one = real(arrays, law, source)[0].flat[0] - arrays[0].flat[0]
        return tuple(array + one for array in arrays)

    yield drawing, "add", shared


@fault(
    "noise",
    "enumeration of counts",
    "A cell that counts nobody gets no noise, which tells that it does",
)
def no_noise_for_the_absent() -> Replacements:
    real = drawing.add

    def skipping(arrays: Any, *rest: Any) -> Any:
        noisy = real(arrays, *rest)
        return tuple(np.where(a == 0, 0, z) for a, z in zip(arrays, noisy, strict=True))

    yield drawing, "add", skipping


@fault(
    "noise",
    "enumeration of counts",
    "Noise that should cancel over all counts leaves the last one exact",
    "geometric",
)
def noise_that_does_not_cancel_everywhere() -> Replacements:
    real = zero_sum.zero_sum_laplace

    def all_but_one(scale: Any, cells: int, size: int, source: Any) -> Any:
        noise = real(scale, cells, size, source)
        return np.hstack([noise[:, :-1], np.zeros_like(noise[:, -1:])])

    yield zero_sum, "zero_sum_laplace", all_but_one


@fault(
    "noise",
    "enumeration of moments",
    "The box of the moments' noise is half as wide as what one record moves",
    "fourier, epsilon=1500",
)
def a_box_too_small() -> Replacements:
    real = step_noise.add_noise

    def narrow(sums: Any, block: Any, grid: int, epsilon: Fraction, source: Any) -> Any:
        return real(sums, block, grid, epsilon * 2 if len(block) > 1 else epsilon, source)

    yield step_noise, "add_noise", narrow


@fault(
    "noise",
    "enumeration of counts",
    "Weights of the draws are rounded to eight bits",
    "MAP(n_points",
)
def coarse_weights() -> Replacements:
    real = splits.integer_weights

    def coarse(log_weights: Any) -> Any:
        weights = real(log_weights).astype(float)
        top = weights.max(axis=-1, keepdims=True)
        return np.rint(255 * weights / top).astype(np.uint64)

    yield splits, "integer_weights", coarse


@fault(
    "noise",
    "enumeration of moments",
    "Draws of a regression follow a likelihood with twice its weight",
    "sampler, prior=100",
)
def draws_too_sharp() -> Replacements:
    real = ball_draws.score_range
    yield ball_draws, "score_range", lambda limit, reach: real(limit, reach) / 2


@fault("noise", "sampler laws", "Noise that cancels is accepted whatever its last part is")
def a_sum_that_is_cut_off() -> Replacements:
    yield zero_sum, "_coins", lambda size, scale, source: np.ones(size.size, bool)


@fault(
    "noise",
    "enumeration of counts",
    "Tables that should share one noise get one each, of the same scale",
)
def noise_of_every_table() -> Replacements:
    real = drawing.add

    def apart(tables: Any, law: Any, source: Any) -> Any:
        if not isinstance(law, ClassRows):
            return real(tables, law, source)
        steps = [law.grid * table for table in tables]
        for state in np.ndindex(steps[-1].shape):
            for table, size in zip(steps[:-1], law.values, strict=True):
                [(total, (row,))] = rows.many_rows([size], law.steps, 1, source)
                table[state] += row
            steps[-1][state] += total
        return tuple(table / law.grid for table in steps)

    yield drawing, "add", apart


@fault("noise", "sampler laws", "Rows of noise are accepted however few of them there are")
def rows_as_proposed() -> Replacements:
    yield rows, "_accepts", lambda *args: True


@fault(
    "noise",
    "enumeration of counts",
    "Only the first table of those that get the same noise gets it",
)
def noise_of_a_batch() -> Replacements:
    real = drawing.add

    def first_only(arrays: Any, *rest: Any) -> Any:
        return (real(arrays, *rest)[0], *arrays[1:])

    yield drawing, "add", first_only
