"""The expected error of a release, before any data are read.

The noise distribution of every mechanism is public, so its error can be computed from the number of
records and the declared domains. Nothing here reads data, charges an accountant or has a privacy
cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from dpbayes_sklearn._simulation import (
    USUAL,
    LinearSimulation,
    LogisticSimulation,
    NetworkSimulation,
    Simulation,
    Spread,
    extremes,
)
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.base.classifier import DiscreteClassifier
from dpbayes_sklearn.base.estimator import AnyEstimator, PrivateEstimator
from dpbayes_sklearn.classifier import BayesianClassifier
from dpbayes_sklearn.linear_model import BayesianLinearRegression, BayesianLogisticRegression
from dpbayes_sklearn.mechanisms import resolve_mechanism
from dpbayes_sklearn.privacy import PrivacyUnit, exact
from dpbayes_sklearn.release import Facts

__all__ = [
    "ExpectedError",
    "Recommendation",
    "Report",
    "Spread",
    "epsilon_for",
    "expected_error",
    "recommend",
    "records_per_person",
    "report",
    "share_epsilon",
]

_LEAST_EPSILON, _MOST_EPSILON = 1e-4, 1e6  # Epsilons are looked for in this range.
_MOST_PER_PERSON = 1000  # Persons have at most this many records in a plan.
_PERSON_CORRELATION = 0.5  # The records of one person are thought to have this correlation.
_PRECISION = 1.01  # An epsilon is found to within this factor.

_VERDICTS = (  # Measured; see docs/user_guide/choosing.md.
    (0.1, "expect about the accuracy that is possible without privacy"),
    (0.3, "expect to keep most of the possible accuracy"),
    (1.0, "expect to lose a part of the possible accuracy, often half of it"),
    (math.inf, "expect hardly more than the shares of the classes, or the mean of the target"),
)
_GOOD = 0.3  # Noise as a share of what is estimated, up to which most of the accuracy is kept.


@dataclass(frozen=True, repr=False)
class ExpectedError:
    """Distribution of an absolute error that is known in advance.

    Attributes
    ----------
    of : {"counts", "coefficients", "log odds"}
        The quantity that the error refers to.
    errors : array of float
        Equally probable values of the error, in increasing order.
    range : tuple of two floats, or None
        Mean errors at the ends of what is likely, for a regression whose spread was not given:
        columns that fill their bounds (and a target with a standard deviation of 5 % of the width
        of its bounds), and columns with a standard deviation of 1 % of it (target: 20 %) and one
        value of every column of categories in 1 % of the records.
    coefficients : dict
        For a regression: the mean absolute error of every row of ``coefficients()`` by its name,
        in units of the data, but for the intercept; without a spread at the worse end of the range.
    """

    of: str
    errors: FloatArray
    range: tuple[float, float] | None = None
    coefficients: dict[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """Mean absolute error."""
        return float(self.errors.mean())

    def quantile(self, probability: float) -> float:
        """Return the quantile of the error at this probability."""
        return float(np.quantile(self.errors, probability))

    def __repr__(self) -> str:
        if self.range is not None:
            low, high = self.range
            return f"ExpectedError(of={self.of!r}, mean={low:.3g} to {high:.3g}: give spread=)"
        return (
            f"ExpectedError(of={self.of!r}, mean={self.mean:.3g}, "
            f"median={self.quantile(0.5):.3g}, 95 %={self.quantile(0.95):.3g})"
        )


class Recommendation(NamedTuple):
    """The mechanism with the smallest expected error, and the errors of all of them.

    ``model`` is the classifier that ``BayesianClassifier`` would choose; for a regression it is
    empty.
    """

    mechanism: str
    errors: dict[str, float]
    model: str = ""


def expected_error(
    estimator: AnyEstimator,
    n: int,
    epsilon: float | None = None,
    *,
    n_features: int | None = None,
    spread: Spread | None = None,
) -> ExpectedError:
    """Return the distribution of the error of a fit to ``n`` records, without any data.

    Parameters
    ----------
    estimator : a classifier or a regression of this library
        With declared domains: ``schema``, or bounds, and the classes of a classifier.
    n : int
        Number of records.
    epsilon : float, optional
        The estimator's, unless given.
    n_features : int, optional
        Needed if the bounds are two numbers for any number of features.
    spread : Spread, optional
        For a regression: a guess of how the data spread within their bounds, as its errors are
        proportional to the spread of the target over that of a column.

    Returns
    -------
    ExpectedError
        Of a discrete classifier: the error of one count of its tables, in records. For "laplace",
        "fourier", "gaussian" and "auto" that is the noise of the released count, for any data:
        before inference, and without the public increment of "fourier". The draws of "sampler"
        and "map" depend on the data, which are simulated from the prior; the error is that of the
        counts which the drawn probabilities imply.

        Of a linear regression: the difference of one coefficient from that of exact Bayes, on the
        scale of the bounds, for simulated data with the given spread, whose features explain half
        of the variance of the target. Without ``spread`` it is a range, see :class:`ExpectedError`.

        Of a logistic regression: the difference of the log odds of a record from those without
        privacy, for simulated data whose log odds have a standard deviation of 1.5.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> model = BayesianNaiveBayes(classes=[0, 1], bounds=([0, 0], [1, 1]), n_bins=2)
    >>> expected_error(model, n=1000, epsilon=1.0)
    ExpectedError(of='counts', mean=3.38, median=2.5, 95 %=9.64)
    """
    at, columns = _at(estimator, epsilon, n, n_features), _columns(estimator, n_features)
    kind = _simulation(at)
    if not issubclass(kind, LinearSimulation):
        if spread is not None:
            raise ValueError("Only the errors of a linear regression depend on spread.")
        return ExpectedError(kind.of, np.sort(kind(at, n, columns).errors()))
    guesses = extremes(at._declared_schema(n, columns)) if spread is None else (spread,)
    runs = [kind(at, n, columns, one) for one in guesses]
    errors = [run.errors() for run in runs]
    means = [float(each.mean()) for each in errors]
    return ExpectedError(
        kind.of,
        np.sort(np.concatenate(errors)),
        (means[0], means[-1]) if spread is None else None,
        runs[-1].by_name(),
    )


def epsilon_for(
    estimator: AnyEstimator,
    n: int,
    target: float,
    *,
    quantile: float | None = None,
    n_features: int | None = None,
    spread: Spread | None = None,
) -> float:
    """Return the smallest epsilon whose expected error is at most ``target``.

    Parameters
    ----------
    estimator, n, n_features, spread
        As in :func:`expected_error`; a regression needs the spread.
    target : float
        The mean absolute error wanted, or its ``quantile``.
    quantile : float, optional
        A probability with which the error shall not exceed the target.

    Returns
    -------
    float
        To within one percent.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> model = BayesianNaiveBayes(classes=[0, 1], bounds=([0, 0], [1, 1]), n_bins=2)
    >>> round(epsilon_for(model, n=1000, target=12.0), 2)
    0.24
    """
    if spread is None and _simulation(estimator) is LinearSimulation:
        raise ValueError(
            "The error of a regression depends on how far its columns and its target spread. Give "
            "a guess: spread=planning.Spread({column: standard deviation, ...}, target=...)."
        )

    def error(epsilon: float) -> float:
        law = expected_error(estimator, n, epsilon, n_features=n_features, spread=spread)
        return law.mean if quantile is None else law.quantile(quantile)

    return _smallest(error, target)


def recommend(
    estimator: AnyEstimator, n: int, epsilon: float | None = None, *, n_features: int | None = None
) -> Recommendation:
    """Return the mechanism that the expected error favours, inference included.

    All mechanisms release the same data, simulated from the prior, and their posterior means are
    compared with those of exact Bayes; "gaussian" is among them if the estimator has a delta. The
    errors are in records (classifiers), or on the scale of the bounds (regression); a mechanism
    that cannot release at this epsilon has infinity. Those of a logistic regression are of log
    odds.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> model = BayesianNaiveBayes(
    ...     classes=[0, 1], bounds=([0, 0], [1, 1]), n_bins=2, inference="plug_in"
    ... )
    >>> recommend(model, n=1000, epsilon=1.0).mechanism
    'laplace'
    >>> [recommend(model, n=n, epsilon=1.0).model for n in (100, 1000)]
    ['BayesianNaiveBayes', 'BayesianLogisticRegression']
    """
    estimator, columns = _at(estimator, epsilon, n, n_features), _columns(estimator, n_features)
    better = ""
    if isinstance(estimator, (DiscreteClassifier, BayesianLogisticRegression)):
        names = BayesianClassifier._get_param_names()
        public = {name: getattr(estimator, name) for name in names}
        better = type(BayesianClassifier(**public).model_for(n, columns)).__name__
    errors = {}
    simulation = _simulation(estimator)
    allowed, _ = estimator._parameter_constraints["mechanism"]
    for name in sorted(allowed.options - {"auto"}):  # auto is one of the others
        if resolve_mechanism(name).needs_delta and not estimator.delta:
            continue
        candidate = clone(estimator)
        if candidate._mechanism.name() != name:
            candidate.mechanism = name
        release = simulation(candidate, n, columns)
        errors[name] = float(release.after_inference().mean()) if release.possible() else math.inf
    return Recommendation(min(errors, key=errors.__getitem__), errors, better)


@dataclass(frozen=True)
class Report:
    """What to expect of a fit, from public facts only.

    Attributes
    ----------
    ratio : float
        Of a discrete classifier: the mean error of a released count over an average count of the
        rarest class, both of the fewest bins that ``n_bins="auto"`` makes. Of a logistic
        regression: 20 parameters over the number of records times epsilon (from three classes on
        40 of each class), and over 4 s (1 - s) if the rarest of two classes has a share s. Of a
        linear regression: the standard deviation of the change of predictions by the noise, over
        that of the predictions.
    verdict : str
        What that means for the accuracy.
    remedy : str
        What would help; empty if nothing needs to.
    notes : tuple of str
        What was taken for granted, and whether ``coefficients()`` will have intervals.
    """

    ratio: float
    verdict: str
    remedy: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        start = f"Noise is {self.ratio:.2g} times the size of what is estimated: {self.verdict}."
        return " ".join(part for part in (start, self.remedy, *self.notes) if part)


def report(
    estimator: AnyEstimator,
    n: int,
    epsilon: float | None = None,
    *,
    n_features: int | None = None,
    spread: Spread = USUAL,
    class_shares: Sequence[float] | None = None,
) -> Report:
    """Return what to expect of a fit to ``n`` records, in words, and what would help.

    Parameters
    ----------
    estimator, n, epsilon, n_features
        As in :func:`expected_error`.
    spread : Spread
        For a regression: a guess of how the data spread. By default numeric columns have a standard
        deviation of a sixth of the width of their bounds, and the target of a tenth.
    class_shares : sequence of float, optional
        For a classifier: a guess of the share of every class, from public knowledge. A rare class
        needs more records. By default all are of the same size.

    Returns
    -------
    Report
        Print it, or use its fields. The ratio of a classifier falls with epsilon.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> model = BayesianNaiveBayes(classes=[0, 1], bounds=([0] * 20, [1] * 20), n_bins=4)
    >>> print(report(model, n=5000))
    Noise is 0.038 times the size ...: expect about the accuracy that is possible without ...
    >>> print(report(model, n=5000, class_shares=[0.98, 0.02]).remedy)
    To keep most of it: n of at least 16,000, or epsilon of at least 3.2, or fewer columns or bins.
    """
    at = _at(estimator, epsilon, n, n_features)
    ratio = _noise_ratio(at, n, n_features, spread, class_shares)
    notes = _notes(at, n, n_features, class_shares)
    verdict = next(text for most, text in _VERDICTS if ratio <= most)
    factor = ratio / _GOOD
    if factor <= 1 or not math.isfinite(factor):
        return Report(ratio, verdict, "", notes)
    records, wanted = _two_digits(n * factor), float(f"{float(at.epsilon) * factor:.1e}")
    remedy = f"To keep most of it: n of at least {records:,}, or epsilon of at least {wanted:g}"
    linear = isinstance(at, BayesianLinearRegression)
    fewer = "tighter bounds" if linear else "fewer columns or bins"
    return Report(ratio, verdict, f"{remedy}, or {fewer}.", notes)


def _two_digits(number: float) -> int:
    return int(float(f"{number:.1e}"))


def _notes(
    estimator: AnyEstimator, n: int, n_features: int | None, shares: Sequence[float] | None
) -> tuple[str, ...]:
    """Return further remarks about a classifier."""
    notes = []
    if not isinstance(estimator, BayesianLinearRegression) and shares is None:
        notes += ["Classes are taken to be of the same size; for others give class_shares."]
    if isinstance(estimator, BayesianLogisticRegression):
        steps = estimator.plan(n, _columns(estimator, n_features)).steps
        some = "" if any("curvature" in step.what for step in steps) else "no "
        notes += [f"coefficients() will have {some}intervals."]
    return tuple(notes)


def _noise_ratio(
    estimator: AnyEstimator,
    n: int,
    n_features: int | None,
    spread: Spread,
    shares: Sequence[float] | None = None,
) -> float:
    """Return the size of the noise as a share of what is estimated."""
    columns = _columns(estimator, n_features)
    if _simulation(estimator) is LinearSimulation:
        return LinearSimulation(estimator, n, columns, spread).prediction_error()
    public = estimator._declared_schema(n, columns)
    classes = public.classes.n_values
    rarest = _rarest(shares, classes)
    if _simulation(estimator) is LogisticSimulation:
        _, budget = estimator._shares(estimator._budget())
        prior = estimator._prior(public)
        plan: Any = estimator._plan(prior, Facts(n), budget)
        few, evenness = prior.few_records, rarest * (1 - rarest) * classes**2 / (classes - 1)
        return float(few / plan.rho / evenness)
    # bins, and the share of the temperature, depend on epsilon: noise is compared without them
    epsilon, scale = float(estimator.epsilon), 1.0
    if NetworkSimulation(estimator, n, columns).tables.noise_ratio() and math.isfinite(epsilon):
        scale = 1 / (n * epsilon)
        estimator = clone(estimator).set_params(epsilon=1 / n)
    simulation = NetworkSimulation(estimator, n, columns)
    count = float(np.mean([n * rarest / k for k in simulation.network.sizes[:-1]]))
    return float(simulation.errors().mean()) * scale / count


def _rarest(shares: Sequence[float] | None, n_classes: int) -> float:
    """Return the share of the rarest class; all are of the same size if none are given."""
    if shares is None:
        return 1 / n_classes
    given = np.asarray(shares, float)
    if given.shape != (n_classes,) or not (given > 0).all() or abs(given.sum() - 1) > 0.01:
        raise ValueError(f"class_shares must be {n_classes} positive numbers that add up to 1.")
    return float(given.min())


def records_per_person(estimator: DiscreteClassifier, n_persons: int, records: Any) -> int:
    """Return how many records of a person should count: ``max_records`` of a `PrivacyUnit`.

    More of them make the noise larger in proportion, but the random error of the data smaller. The
    answer has the smallest sum of both variances, relative to an average count, if records of one
    person have a correlation of 1/2. With few persons or a small epsilon it is 1.

    Parameters
    ----------
    estimator : BayesianNaiveBayes or BayesianNetworkClassifier
        With declared domains and a ``privacy_unit`` of persons, whose ``max_records`` is ignored.
    n_persons : int
        Number of persons.
    records : array-like of int
        A guess of how many records people have, from public knowledge: some typical numbers.

    Returns
    -------
    int

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes, PrivacyUnit
    >>> model = BayesianNaiveBayes(
    ...     classes=[0, 1], bounds=([0] * 9, [1] * 9), n_bins=2, privacy_unit=PrivacyUnit("person")
    ... )
    >>> [records_per_person(model, n, records=[1, 2, 4, 12]) for n in (500, 5000, 50_000)]
    [2, 4, 12]
    """
    numbers, unit = np.asarray(records, float), PrivacyUnit.of(estimator.privacy_unit)
    if not (numbers.size and (numbers >= 1).all() and numbers.max() <= _MOST_PER_PERSON):
        raise ValueError(
            f"records must be numbers of records of some persons, from 1 to {_MOST_PER_PERSON}."
        )

    def variance(k: int) -> float:
        each = float(np.minimum(numbers, k).mean())
        n = int(n_persons * each)
        candidate = _at(estimator, None, n)
        candidate.privacy_unit = replace(unit, name="person", max_records=k)
        ratio = _noise_ratio(candidate, n, None, USUAL)
        *values, classes = NetworkSimulation(candidate, n).network.sizes
        together = 1 + (each - 1) * _PERSON_CORRELATION
        return ratio**2 + float(np.mean(values)) * classes * together / n

    return min(range(1, int(numbers.max()) + 1), key=variance)


def share_epsilon(pipeline: Any, epsilon: float, n: int, n_features: int) -> Any:
    """Return a pipeline whose private steps share a total epsilon, by a public rule.

    A transformer gets what it needs to be accurate with n records, between 5 and 20 % of the
    total, and all transformers together at most 40 %; the last step gets the rest.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        Its last step, and any steps or parts of steps before, are estimators of this library.
    epsilon : float
        The total.
    n, n_features : int
        Number of records and of columns.

    Returns
    -------
    Pipeline
        A clone with ``epsilon`` of every private step set; they add up to the total exactly.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from dpbayes_sklearn import BayesianNaiveBayes, planning
    >>> from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer
    >>> model = make_pipeline(
    ...     PrivateKBinsDiscretizer(8), BayesianNaiveBayes(bounds=(0, 7), n_bins=8, classes=[0, 1])
    ... )
    >>> shared = planning.share_epsilon(model, 1.0, n=100_000, n_features=5)
    >>> [step.epsilon for _, step in shared.steps]
    [0.1, 0.9]
    """
    total = exact(epsilon)
    (last, _), shared = pipeline.steps[-1], clone(pipeline)
    steps = {
        name: step
        for name, step in shared.get_params(deep=True).items()
        if isinstance(step, PrivateEstimator) and name.split("__")[0] != last
    }
    if not isinstance(pipeline.steps[-1][1], PrivateEstimator) or isinstance(total, float):
        raise ValueError(
            "The last step of the pipeline must be a private model, and epsilon a finite number."
        )
    wanted = {
        name: min(max(step._epsilon_wanted(n, n_features) / float(total), 0.05), 0.2)
        for name, step in steps.items()
    }
    scale = min(1.0, 0.4 / sum(wanted.values())) if wanted else 1.0
    shares = {name: Fraction(round(1000 * scale * part), 1000) for name, part in wanted.items()}
    shares[last] = 1 - sum(shares.values(), Fraction(0))
    return shared.set_params(
        **{f"{name}__epsilon": float(total * part) for name, part in shares.items()}
    )


def _at(
    estimator: AnyEstimator, epsilon: float | None, n: int, n_features: int | None = None
) -> AnyEstimator:
    """Return the model with another epsilon, its parameters checked, and chosen if that is left."""
    copied: AnyEstimator = clone(estimator)
    if epsilon is not None:
        copied.epsilon = epsilon
    copied._validate_params()
    if isinstance(copied, BayesianClassifier):
        return copied.model_for(n, _columns(estimator, n_features))
    return copied


def _columns(estimator: AnyEstimator, n_features: int | None) -> int | None:
    """Return the number of features: as given, or of an earlier fit."""
    return n_features or getattr(estimator, "n_features_in_", None)


def _simulation(estimator: AnyEstimator) -> type[Simulation]:
    if isinstance(estimator, DiscreteClassifier):
        return NetworkSimulation
    if isinstance(estimator, BayesianLinearRegression):
        return LinearSimulation
    if isinstance(estimator, BayesianLogisticRegression):
        return LogisticSimulation
    raise TypeError(
        "The 'estimator' parameter must be a BayesianClassifier, BayesianNaiveBayes, "
        "BayesianNetworkClassifier, BayesianLinearRegression or BayesianLogisticRegression. Got "
        f"{type(estimator).__name__} instead."
    )


def _smallest(error: Callable[[float], float], target: float) -> float:
    """Return the smallest epsilon with an error of at most target; the error falls with it."""
    low = high = 1.0
    while error(high) > target:
        low, high = high, 4 * high
        if high > _MOST_EPSILON:
            raise ValueError(
                f"No epsilon up to {_MOST_EPSILON:g} brings the expected error to {target:g}."
            )
    while low > _LEAST_EPSILON and error(low) <= target:
        low, high = low / 4, low
    while high / low > _PRECISION:
        middle = float(f"{math.sqrt(low * high):.6g}")  # few digits: noise scales are exact
        low, high = (low, middle) if error(middle) <= target else (middle, high)
    return high
