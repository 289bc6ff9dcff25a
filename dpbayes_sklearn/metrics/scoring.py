"""Metrics of a model on private records, with noise, intervals and one charge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._compat import _safe_indexing
from dpbayes_sklearn._presenting import silence
from dpbayes_sklearn._typing import AnyArray, Positions
from dpbayes_sklearn.base.estimator import SEEDED
from dpbayes_sklearn.base.remarks import warn_of_delta, warn_of_seeds
from dpbayes_sklearn.base.supervised import SupervisedEstimator
from dpbayes_sklearn.data.frames import named_columns
from dpbayes_sklearn.data.persons import (
    codes_of,
    coins_of,
    fewest_left,
    read_groups,
    records_that_count,
)
from dpbayes_sklearn.data.reading import check_kinds, in_memory, read_table, read_target
from dpbayes_sklearn.data.records import LocalRecords, Table, column_kind, quiet_numpy
from dpbayes_sklearn.metrics.intervals import CrossValidation, Evaluation
from dpbayes_sklearn.metrics.plan import ReleasedEvaluation, plan
from dpbayes_sklearn.metrics.statistics import (
    Classification,
    Labelled,
    Measured,
    Regression,
    Task,
    checked,
)
from dpbayes_sklearn.model_selection.pipelines import Prepaid
from dpbayes_sklearn.model_selection.rehearsal import rehearsed
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import Budget, BudgetAccountant, PrivacyGuarantee, exact
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.release import carry_out
from dpbayes_sklearn.schema import Categories, Domain

_SCORES_STREAM = 2**18  # The stream of a seed from which the noise of scores is drawn.
# Errors within this many standard deviations of the residuals are not clipped.
_UNCLIPPED_SDS = 4.0
# The least largest error, as a part of the range of the target, in which floats can be told apart.
_LEAST_ERROR = 2.0**-40


def private_score(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    scoring: str | Sequence[str],
    epsilon: float,
    delta: float = 0.0,
    target: str | None = None,
    groups: Any = None,
    privacy_unit: PrivacyUnit | str | None = None,
    level: float = 0.95,
    least_probability: float = 0.01,
    largest_error: float | None = None,
    accountant: BudgetAccountant | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Evaluation:
    """Return metrics of a fitted model on private records, with noise and intervals.

    Parameters
    ----------
    model : fitted classifier or regression of this library
        Also a fitted :class:`PrivateSearchCV`, of which the selected model is evaluated.
    X, y : records that it was not fitted to, and their classes or targets
        If they are those that it was fitted to, metrics are too good, and both costs add up.
    scoring : str or list of str
        Of a classifier "accuracy", "balanced_accuracy", "log_loss", "brier_score", "roc_auc" (two
        classes), "calibration_curve", "confusion_matrix"; of a regression "r2", "rmse", "mae".
        The budget is shared by what they need: one table serves "confusion_matrix",
        "balanced_accuracy" and "accuracy".
    epsilon, delta : float
        Privacy budget of all metrics together. Without a delta noise is discrete Laplace or joint
        noise, with one it is discrete Gaussian. ``epsilon=float("inf")`` gives the exact values.
    target : str, optional
        The name of the column of X that is the target, instead of y.
    groups : array-like of shape (n_samples,), optional
        Whose record each is, for ``PrivacyUnit("person", ...)``, as in ``fit``.
    privacy_unit : "record" or PrivacyUnit, optional
        Who is protected; by default whom the model protects.
    level : float, default=0.95
        Nominal coverage of the intervals. Records are taken for independent.
    least_probability : float, default=0.01
        Smaller predicted probabilities of the true class count as this much in "log_loss".
    largest_error : float, optional
        Larger errors of a regression count as this much; by default four standard deviations of
        the residuals, which the model has released, and at most the range of the target; for
        counts the cap. For "r2" the variance of the target is that of targets whose errors are cut
        as well. What share of the records that concerns is released with the metrics, as ``cut`` of
        the result.
    accountant : BudgetAccountant, optional
        Charged once, before noise is drawn; by default the model's, or that of an open ``with``
        block.
    random_state : int, RandomState or None, default=None
        A seed is for tests and papers only.

    Returns
    -------
    Evaluation
        Scores by name, and the ``guarantee`` of all of them together.

    Notes
    -----
    **Privacy.** The evaluation spends ``epsilon`` (and ``delta``), for the records in X and y. With
    the public domains of the model, no value can make it fail. The cost of the model is not
    included.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> from dpbayes_sklearn.metrics import private_score
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 4000)
    >>> X = (rng.random((4000, 3)) < 0.2 + 0.6 * y[:, None]).astype(int)
    >>> model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), random_state=0)
    >>> model = model.fit(X[:2000], y[:2000])
    >>> found = private_score(
    ...     model, X[2000:], y[2000:], scoring=["accuracy", "log_loss"], epsilon=1.0, random_state=0
    ... )
    >>> found["accuracy"].low < 0.9 < found["accuracy"].high
    True
    >>> found.guarantee.epsilon
    1.0
    """
    chosen = model.best_estimator_ if hasattr(model, "best_estimator_") else model
    _refuse_others(chosen)
    check_is_fitted(chosen)
    unit = _unit_of(chosen, privacy_unit)
    asked = _Request.of(scoring, epsilon, delta, unit, level)
    task = _task(chosen.schema_.target, least_probability, largest_error, chosen)
    ledger = accountant or chosen._ledger()
    X, y, (groups,) = named_columns(X, y, target, groups)
    with quiet_numpy():
        rows, truth = _read(chosen, X, y, unit)
        counted, promises = _counted(truth, groups, unit, random_state)
        records = _said(chosen, rows, truth, counted)
        n = len(records.truth) + records.missing
        planned = plan(task, asked.metrics, asked.budget, n)
        if planned.n is not None:
            warn_of_delta(planned.cost, planned.n)
        promises = (*promises, *_seeded(random_state, planned.cost, ledger))
        _charge(ledger, planned.cost, f"private_score, {', '.join(asked.metrics)}")
        release = carry_out(planned, records, Noise.of(random_state, _SCORES_STREAM))
        return asked.evaluation(release.posterior, release.guarantee.under(*promises))


def private_cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    scoring: str | Sequence[str],
    epsilon: float,
    delta: float = 0.0,
    cv: int = 5,
    target: str | None = None,
    groups: Any = None,
    level: float = 0.95,
    least_probability: float = 0.01,
    largest_error: float | None = None,
    accountant: BudgetAccountant | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> CrossValidation:
    """Return metrics of an estimator by cross-validation, at their total price.

    Every person is in the training data of cv - 1 models, each of which spends the estimator's
    epsilon, and is evaluated by one. The predictions of all folds are evaluated together, with one
    noise. So the whole costs **(cv - 1) times the epsilon of the estimator, plus** ``epsilon``,
    charged in one entry before the first fit.

    Parameters
    ----------
    estimator : classifier or regression of this library, not fitted
        Its ``epsilon`` and ``delta`` are those of one fit. Its domains must be declared.
    X, y : records, and their classes or targets
    scoring, epsilon, delta, target, level, least_probability, largest_error
        As in :func:`private_score`; ``epsilon`` and ``delta`` are for the metrics.
    cv : int, default=5
        Number of folds. As many records, or persons, are dealt to each at random, all records of
        a person to one fold; where their number is secret, everyone draws a fold.
    groups : array-like of shape (n_samples,), optional
        Whose record each is; needed if a person is the privacy unit of the estimator. As in
        ``fit``, only some records count of a person with more than ``max_records``.
    accountant : BudgetAccountant, optional
        By default the estimator's, or that of an open ``with`` block.
    random_state : int, RandomState or None, default=None
        A seed is for tests and papers only.

    Returns
    -------
    CrossValidation
        An :class:`Evaluation` whose ``guarantee`` is that of everything together, with the
        ``models`` of the folds, which are paid for and may be published.

    Notes
    -----
    **Privacy.** Folds are drawn at random without looking at records. A person who is replaced, or
    added, concerns one fold's predictions and cv - 1 fits. With ``neighbours="replace"`` persons
    are replaced by others who have as many records that count, and so the number of persons is
    public.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> from dpbayes_sklearn.metrics import private_cross_validate
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = (rng.random((2000, 3)) < 0.2 + 0.6 * y[:, None]).astype(int)
    >>> model = BayesianNaiveBayes(0.2, classes=[0, 1], bounds=(0, 1), n_bins=2)
    >>> found = private_cross_validate(model, X, y, scoring="accuracy", epsilon=0.5, cv=3)
    >>> found.guarantee.epsilon, len(found.models)
    (0.9, 3)
    >>> bool(0.8 < found["accuracy"].value < 1.0)
    True
    """
    _refuse_others(estimator)
    estimator._validate_params()
    estimator._refuse_weights("private_cross_validate")
    unit, fit = estimator._unit, estimator._budget()
    if unit.name == "feature":
        raise ValueError("A cross-validation protects records or persons: set privacy_unit.")
    if unit.name == "person" and groups is None:
        raise ValueError("A cross-validation splits persons: give groups, whose record each is.")
    if not estimator._declares_columns or estimator._target.value is None:
        raise ValueError(
            "A cross-validation needs declared domains: set schema, or bounds and classes."
        )
    check_scalar(cv, "cv", Integral, min_val=2)
    asked = _Request.of(scoring, epsilon, delta, unit, level)
    X, y, (groups,) = named_columns(X, y, target, groups)
    ledger, kind = accountant or estimator._ledger(), column_kind(y)
    with quiet_numpy():
        rows = in_memory(X, estimator._declared_width, "private_cross_validate")
        truth = read_target(estimator, y)
        labels = None if groups is None else read_groups(groups, len(truth))
        rehearsal = clone(estimator).set_params(accountant=Prepaid(), random_state=None)
        conditions = rehearsed([rehearsal], rows, truth, labels, kind)
        counted, _ = _counted(truth, labels, unit, random_state)
        noise = Noise.of(random_state, _SCORES_STREAM)
        whose = None if labels is None else labels[counted]
        fold = _folds(len(counted), whose, unit, cv, noise)
        # refuses, before anything is charged, what could not be evaluated
        bounds = least_probability, largest_error
        planned = plan(
            _task(estimator._target.value, *bounds), asked.metrics, asked.budget, len(counted)
        )
        cost = Budget(
            (cv - 1) * fit.epsilon + asked.budget.epsilon,
            (cv - 1) * fit.delta + asked.budget.delta,
            unit,
        )
        promises = _seeded(random_state, cost, ledger)
        _charge(ledger, cost, f"private_cross_validate of {type(estimator).__name__}, {cv} folds")
        models, parts = [], []
        for k in range(cv):
            seed = None if random_state is None else noise.seed()
            train, test = counted[fold != k], counted[fold == k]
            theirs = None if labels is None else labels[train]
            model = clone(estimator).set_params(accountant=Prepaid(), random_state=seed)
            with silence():
                model.fit(_safe_indexing(rows, train), truth[train], groups=theirs)
            parts.append(_said(model, _safe_indexing(rows, test), truth[test]))
            models.append(model.set_params(accountant=accountant, random_state=None))
        *columns, missing = zip(*parts, strict=True)
        together: Any = type(parts[0])
        records = together(*map(np.concatenate, columns), missing=sum(missing))
        tasks = [_task(model.schema_.target, *bounds, model) for model in models]
        task = max(tasks, key=lambda one: getattr(one, "largest_error", 0.0))
        released = carry_out(replace(planned, task=task), records, noise).posterior
        guarantee = PrivacyGuarantee.of(cost, models[0].guarantee_.mechanism, conditions)
        found = asked.evaluation(released, guarantee.under(*promises))
    return CrossValidation(**vars(found), models=tuple(models))


def _folds(n: int, labels: AnyArray | None, unit: PrivacyUnit, cv: int, noise: Noise) -> Positions:
    """Return the fold of every record: by a coin each if n is secret, else in equal numbers."""
    if unit.size_is_secret:
        coins = noise.coins(n) if labels is None else coins_of(labels, noise)
        return np.floor(cv * coins).astype(np.intp)
    person = np.arange(n) if labels is None else codes_of(labels)
    persons = int(person.max(initial=-1)) + 1
    if persons < cv:
        raise ValueError(f"There are fewer {unit.name}s than folds. Got cv={cv}.")
    if fewest_left(person, math.ceil(persons / cv)) < unit.max_records:
        raise ValueError(
            f"max_records={unit.max_records} of the privacy_unit may be more than the records of "
            f"{cv - 1} of {cv} folds. Set a smaller max_records. Nothing was spent."
        )
    dealt = np.empty(persons, np.intp)
    dealt[noise.order(persons)] = np.arange(persons) % cv
    return dealt[person]


class _Request(NamedTuple):
    """Metrics, budget and level that were asked for, checked."""

    metrics: tuple[str, ...]
    budget: Budget
    level: float

    @classmethod
    def of(cls, scoring: Any, epsilon: Any, delta: Any, unit: PrivacyUnit, level: Any) -> _Request:
        """Read the parameters, refusing wrong ones."""
        names = (scoring,) if isinstance(scoring, str) else tuple(scoring)
        if not names:
            raise ValueError("scoring must name at least one metric.")
        return cls(names, _budget(epsilon, delta, unit), checked("level", level, 0.0, 1.0))

    def evaluation(self, released: ReleasedEvaluation, guarantee: PrivacyGuarantee) -> Evaluation:
        """Return the metrics of what was released."""
        scores = {name: released.score(name, self.level) for name in self.metrics}
        n = released.records.value
        n = released.n if n == released.n else n  # as an integer, if it is exact
        largest = getattr(released.task, "largest_error", None)
        return Evaluation(scores, guarantee, self.level, n, largest, released.cut(self.level))


def _seeded(random_state: Any, cost: Budget, ledger: BudgetAccountant | None) -> tuple[str, ...]:
    if random_state is None or cost.infinite:
        return ()
    warn_of_seeds(ledger)
    return (SEEDED,)


def _charge(ledger: BudgetAccountant | None, cost: Budget, what: str) -> None:
    """Charge the ledger durably, before any noise is drawn."""
    if ledger is not None:
        label = f"{what}, {cost.unit.label}"
        ledger.spend(cost.epsilon, cost.delta, label=label, rho=cost.rho or None, unit=cost.unit)


def _refuse_others(model: Any) -> None:
    if not isinstance(model, SupervisedEstimator) or not hasattr(model, "_predict_by_row"):
        raise TypeError(
            "The 'model' parameter of private_score must be a fitted classifier or regression of "
            f"this library. Got {type(model).__name__} instead."
        )


def _unit_of(model: Any, given: PrivacyUnit | str | None) -> PrivacyUnit:
    unit = PrivacyUnit.of(model._declared_unit if given is None else given)
    if unit.name == "feature":
        if given is not None:
            raise ValueError(
                "The 'privacy_unit' parameter of private_score must be 'record' or a PrivacyUnit "
                "of records or persons. Got 'feature' instead."
            )
        return RECORD
    return unit


def _budget(epsilon: Any, delta: Any, unit: PrivacyUnit) -> Budget:
    budget = Budget(exact(epsilon), exact(delta, "delta"), unit)
    if not budget.epsilon > 0 or not budget.delta < 1:
        raise ValueError(
            "epsilon must be in the range (0.0, inf] and delta in [0.0, 1.0). "
            f"Got {epsilon!r} and {delta!r} instead."
        )
    return budget._replace(delta=exact(0)) if budget.infinite else budget


def _task(target: Domain, least_probability: Any, largest_error: Any, model: Any = None) -> Task:
    """Return the public facts of a model, or of one that is still to be fitted."""
    if isinstance(target, Categories):
        floor = checked("least_probability", least_probability, 0.0, 1.0)
        return Classification(target.n_values, floor)
    span = target.high - target.low
    least = _LEAST_ERROR * span
    if largest_error is not None:
        largest = checked("largest_error", largest_error, least, math.inf)
    elif model is not None and not hasattr(model.posterior_, "noise_variance"):
        largest = span  # of counts: no residual variance is released, and the cap bounds them
    elif model is not None:
        residual_std = math.sqrt(model.posterior_.noise_variance) * float(model._scale.half)
        largest = max(_UNCLIPPED_SDS * residual_std, least)
    else:
        largest = span / 2  # in the place of what a model will say, which may be less than all
    return Regression(target.low, target.high, min(largest, span))


def _read(model: Any, X: Any, y: Any, unit: PrivacyUnit) -> tuple[Any, AnyArray]:
    """Return records in memory, and their targets, checked for shape, names and declared types."""
    reader = _reader(model)
    rows = in_memory(X, model.n_features_in_, "private_score")
    rows = reader._declared_part(rows, reset=False)
    table = read_table(reader, rows, reset=False, declared=True, may_be_empty=unit.size_is_secret)
    target = read_target(model, y, table.n_rows)
    check_kinds(model.schema_, LocalRecords([(table, target)], column_kind(y)))
    return rows, target


def _reader(model: Any) -> Any:
    """Return a copy of the model in which the domains in use are declared: every value is read."""
    reader = copy(model)
    reader.schema = model.schema_
    return reader


def _counted(
    target: AnyArray, groups: Any, unit: PrivacyUnit, random_state: Any
) -> tuple[Positions, tuple[str, ...]]:
    """Return the positions of the records that count, and what the guarantee then rests on."""
    numbered = LocalRecords([(Table(np.arange(len(target))[:, None]), target)])
    counted, promises = records_that_count(numbered, groups, unit, random_state)
    return counted.table.column(0), promises


def _said(
    model: Any, X: Any, y: AnyArray, counted: Positions | slice = slice(None)
) -> Labelled | Measured:
    """Predict every record by itself, and keep those that count and have a target."""
    reader, target, places = _reader(model), model.schema_.target, np.arange(len(y))[counted]
    known = places[model._has_target(y)[places]]
    missing = len(places) - len(known)
    if not is_classifier(model):
        predicted = reader._predict_by_row(X) if len(y) else np.empty(0)
        return Measured(target.clip(y)[known], target.clip(predicted)[known], missing)
    proba = reader.predict_proba(X) if len(y) else np.empty((0, len(model.classes_)))
    classes = model.schema_.classes  # columns are those of sorted classes
    truth = np.argsort(np.argsort(classes.labels))[classes.encode(y)]
    return Labelled(truth[known], proba.argmax(axis=1)[known], proba[known], missing)
