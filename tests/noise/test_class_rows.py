"""Noise of rows that share their sum: the sampler's steps in fractions, then its draws."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import accumulate, product
from math import comb, prod

import numpy as np
import pytest
from scipy.stats import chisquare

from dpbayes_sklearn.noise import class_rows as rows
from dpbayes_sklearn.noise import integers as integers
from dpbayes_sklearn.noise.class_rows import many_rows, row_choices
from dpbayes_sklearn.noise.integers import random_source

SMALLEST_P = 1e-4


def discrete_rows(sizes, scale, source):
    """Draw rows once."""
    return next(many_rows(sizes, scale, 1, source))


def fits(row, positive, negative):
    up, down = sum(z for z in row if z > 0), -sum(z for z in row if z < 0)
    return up <= positive and down <= negative


def free_rows(n, positive, negative):
    return [
        row
        for row in product(range(-negative, positive + 1), repeat=n)
        if fits(row, positive, negative)
    ]


# ---------------------------------------------------------------------- in fractions


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_rows_are_counted_as_one_counts_them(n):
    for positive, negative in product(range(5), repeat=2):
        seen = Counter(sum(z > 0 for z in row) for row in free_rows(n, positive, negative))
        assert row_choices(n, positive, negative) == [seen[i] for i in range(n + 1)]


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_the_last_entry_needs_no_bound_of_its_own(n):
    """All rows of n + 1 entries with sum P - M and no more than P above zero."""
    for positive, negative in product(range(4), repeat=2):
        total = positive - negative
        whole = [
            row
            for row in product(range(-negative, positive + 1), repeat=n + 1)
            if sum(row) == total and fits(row, positive, negative)
        ]
        free = free_rows(n, positive, negative)
        assert sorted(row[:-1] for row in whole) == sorted(free)
        assert len(whole) == sum(row_choices(n, positive, negative))


@pytest.mark.parametrize(
    ("n", "positive", "negative"), [(1, 3, 2), (2, 2, 3), (3, 2, 1), (3, 0, 2)]
)
def test_free_entries_are_uniform_exactly(monkeypatch, exact_law, n, positive, negative):
    def drawn(die):
        for module in (integers, rows):
            monkeypatch.setattr(module, "any_below", die)
        return tuple(rows._row(n, positive, negative, None))

    law = exact_law(drawn)
    wanted = free_rows(n, positive, negative)
    assert sorted(law) == sorted(wanted)
    assert set(law.values()) == {Fraction(1, len(wanted))}


@pytest.mark.parametrize("bits", [1, 3, 8, 128])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 40])
def test_bounds_hold_and_comparisons_are_exact(monkeypatch, bits, n):
    monkeypatch.setattr(rows, "_BITS", bits)
    for positive, negative in product([0, 1, 2, 9, 300], repeat=2):
        found = rows._Choices.of(n, positive, negative)
        exact = [*accumulate(row_choices(n, positive, negative))]
        for last, wanted in enumerate(exact):
            low, high = found.between(last, 6)
            assert low <= 6 * wanted <= high
            for drawn in {max(low - 1, 0), low, 6 * wanted - 1, 6 * wanted, high, high + 1}:
                assert found.exceed(drawn, last, 6) == (drawn < 6 * wanted)


def test_the_number_of_positive_entries_is_exact_whatever_the_bounds(monkeypatch):
    """Each pick below the sum finds its choice; picks beyond the sum are drawn again."""
    monkeypatch.setattr(rows, "_BITS", 2)
    n, positive, negative = 5, 4, 3
    choices = row_choices(n, positive, negative)
    found = rows._Choices.of(n, positive, negative)
    bound = found.between(n)[1]
    assert bound > sum(choices)
    picks = iter([bound - 1, *range(sum(choices))])
    monkeypatch.setattr(rows, "any_below", lambda limit, source: next(picks))
    drawn = Counter(found.draw(None) for _ in range(sum(choices)))
    assert [drawn[i] for i in range(n + 1)] == choices


def test_two_thousand_values_are_drawn_without_counting_their_choices(monkeypatch):
    """Whole rows of choices are for draws between the bounds alone."""
    monkeypatch.setattr(rows, "row_choices", None)
    total, (row,) = discrete_rows([2000], Fraction(64 * 2000), random_source(0))
    assert row.sum() == total
    assert len(row) == 2000


class Coin:
    """Takes the side that fails the fewest tosses, and remembers its chance."""

    def __init__(self):
        self.chance = Fraction(1)

    def __call__(self, bound, source):
        self.bound = bound
        return self

    def __lt__(self, wanted):
        assert 0 <= wanted <= self.bound, "a chance above one"
        self.chance *= Fraction(wanted, self.bound)
        return True


@pytest.mark.parametrize("free", [[1, 2], [0], [], [3], [1, 1, 0], [5, 2], [12, 1, 1], [40]])
def test_proposals_times_coins_are_the_weights_exactly(monkeypatch, free):
    """Weight of R, times 1/(T + 1) for P, times all coins: prod_j W_j up to one factor."""
    monkeypatch.setattr(rows, "_BITS", 4096)  # so that no bound of a number differs from it
    m, h = sum(free), 1 + max(free, default=0)
    factors = set()
    for positive, negative in product([0, 1, 2, 3, 7, 20, 300], repeat=2):
        both = positive + negative
        proposed = both + h - 1
        coin = Coin()
        monkeypatch.setattr(rows, "any_below", coin)
        rows._accepts(free, positive, negative, proposed, None)
        chance = coin.chance * Fraction(both + 1, proposed + m + 1) / (both + 1)
        weight = prod(sum(row_choices(n, positive, negative)) for n in free)
        factors.add(comb(proposed + m + 1, m + 1) * chance / weight)
    assert len(factors) == 1


@pytest.mark.parametrize("free", [[1, 2], [0], [3]])
def test_the_first_coin_and_the_split_exactly(monkeypatch, exact_law, free):
    """Given R: nothing with T < 0, else P is uniform on 0..T if a coin (T+1)/(R+m+1) succeeds."""
    m, h = sum(free), 1 + max(free)
    monkeypatch.setattr(rows, "_accepts", lambda *_: True)
    for proposed in range(7):

        def drawn(die, proposed=proposed):
            monkeypatch.setattr(rows, "any_below", die)
            try:
                return rows._sums(free, iter([proposed]), None)
            except StopIteration:
                return "drawn again"

        law = exact_law(drawn)
        law.pop("drawn again", None)
        both = proposed + 1 - h
        assert sorted(law) == [(p, both - p) for p in range(both + 1)]
        assert set(law.values()) <= {Fraction(1, proposed + m + 1)}


def test_proposals_are_sums_of_as_many_terms_as_the_proof_says(monkeypatch):
    asked = []
    real = rows._geometric_sums
    monkeypatch.setattr(
        rows, "_geometric_sums", lambda terms, *rest: asked.append(terms) or real(terms, *rest)
    )
    discrete_rows([2, 4, 1], Fraction(9), random_source(0))
    assert asked == [1 + 3 + 0 + 2]
    source, scale, terms = random_source(1), Fraction(3), 4
    sums = [next(rows._geometric_sums(terms, scale, 5, source)) for _ in range(400)]
    q = np.exp(-1 / 3)
    spread = np.sqrt(terms * q) / (1 - q)
    assert abs(np.mean(sums) - terms * q / (1 - q)) < 4 * spread / 20


# ---------------------------------------------------------------------- draws


def enumerated(sizes, scale, reach):
    """All rows of equal sum up to a norm, and their law from the definition."""
    by_sum = []
    for size in sizes:
        groups = defaultdict(list)
        for row in product(range(-reach, reach + 1), repeat=size):
            norm = sum(map(abs, row))
            if norm <= reach:
                groups[sum(row)].append((row, norm))
        by_sum.append(groups)
    law = {}
    for total in range(-reach, reach + 1):
        for several in product(*(groups[total] for groups in by_sum)):
            norm = max((norm for _, norm in several), default=abs(total))
            law[total, tuple(row for row, _ in several)] = np.exp(-norm / float(scale))
    return normalised(law)


def sums_and_norms(sizes, scale, reach):
    """The law of total and norm, by counting the rows that have them, cell by cell."""
    within = np.ones((reach + 1, reach + 1))  # [P, M]: choices with no more than that in any row
    for size in sizes:
        exactly = np.zeros((reach + 1, reach + 1))  # [up, down]: rows with these very sums
        exactly[0, 0] = 1
        for _ in range(size):
            more = exactly.copy()
            for z in range(1, reach + 1):
                more[z:] += exactly[:-z]
                more[:, z:] += exactly[:, :-z]
            exactly = more
        rows_within = exactly.copy()
        rows_within[1:, 1:] = [
            [exactly.diagonal(k - j)[: min(j, k) + 1].sum() for k in range(1, reach + 1)]
            for j in range(1, reach + 1)
        ]
        within *= rows_within
    law = {}
    for up, down in product(range(reach + 1), repeat=2):
        if up + down <= reach:
            less = within[up - 1, down - 1] if up and down else 0
            law[up - down, up + down] = (within[up, down] - less) * np.exp(
                -(up + down) / float(scale)
            )
    return normalised(law)


def normalised(law):
    everything = sum(law.values())
    return {point: weight / everything for point, weight in law.items()}


def whole(total, drawn):
    return total, tuple(tuple(row.tolist()) for row in drawn)


def sum_and_norm(total, drawn):
    return total, max((int(np.abs(row).sum()) for row in drawn), default=abs(total))


def pvalue(sizes, law, drawn_scale, of, draws=1500):
    """Of the frequencies of common points, and of all others together."""
    source = random_source(1)
    seen = Counter()
    for total, drawn in many_rows(sizes, drawn_scale, draws, source):
        assert all(row.sum() == total for row in drawn)
        seen[of(total, drawn)] += 1
    common = [point for point, p in law.items() if draws * p >= 5]
    assert len(common) > 5
    observed = [seen[point] for point in common]
    expected = [law[point] for point in common]
    return chisquare(
        [*observed, draws - sum(observed)], draws * np.array([*expected, 1 - sum(expected)])
    ).pvalue


def test_both_ways_to_the_law_agree():
    law = Counter()
    for (total, several), p in enumerated([2, 3], Fraction(1), 7).items():
        law[sum_and_norm(total, [np.array(row) for row in several])] += p
    counted = sums_and_norms([2, 3], Fraction(1), 7)
    assert all(law[point] == pytest.approx(p, rel=1e-9) for point, p in counted.items())


@pytest.mark.parametrize(
    ("sizes", "scale"),
    [([2, 3], 2), ([1], 3), ([], 3), ([4], 3), ([2, 1, 2], 2)],
    ids=str,
)
def test_draws_follow_the_law_and_wrong_scales_are_noticed(sizes, scale):
    law = sums_and_norms(sizes, Fraction(scale), 90)
    assert pvalue(sizes, law, Fraction(scale), sum_and_norm) > SMALLEST_P
    assert pvalue(sizes, law, scale * Fraction(4, 3), sum_and_norm) < SMALLEST_P
    assert pvalue(sizes, law, scale * Fraction(3, 4), sum_and_norm) < SMALLEST_P


@pytest.mark.parametrize(("sizes", "reach"), [([2, 2], 14), ([3], 14), ([2, 1], 16)], ids=str)
def test_single_rows_follow_the_law_and_wrong_scales_are_noticed(sizes, reach):
    law = enumerated(sizes, Fraction(1), reach)
    assert pvalue(sizes, law, Fraction(1), whole, 1000) > SMALLEST_P
    assert pvalue(sizes, law, Fraction(2, 3), whole, 1000) < SMALLEST_P


def even_choices(*args):
    """Every number of positive entries that there may be, once."""
    ends = accumulate(int(c > 0) << rows._BITS for c in row_choices(*args))
    return rows._Choices(*args, 1, [*ends])


def test_wrong_weights_are_noticed(monkeypatch):
    sizes, scale = [2, 3], Fraction(2)
    law, real = sums_and_norms(sizes, scale, 60), rows._geometric_sums
    with monkeypatch.context() as planted:  # (P, M) as proposed
        planted.setattr(rows, "_accepts", lambda *_: True)
        assert pvalue(sizes, law, scale, sum_and_norm, 2500) < SMALLEST_P
    with monkeypatch.context() as planted:  # any number of positive entries alike
        planted.setattr(rows._Choices, "of", even_choices)
        assert pvalue(sizes, law, scale, sum_and_norm, 300) < SMALLEST_P
    with monkeypatch.context() as planted:  # a term too few in a proposal
        planted.setattr(rows, "_geometric_sums", lambda terms, *rest: real(terms - 1, *rest))
        assert pvalue(sizes, law, scale, sum_and_norm, 3000) < SMALLEST_P


def test_a_shift_by_one_record_costs_at_most_its_share_and_attains_it():
    """Moving every row by one cell changes the norm by one."""
    scale = Fraction(3)
    law = enumerated([2, 3], scale, 9)
    worst = 0.0
    for (total, (one, other)), p in law.items():
        for j, k in product(range(2), range(3)):
            a, b = list(one), list(other)
            a[j], b[k] = a[j] + 1, b[k] + 1
            q = law.get((total + 1, (tuple(a), tuple(b))))
            worst = max(worst, abs(np.log(q / p))) if q else worst
    assert worst == pytest.approx(1 / float(scale))


@pytest.mark.parametrize("sizes", [[2] * 20, [30, 2, 1], [9] * 6])
def test_many_entries_at_a_fine_scale(sizes):
    """Radius: the Gamma law of order m + 1 (m free entries and the sum), mean (m + 1) b."""
    scale, source, runs = Fraction(1000), random_source(3), 60
    m = sum(size - 1 for size in sizes)
    norms = []
    for _ in range(runs):
        total, drawn = discrete_rows(sizes, scale, source)
        assert [len(row) for row in drawn] == sizes
        assert {int(row.sum()) for row in drawn} == {total}
        norms.append(max(np.abs(row).sum() for row in drawn))
    assert abs(np.mean(norms) - 1000 * (m + 1)) < 5 * 1000 * np.sqrt((m + 1) / runs)


@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_a_broken_source_raises(byte):
    with pytest.raises(RuntimeError, match="repeating itself"):
        discrete_rows([2, 3], Fraction(50), lambda n: byte * n)


def test_one_at_a_time_is_the_same_law():
    law, source, seen = sums_and_norms([2, 3], Fraction(2), 60), random_source(2), Counter()
    for _ in range(700):
        seen[sum_and_norm(*discrete_rows([2, 3], Fraction(2), source))] += 1
    common = [point for point, p in law.items() if 700 * p >= 5]
    observed, expected = [seen[p] for p in common], [law[p] for p in common]
    found = chisquare(
        [*observed, 700 - sum(observed)], 700 * np.array([*expected, 1 - sum(expected)])
    )
    assert found.pvalue > SMALLEST_P


def test_many_are_independent_and_drawn_in_parts(monkeypatch):
    assert [*many_rows([2], Fraction(9), 0, random_source(0))] == []
    monkeypatch.setattr(rows, "_MOST_AT_A_TIME", 100)
    totals = [total for total, _ in many_rows([2, 2], Fraction(10**9), 60, random_source(0))]
    assert len(set(totals)) == 60
    assert abs(np.corrcoef(totals[:-1], totals[1:])[0, 1]) < 0.5


def test_a_seed_gives_the_same_rows():
    one, two, other = (discrete_rows([3, 2], Fraction(99), random_source(s)) for s in (5, 5, 6))
    assert one[0] == two[0]
    assert all((a == b).all() for a, b in zip(one[1], two[1], strict=True))
    assert any((a != b).any() for a, b in zip(one[1], other[1], strict=True))
