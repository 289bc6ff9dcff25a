"""Queries about the parameters, each answered from a new posterior draw and charged."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from fractions import Fraction
from functools import singledispatch
from threading import Lock
from typing import Any, NamedTuple, NoReturn, Self, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.base.classifier import DiscreteClassifier
from dpbayes_sklearn.base.estimator import AnyEstimator, AnyInput, FitInput
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.posterior import SimplexPrior
from dpbayes_sklearn.conjugate import BetaBinomial, PosteriorRelease
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.plans import plan
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.data.records import quiet_numpy
from dpbayes_sklearn.linear_model import BayesianLinearRegression
from dpbayes_sklearn.means import SumsEstimator
from dpbayes_sklearn.mechanisms import Sampler
from dpbayes_sklearn.papers.theory import distinguishable_distance
from dpbayes_sklearn.privacy import Budget, BudgetAccountant, PrivacyGuarantee, exact
from dpbayes_sklearn.privacy.budget import round_up
from dpbayes_sklearn.privacy.composition import zcdp_epsilon
from dpbayes_sklearn.release import Plan, Release
from dpbayes_sklearn.schema import Categories

__all__ = ["PosteriorQuerySession"]

Answer = TypeVar("Answer")


class PosteriorQuerySession:
    r"""Answer queries about the parameters of a model, each from a new posterior draw.

    Algorithm 1 of Dimitrakakis, Nelson, Mitrokotsa and Rubinstein, *Robust and private Bayesian
    inference* (ALT 2014): the k-th query q is answered with :math:`q(\theta_k)`,
    :math:`\theta_k \sim \xi(\cdot \mid x)`, here from the truncated and tempered posterior that
    makes one draw :math:`\varepsilon`-private.

    Parameters
    ----------
    estimator : estimator
        The model, with ``mechanism="sampler"``; for BetaBinomial and DirichletMultinomial with
        ``mechanism=mechanisms.Sampler()``. Its ``epsilon`` is the cost of one query. It is
        cloned, not fitted.
    X : array or data frame of shape (n_samples, n_features)
        Records, one per person; one column for a proportion or shares.
    y : array-like of shape (n_samples,), optional
        Their classes or targets, if the model has them.
    groups : array-like of shape (n_samples,), optional
        Whose record it is, if a person is the privacy unit of the estimator.
    accountant : BudgetAccountant, optional
        The ledger that every query is charged to; by default the estimator's, or that of an open
        ``with`` block. A session must have one.

    Notes
    -----
    **Privacy.** Every query spends the estimator's ``epsilon``, before its draw is made, and the
    query that would cross the accountant's ceiling is refused with :class:`BudgetError`. k queries
    are together :math:`k\varepsilon`-private; in an accountant with ``composition="zcdp"`` they
    cost about :math:`\sqrt k` times :math:`\varepsilon`. If the estimator has
    ``neighbours="add_remove"``, opening the session releases the number of records, for a small
    part of the cost of one query more.

    A session keeps the **exact** counts of the data while it is open, so only the owner of the data
    may have it: it cannot be pickled or copied, does not show the counts, and deletes them on
    ``close()`` or at the end of a ``with`` block. Only its answers may be given to others.

    Queries may come from several threads.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = (rng.random((1000, 2)) < 0.2 + 0.6 * y[:, None]).astype(int)
    >>> model = BayesianNaiveBayes(
    ...     epsilon=0.5, mechanism="sampler", classes=[0, 1], bounds=(0, 1), n_bins=2,
    ...     accountant=BudgetAccountant(epsilon=2.0), random_state=0,
    ... )
    >>> with PosteriorQuerySession(model, X, y) as session:
    ...     shares = [session.query(lambda tables: tables[-1][1]) for _ in range(4)]
    ...     len(session), session.spent
    (4, 2.0)
    >>> bool(np.mean(shares) > 0.3)
    True
    """

    def __init__(
        self,
        estimator: AnyEstimator,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        accountant: BudgetAccountant | None = None,
    ) -> None:
        self._estimator = _priced_per_query(estimator, accountant)
        self._budget = self._estimator._budget()
        self._lock = Lock()
        self._queries = 0
        given = _exact_statistics(self._estimator, X, y, groups)
        if isinstance(self._estimator, PosteriorRelease):
            prior, counts = _as_network(given)
            given = given._replace(statistics=counts)
            mechanism = self._estimator._mechanism
            self._plan: Plan[Any, Any] = plan(mechanism, prior, given.facts, self._budget)
        else:
            with quiet_numpy():
                self._plan = self._estimator._planned(given, self._budget)
        self._exact: AnyInput | None = given
        self._opening = Fraction(self._estimator._shares(self._budget)[0].epsilon)

    def query(self, question: Callable[[Any], Answer]) -> Answer:
        """Charge the accountant, draw new parameters and answer from them.

        Parameters
        ----------
        question : callable
            Called with the drawn parameters. Of a network: arrays of probabilities, one per feature
            in order, and the class last, ``tables[i][parents' values..., value]``. Of a
            regression: ``(intercept, coef)``. Of a proportion: the probability of a one. Of shares,
            means and rates: one number for each category or column. The charge is for the whole
            draw, so the question may use all of it.

        Returns
        -------
        object
            What the question returns.

        Raises
        ------
        BudgetError
            If a query would exceed the accountant's ceiling; nothing is drawn.
        """
        exact = self._exact
        if exact is None:
            raise ValueError("The session is closed: open another one to ask more.")
        ledger = self._estimator.accountant
        if ledger is not None and ledger._scope is not None:
            raise ValueError(
                "Queries are about the same people, so they cannot be asked inside "
                "accountant.parallel()."
            )
        self._estimator._check_budget(self._budget)  # a quick no, where there is nothing left
        with quiet_numpy():
            release = self._estimator._carried_out(self._plan, exact)
        with self._lock:
            self._queries += 1
            self._guarantee = release.guarantee
        return question(_drawn(self._estimator, exact, release))

    def __len__(self) -> int:
        return self._queries

    def __bool__(self) -> bool:
        return True  # a session that was not asked yet is still a session

    @property
    def spent(self) -> float:
        """Epsilon of all queries so far, and of a secret number of records."""
        return round_up(self._queries * Fraction(self._budget.epsilon) + self._opening)

    def guarantee(self, delta: float = 0.0) -> PrivacyGuarantee:
        """Return the guarantee of all answers so far together.

        Parameters
        ----------
        delta : float in [0, 1), default=0.0
            With a delta, k answers cost about the square root of k instead of k: zCDP, of which
            every answer has the same, adds up and is converted at this delta. It holds if the
            answers did not decide how many questions were asked; the accountant's ceiling holds
            in any case.
        """
        each, k = Fraction(self._budget.epsilon), self._queries
        allowed = exact(delta, "delta")
        if not allowed < 1:
            raise ValueError(f"delta must be a float in the range [0.0, 1.0). Got {delta} instead.")
        rho = self._opening**2 / 2
        if k:
            known = self._guarantee.rho
            rho += k * (each**2 / 2 if known is None else Fraction(exact(known, "rho")))
        converted = zcdp_epsilon(rho, allowed) if k else math.inf
        together = Budget(k * each + self._opening, unit=self._budget.unit)
        if converted < together.epsilon:
            together = Budget(converted, allowed, self._budget.unit, rho)
        conditions = self._guarantee.conditions if self._queries else ()
        return PrivacyGuarantee.of(together, Sampler.name(), conditions)

    def distinguishable(self, delta: float = 0.05) -> float:
        r"""Return in how many records data sets may differ whose draws have like frequencies.

        Data sets that differ in fewer records than :math:`\rho = \frac{3}{4Ln}\ln\frac1\delta` have
        posteriors within the error that frequencies of the draws so far have with probability
        1 - delta (Theorem 3 of the paper); a draw that costs :math:`\varepsilon` has
        :math:`2L = \varepsilon`. Other tests of the draws may tell them apart: what limits every
        test is the guarantee.
        """
        if not 0 < delta < 1:
            raise ValueError(f"delta must be a float in the range (0.0, 1.0). Got {delta} instead.")
        return distinguishable_distance(float(self._budget.epsilon) / 2, self._queries, delta)

    def close(self) -> None:
        """Drop the exact counts; no query is answered any more."""
        self._exact = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._exact is None else "open"
        name = type(self._estimator).__name__
        return (
            f"<PosteriorQuerySession of {name}, {state}: {len(self)} queries, epsilon={self.spent}>"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A PosteriorQuerySession holds exact counts, so it cannot be pickled or copied."
        )


class Coefficients(NamedTuple):
    """Drawn coefficients of a regression, in the units of the data."""

    intercept: float
    coef: FloatArray


@singledispatch
def _drawn(estimator: AnyEstimator, given: AnyInput, release: Release[Any]) -> Any:
    """Return the parameters of one draw as questions get them."""
    raise NotImplementedError


@_drawn.register
def _(
    estimator: DiscreteClassifier, given: AnyInput, release: Release[Any]
) -> tuple[FloatArray, ...]:
    return tuple(table[0] for table in release.posterior.draws)


@_drawn.register
def _(estimator: PosteriorRelease, given: AnyInput, release: Release[Any]) -> float | FloatArray:
    shares = release.posterior.draws[0][0]
    return float(shares[0]) if isinstance(estimator, BetaBinomial) else shares


@_drawn.register
def _(estimator: BayesianLinearRegression, given: AnyInput, release: Release[Any]) -> Coefficients:
    fitted = copy(estimator)._attach(given.public, release)
    return Coefficients(fitted.intercept_, fitted.coef_)


@_drawn.register
def _(estimator: SumsEstimator, given: AnyInput, release: Release[Any]) -> FloatArray:
    return np.asarray(release.posterior.draws[0])


def _as_network(
    given: FitInput[Categories, SimplexPrior, SimplexCounts],
) -> tuple[DirichletPrior, CountTables]:
    """Return shares as the network of a single node, which the sampler of networks draws from."""
    belief = given.prior.belief.concentration
    node = Network((len(belief),), ((),))
    counts = CountTables(node, (given.statistics.counts,), given.statistics.n)
    return DirichletPrior(node, (belief,)), counts


def _priced_per_query(estimator: AnyEstimator, accountant: BudgetAccountant | None) -> AnyEstimator:
    """Return a copy of the estimator to release from, refusing what cannot answer queries."""
    if _drawn.dispatch(type(estimator)) is _drawn.dispatch(object):
        raise TypeError(
            "The 'estimator' parameter of PosteriorQuerySession must be a model with "
            f"mechanism='sampler'. Got {type(estimator).__name__} instead."
        )
    copied: Any = clone(estimator)
    copied.accountant = accountant if accountant is not None else copied._ledger()
    # queries are about the parameters that are drawn, each of them purely private
    plain = {"temperature": 1.0, "delta": 0.0, "inference": "plug_in"}
    copied.set_params(**{k: v for k, v in plain.items() if k in copied.get_params(deep=False)})
    copied._validate_params()
    copied._refuse_weights("PosteriorQuerySession")
    mechanism = copied._mechanism
    if not isinstance(mechanism, Sampler) or mechanism.n_samples != 1:
        raise ValueError(
            "A PosteriorQuerySession makes one draw per query: its estimator needs "
            "mechanism='sampler' with n_samples=1 (mechanisms.Sampler() for a proportion or "
            "shares)."
        )
    if copied._budget().infinite:
        raise ValueError("A PosteriorQuerySession needs a finite epsilon, the cost of one query.")
    if copied.accountant is None:
        raise ValueError(
            "A PosteriorQuerySession needs an accountant to limit the number of queries: set "
            "accountant=BudgetAccountant(epsilon=...)."
        )
    if copied.random_state is not None:  # one stream for all queries, or each would be the same
        copied.random_state = _stream(copied.random_state)
    priced: AnyEstimator = copied
    return priced


def _stream(random_state: Any) -> np.random.RandomState:
    stream: np.random.RandomState = check_random_state(random_state)
    return stream


def _exact_statistics(estimator: AnyEstimator, X: Any, y: Any, groups: Any) -> AnyInput:
    """Return exact statistics; refuse from public facts what could not be released."""
    budget = estimator._budget()
    estimator._check_budget(budget)
    with quiet_numpy():
        return estimator._sized(
            lambda fitted, facts: fitted._read(X, y, groups=groups, facts=facts), budget
        )[0]
