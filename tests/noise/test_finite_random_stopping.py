"""Random stopping: the law of the number of runs, and what the winner gives away."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpbayes_sklearn.noise import finite
from dpbayes_sklearn.noise.finite import PRICE, Stopping, finite_draw, number_of_runs
from dpbayes_sklearn.noise.integers import random_source

DRAWS = 4000
SURE = 1e-4


def generating(x, mean):
    """E x**R for a geometric R."""
    return x / mean / (1 - (1 - 1 / mean) * x)


def winner_law(law, generate):
    """P(winner = y) = f(L) - f(L - q), outcomes in increasing order of score."""
    reached = generate(np.concatenate([[0.0], np.cumsum(law)]))
    return np.diff(reached)


def p_value(observed, law):
    expected = law / law.sum() * observed.sum()
    return stats.chisquare(observed, expected).pvalue


def geometric_bins(mean, size=12):
    law = (1 - 1 / mean) ** np.arange(size) / mean
    return np.append(law, (1 - 1 / mean) ** size)


@pytest.mark.parametrize("mean", [1, 2, 5, 40])
def test_number_of_runs_is_geometric(mean):
    source = random_source(mean)
    runs = np.array([number_of_runs(Stopping("geometric", mean), source) for _ in range(DRAWS)])
    assert runs.min() == 1
    if mean == 1:
        assert runs.max() == 1
        return
    observed = np.bincount(np.minimum(runs - 1, 12), minlength=13)
    kept = geometric_bins(mean) * DRAWS > 5
    assert p_value(observed[kept], geometric_bins(mean)[kept]) > SURE
    for wrong in (0.8 * mean, 1.25 * mean):
        kept = geometric_bins(wrong) * DRAWS > 5
        assert p_value(observed[kept], geometric_bins(wrong)[kept]) < SURE


def test_a_broken_source_ends_in_an_error():
    with pytest.raises(RuntimeError, match="keeps repeating itself"):
        number_of_runs(Stopping("geometric", 10), lambda n: b"\x77" * n)


def winners(weights, runs_of, source):
    """Draw winners: the highest outcome of all runs."""
    drawn = []
    for _ in range(DRAWS):
        rows = np.broadcast_to(weights, (runs_of(), len(weights)))
        drawn.append(int(finite_draw(rows, source).max()))
    return np.bincount(drawn, minlength=len(weights))


def test_the_winner_has_the_law_of_the_proof():
    weights = np.array([50, 30, 15, 5], dtype=np.uint64)
    source = random_source(0)
    observed = winners(weights, lambda: number_of_runs(Stopping("geometric", 6), source), source)
    law = weights / weights.sum()
    assert p_value(observed, winner_law(law, lambda x: generating(x, 6))) > SURE
    for wrong in (5, 7):
        assert p_value(observed, winner_law(law, lambda x, m=wrong: generating(x, m))) < SURE


def neighbouring_laws(epsilon, count):
    """Laws over 2 to 6 outcomes that differ by exactly exp(epsilon) at most."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        size = rng.integers(2, 7)
        law = rng.dirichlet(np.full(size, 0.3)) + 1e-9
        law /= law.sum()
        # tilting some outcomes by e**t and normalising: the ratios then span exactly t
        tilted = law * np.exp(np.where(rng.random(size) < 0.5, epsilon, 0.0))
        tilted /= tilted.sum()
        yield law, tilted


def worst_loss(generate, epsilon, count=3000):
    worst = 0.0
    for law, other in neighbouring_laws(epsilon, count):
        assert np.abs(np.log(law / other)).max() <= epsilon + 1e-12
        a, b = winner_law(law, generate), winner_law(other, generate)
        supported = (a > 1e-12) & (b > 1e-12)  # below, the differences of f are rounding errors
        worst = max(worst, np.abs(np.log(a[supported] / b[supported])).max(initial=0.0))
    return worst


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("mean", [2, 10, 1000])
def test_the_winner_costs_at_most_three_runs(epsilon, mean):
    assert worst_loss(lambda x: generating(x, mean), epsilon) <= 3 * epsilon * (1 + 1e-6)


def test_the_price_is_reached():
    """Three outcomes: the middle one gets rarer, the rare best one more frequent."""
    epsilon, best, middle = 0.5, 1e-4, 1e-6
    law = np.array([1 - middle - best, middle, best])
    other = np.array([0.0, middle * math.exp(-epsilon), best * math.exp(epsilon)])
    other[0] = 1 - other.sum()
    a, b = (winner_law(one, lambda x: generating(x, 10**6)) for one in (law, other))
    assert 0.97 * 3 * epsilon < math.log(a[1] / b[1]) <= 3 * epsilon


@pytest.mark.parametrize("fixed", [20, 100])
def test_a_fixed_number_of_runs_would_cost_more(fixed):
    """A planted fault: a secret number that is not random hides nothing."""
    assert worst_loss(lambda x: x**fixed, 1.0) > 1.5 * 3


def logarithmic(x, inverse):
    """E x^R = log(1 - (1 - gamma) x) / log(gamma)."""
    return np.log1p(-(1 - 1 / inverse) * x) / math.log(1 / inverse)


