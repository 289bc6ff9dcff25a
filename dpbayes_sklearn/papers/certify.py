r"""Exact privacy loss and accuracy of a released posterior.

`certify` gives the exact privacy loss of a mechanism, `expected_distance` how far its posterior is
from the exact one, and `optimal_distance` how close any private mechanism could come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import coo_array, eye_array, kron

from dpbayes_sklearn.mechanisms import Local, Mechanism, resolve_mechanism
from dpbayes_sklearn.papers.candidates import Candidates, FiniteLaw, ReleaseLaw
from dpbayes_sklearn.papers.choices import outcome_law
from dpbayes_sklearn.privacy.budget import Budget, exact

MAX_LINEAR_PROGRAM = 150
"""Largest number of candidates; the linear program then takes a few minutes."""


@dataclass(frozen=True)
class Certificate:
    """The exact privacy of a mechanism, over all neighbouring data sets.

    Attributes
    ----------
    epsilon : float
        Smallest epsilon that holds with ``delta``.
    delta : float
    pure_epsilon : float
        Smallest epsilon that holds with no delta at all.
    worst_pair : tuple of two tuples of int
        Counts of the neighbouring data sets with the largest loss at ``delta``.
    """

    epsilon: float
    delta: float
    pure_epsilon: float
    worst_pair: tuple[tuple[int, ...], tuple[int, ...]]


def certify(
    mechanism: str | Mechanism,
    n: int,
    prior: Sequence[float],
    epsilon: float = 1.0,
    delta: float = 0.0,
    *,
    calibrate: bool = True,
) -> Certificate:
    """Compute the exact worst-case privacy loss of a released posterior.

    Parameters
    ----------
    mechanism : str or Mechanism
        A mechanism of :class:`BetaBinomial` and :class:`DirichletMultinomial`.
    n : int
        Number of records.
    prior : sequence of float
        Pseudo-counts: (alpha, beta), or one for each category.
    epsilon, delta : float
        The budget that the mechanism is given.
    calibrate : bool, default=True
        For a mechanism that is given by name, as in the estimators.

    Returns
    -------
    Certificate
        Computed over all outcomes of all pairs of neighbouring data sets; by a closed form for
        noise on three or more counts, which has infinitely many outcomes.

    Examples
    --------
    >>> from dpbayes_sklearn.conjugate import certify
    >>> found = certify("hellinger", 100, (1, 1), epsilon=1, delta=1e-8, calibrate=False)
    >>> round(found.pure_epsilon, 2), found.worst_pair
    (0.53, ((0, 100), (1, 99)))
    """
    law = _law(mechanism, n, prior, epsilon, delta, calibrate)
    pure = law.worst_case()
    worst = law.worst_case(float(delta)) if delta else pure
    return Certificate(worst.epsilon, float(delta), pure.epsilon, worst.pair)


def expected_distance(
    mechanism: str | Mechanism,
    n: int,
    prior: Sequence[float],
    epsilon: float = 1.0,
    delta: float = 0.0,
    *,
    calibrate: bool = True,
    counts: Sequence[int] | None = None,
    distance: str = "hellinger",
) -> float:
    """Compute the exact expected distance between released and exact posterior.

    Parameters
    ----------
    mechanism, n, prior, epsilon, delta, calibrate
        As for :func:`certify`, with finitely many outcomes.
    counts : sequence of int, optional
        The data set; by default the average over all data sets with equal weights.
    distance : {"hellinger", "total_variation", "kl"}, default="hellinger"
        "total_variation" is for two categories; "kl" is the divergence of the exact posterior from
        the released one.

    Examples
    --------
    >>> from dpbayes_sklearn.conjugate import expected_distance, optimal_distance
    >>> f"{expected_distance('geometric', 20, (1, 1)):.4f}", f"{optimal_distance(20, (1, 1)):.4f}"
    ('0.1477', '0.1477')
    """
    law = _law(mechanism, n, prior, epsilon, delta, calibrate)
    if not isinstance(law, FiniteLaw):
        raise ValueError(
            "Noise in three or more counts has infinitely many outcomes: average "
            "posterior_.hellinger over repeated fits instead."
        )
    if counts is not None:
        return float(law.expected_distance(law.candidates.row_of([counts]), distance)[0])
    rows = np.arange(len(law.candidates))
    return float(np.mean([law.expected_distance(rows[i : i + 1], distance)[0] for i in rows]))


def optimal_distance(
    n: int,
    prior: Sequence[float],
    epsilon: float = 1.0,
    *,
    weights: npt.ArrayLike | None = None,
    distance: str = "hellinger",
) -> float:
    """Compute the smallest expected distance that epsilon-DP allows, for small n.

    The probabilities P(r | x) of all candidates r for all data sets x are the unknowns of a
    linear program: minimise the average distance subject to P(r | x) <= exp(epsilon) P(r | x')
    for all neighbours.

    Parameters
    ----------
    n, prior, epsilon
        As for :func:`certify`.
    weights : array-like, optional
        Weight of every data set, in the lexicographic order of their counts; equal if left out.
    distance : {"hellinger", "total_variation", "kl"}, default="hellinger"
        As for :func:`expected_distance`.

    Returns
    -------
    float
        Smallest average error of any mechanism that releases one of the candidates.

    Examples
    --------
    >>> from dpbayes_sklearn.conjugate import optimal_distance
    >>> f"{optimal_distance(10, (1, 1)):.4f}"
    '0.1746'
    """
    prior = tuple(float(a) for a in prior)
    m = math.comb(n + len(prior) - 1, len(prior) - 1)
    if m > MAX_LINEAR_PROGRAM:
        raise ValueError(
            f"The linear program takes at most {MAX_LINEAR_PROGRAM} candidates. Got {m:,} instead."
        )
    candidates = Candidates(n, prior)
    share = np.full(m, 1 / m) if weights is None else np.asarray(weights) / np.sum(weights)
    cost = share[:, None] * candidates.distances(np.arange(m), distance)
    a, b = (np.concatenate(side) for side in zip(*candidates.neighbours(), strict=True))
    above, below = np.concatenate([a, b]), np.concatenate([b, a])
    pairs = np.arange(len(above))
    ones = np.ones(len(above))
    ratios = coo_array((ones, (pairs, above)), (len(pairs), m)) - math.exp(epsilon) * coo_array(
        (ones, (pairs, below)), (len(pairs), m)
    )
    solution = linprog(
        cost.ravel(),
        A_ub=kron(ratios, eye_array(m), "csr"),
        b_ub=np.zeros(len(pairs) * m),
        A_eq=kron(eye_array(m), np.ones((1, m)), "csr"),
        b_eq=np.ones(m),
        method="highs",
    )
    return float(solution.fun)


def configured(mechanism: str | Mechanism, calibrate: bool, delta: float) -> Mechanism:
    """Return a mechanism given by name with the options that it has, or the one given."""
    if isinstance(mechanism, Mechanism):
        return mechanism
    blank = resolve_mechanism(mechanism)
    if isinstance(blank, Local) and not calibrate:
        raise ValueError(
            "The 'local' mechanism with calibrate=False is not private in general: its "
            "scale depends on the data, and its exact loss can exceed epsilon. "
            "Set calibrate=True, or use mechanism='hellinger'."
        )
    options: dict[str, Any] = {"calibrate": calibrate, **({"smoothing": delta} if delta else {})}
    known = blank.get_params(deep=False)
    blank.set_params(**{name: value for name, value in options.items() if name in known})
    return blank


def _law(
    mechanism: str | Mechanism,
    n: int,
    prior: Sequence[float],
    epsilon: float,
    delta: float,
    calibrate: bool,
) -> ReleaseLaw:
    chosen = configured(mechanism, calibrate, float(delta))
    spent = delta if chosen.spends_delta else 0
    budget = Budget(exact(epsilon), exact(spent, "delta"))
    return outcome_law(chosen, n, tuple(float(a) for a in prior), budget)