@pytest.mark.parametrize("inverse", [2, 9, 60])
def test_the_logarithmic_law_is_drawn(inverse):
    source = random_source(inverse)
    law = Stopping("logarithmic", inverse)
    runs = np.array([number_of_runs(law, source) for _ in range(DRAWS // 2)])
    r = np.arange(1, 13)

    def bins(m):
        inside = (1 - 1 / m) ** r / (r * math.log(m))
        return np.append(inside, 1 - inside.sum())

    observed = np.bincount(np.minimum(runs - 1, 12), minlength=13)
    kept = bins(inverse) * len(runs) > 5
    assert p_value(observed[kept], bins(inverse)[kept]) > SURE
    kept = bins(1.6 * inverse) * len(runs) > 5
    assert p_value(observed[kept], bins(1.6 * inverse)[kept]) < SURE
    assert runs.mean() == pytest.approx(law.mean, rel=0.2)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("inverse", [2, 10, 1000])
def test_logarithmic_stopping_costs_at_most_two_runs(epsilon, inverse):
    worst = worst_loss(lambda x: logarithmic(x, inverse), epsilon)
    assert worst <= 2 * epsilon * (1 + 1e-6)
    assert PRICE == {"geometric": 3, "logarithmic": 2}


@pytest.mark.parametrize("mean", [1, 2, 30, 500])
def test_the_mean_is_what_was_asked_for(mean):
    assert Stopping.of_mean("geometric", mean).mean == mean
    law = Stopping.of_mean("logarithmic", mean)
    assert mean <= law.mean
    if mean > 2:
        assert Stopping("logarithmic", law.inverse - 1).mean < mean


class TooShort(Exception):
    """The path ends at a draw."""


def first_proposal(inverse, longest, monkeypatch):
    """Return the exact probability of every r that the first proposal makes and accepts.

    Each draw takes all of its values in turn: the path so far is followed, then one longer path
    is left for each value of the next draw.
    """
    law, paths = defaultdict(Fraction), [((), Fraction(1))]

    def drawn(values):
        """Return the next value on the path, or leave the longer paths."""
        if len(taken) == len(path):
            paths.extend(((*path, value), weight * chance) for value, chance in values)
            raise TooShort
        taken.append(path[len(taken)])
        return taken[-1]

    def below(bound, _):
        return drawn([(value, Fraction(1, bound)) for value in range(bound)])

    def geometric(mean, _):
        p = 1 - Fraction(1, mean)
        law = [(g, p ** (g - 1) / mean) for g in range(1, longest + 2)]
        return drawn([*law, (longest + 2, p ** (longest + 1))])  # which stands for all above

    monkeypatch.setattr(finite, "_one_below", below)
    monkeypatch.setattr(finite, "_geometric", geometric)
    monkeypatch.setattr(finite, "_PROPOSALS", 2)  # counted from 1: a single one
    while paths:
        (path, weight), taken = paths.pop(), []
        try:
            law[number_of_runs(Stopping("logarithmic", inverse), None)] += weight
        except (TooShort, RuntimeError):
            continue
    return law


@pytest.mark.parametrize("inverse", [2, 3, 4, 5, 8])
def test_the_logarithmic_law_is_exact(inverse, monkeypatch):
    longest = 20
    law = first_proposal(inverse, longest, monkeypatch)
    p, octaves = 1 - Fraction(1, inverse), (inverse - 1).bit_length() + 1
    assert [law[r] for r in range(1, longest)] == [p**r / (r * octaves) for r in range(1, longest)]


@pytest.mark.parametrize("mean", [60, 300, 3000])
def test_a_large_mean_needs_no_more_proposals(mean):
    """Each is accepted with a third or more, whatever the mean."""
    law, source = Stopping.of_mean("logarithmic", mean), random_source(0)
    runs = np.array([number_of_runs(law, source) for _ in range(1000)])
    at_most = [1, 3, 10, 30, 100, 1000]
    ratio = 1 - 1 / law.inverse
    expected = [
        sum(ratio**r / r for r in range(1, top + 1)) / math.log(law.inverse) for top in at_most
    ]
    for top, chance in zip(at_most, expected, strict=True):
        assert stats.binomtest(int((runs <= top).sum()), 1000, min(chance, 1.0)).pvalue > SURE


def test_a_broken_source_ends_logarithmic_stopping_in_an_error():
    with pytest.raises(RuntimeError, match="keeps repeating itself"):
        number_of_runs(Stopping("logarithmic", 10), lambda n: b"\x77" * n)


@pytest.mark.parametrize("candidates", [2, 6, 20, 100])
def test_how_likely_a_candidate_is_not_tried(candidates):
    """As the search's docstring says: E (1 - 1/K)^R for ten runs of every candidate on average."""
    missed = 1 - 1 / candidates
    geometric = generating(missed, 10 * candidates)
    assert geometric == pytest.approx(1 / 11, rel=0.5)
    gamma = 1 / Stopping.of_mean("logarithmic", 10 * candidates).inverse
    logarithmic = math.log(1 - (1 - gamma) * missed) / math.log(gamma)
    assert 0.15 < logarithmic < 0.51
    assert logarithmic > 3 * geometric
