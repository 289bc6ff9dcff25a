"""Pipelines of private steps as one private estimator, for a search.

Guarantee
---------
*Precondition*: every step is an estimator of this library that protects the same unit, fitted to
the same people with its share of epsilon and noise of its own; a step maps every record by what
earlier steps released, and keeps whose it is. *Claim*: the fitted pipeline is private with the sum
of the shares. *Proof*: adaptive composition. A step that is not private could reveal anything, so
it is refused; so is one of infinite epsilon, and a cache of fitted steps is not used. A secret
number of records is released by each step that needs it, within its share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from dpbayes_sklearn._compat import InvalidParameterError
from dpbayes_sklearn._presenting import silence
from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.base.estimator import AnyEstimator, FitInput, PrivateEstimator
from dpbayes_sklearn.base.spending import once
from dpbayes_sklearn.base.supervised import AnySupervised, Declared, SupervisedEstimator
from dpbayes_sklearn.data.reading import read_target
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import Budget, BudgetAccountant, PrivacyGuarantee, exact
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts, Plan, Release
from dpbayes_sklearn.schema import Domain

PASSES = ("passthrough", None)  # Steps of a pipeline that do nothing.


class Prepaid(BudgetAccountant):
    """The accountant of fits inside a search, which is charged as a whole: records nothing."""

    def __init__(self) -> None: ...

    @property
    def temporary(self) -> bool:
        """Nothing is recorded."""
        return True

    @property
    def delta(self) -> float:
        """The search has checked the ceiling of its own ledger."""
        return 0.0

    def check(self, *_: Any, **__: Any) -> bool:
        """Allow everything."""
        return True

    def spend(self, *_: Any, **__: Any) -> Any:
        """Charge nothing."""
        return None

    def __repr__(self) -> str:
        return "paid by the search"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Prepaid, ()


def private_steps(pipeline: Pipeline) -> list[tuple[str, AnyEstimator]]:
    """Return the steps that are fitted, by name."""
    return [(name, step) for name, step in pipeline.steps if step not in PASSES]


def steps_of(estimator: Any) -> list[AnyEstimator]:
    """Return the fitted steps of a pipeline; any other estimator is the only step."""
    if isinstance(estimator, Pipeline):
        return [step for _, step in private_steps(estimator)]
    return [estimator]


def with_params(estimator: Any, candidates: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return a clone of the estimator with the parameters of every candidate."""
    return [clone(estimator).set_params(**clone(params, safe=False)) for params in candidates]


def refuse_others(estimator: Any) -> None:
    """Refuse what is not private, or predicts nothing."""
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            if step not in PASSES and not isinstance(step, PrivateEstimator):
                raise InvalidParameterError(
                    "The 'estimator' parameter of PrivateSearchCV may be a Pipeline of estimators "
                    f"of this library only. Its step {name!r} is a {type(step).__name__} instead."
                )
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    private = isinstance(last, SupervisedEstimator)
    if not private or not (is_classifier(last) or is_regressor(last)):
        raise InvalidParameterError(
            "The 'estimator' parameter of PrivateSearchCV must be a classifier or a regression of "
            "this library, or a Pipeline that ends with one. "
            f"Got {type(last).__name__} instead."
        )


def step_epsilons(pipeline: Pipeline, total: Any) -> dict[str, Any]:
    """Return the epsilon of every step: a total, divided in proportion to their own epsilons.

    There is no proportion to an infinite epsilon, so it is refused unless the total is infinite.
    """
    whole = exact(total)
    own = {name: exact(step.epsilon) for name, step in private_steps(pipeline)}
    if isinstance(whole, float):
        return dict.fromkeys(own, whole)
    for name, part in own.items():
        if isinstance(part, float):
            raise ValueError(
                f"The step {name!r} of a pipeline has an infinite epsilon, the whole a finite one, "
                "which its steps share in proportion to their own: give it a finite epsilon."
            )
    parts = {name: Fraction(part) for name, part in own.items()}
    return {name: whole * part / sum(parts.values()) for name, part in parts.items()}


def shared_ledger(estimators: Iterable[Any]) -> BudgetAccountant | None:
    """Return the only accountant of all steps of all estimators, None if there is none."""
    held = (getattr(step, "accountant", None) for one in estimators for step in steps_of(one))
    ledgers = {ledger for ledger in held if ledger is not None}
    if len(ledgers) > 1:
        raise ValueError(
            "The steps or candidates of a search have different accountants, but a search is "
            "charged once: set accountant of the search."
        )
    return ledgers.pop() if ledgers else None


def fresh(pipeline: Pipeline) -> Pipeline:
    """Return an unfitted pipeline of the same steps and of nothing else.

    A cache (``memory``) would repeat the noise of other fits, and keep on disk what they released.
    ``verbose`` and callbacks would tell of every fit.
    """
    return Pipeline(
        [(name, step if step in PASSES else clone(step)) for name, step in pipeline.steps]
    )


def named(steps: Sequence[tuple[str, Any]]) -> str:
    """Return the names of the steps, for the ledger.

    >>> named([("a", "passthrough"), ("b", 1)])
    'int'
    """
    return " and ".join(type(step).__name__ for _, step in steps if step not in PASSES)


class People(NamedTuple):
    """Sensitive: the records that every step is fitted to."""

    X: Any
    y: Any
    groups: Any
    n: int
    kind: str = "records"


class StepByStep(Mechanism):
    """Fit the steps of a pipeline one after the other, each with its share of the budget."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PipelinePlan(Plan[People, Pipeline]):
    """All steps of a pipeline in turn; every step plans and refuses for itself."""

    pipeline: Pipeline
    seeded: bool

    def release(self, statistics: People, noise: Noise) -> Pipeline:
        """Return the fitted pipeline."""
        pipeline = _shared(self.pipeline, self.cost.epsilon)
        for _, step in private_steps(pipeline):
            step.set_params(random_state=noise.seed() if self.seeded else None)
        _fit_in_turn(pipeline, statistics)
        return pipeline

    def promise(self, released: Pipeline) -> PrivacyGuarantee:
        """Return the guarantee of all steps together."""
        each = [step.guarantee_ for _, step in private_steps(released)]
        conditions = dict.fromkeys(c for guarantee in each for c in guarantee.conditions)
        return PrivacyGuarantee.of(self.cost, each[-1].mechanism, conditions)


def _shared(pipeline: Pipeline, epsilon: Any) -> Pipeline:
    """Return the pipeline with an epsilon that was paid for divided among its steps."""
    whole = fresh(pipeline)
    for name, share in step_epsilons(whole, epsilon).items():
        whole[name].set_params(epsilon=share, accountant=Prepaid(), random_state=None)
    return whole


def _fit_in_turn(pipeline: Pipeline, people: People) -> None:
    """Fit one step after the other, each with the groups of the records.

    By hand, because a Pipeline passes ``groups`` on in one of two ways, which a setting decides.
    """
    X, steps = people.X, [step for _, step in private_steps(pipeline)]
    for step in steps:
        step.fit(X, people.y, groups=people.groups)
        X = X if step is steps[-1] else step.transform(X)


@dataclass(eq=False, repr=False)
class PrivatePipeline(SupervisedEstimator[None, None, People, Pipeline]):
    """A pipeline of private steps that spends one epsilon, in proportion to their own."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "pipeline": [Pipeline],
    }

    pipeline: Pipeline
    _: KW_ONLY
    epsilon: Any = 1.0
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    @property
    def _model(self) -> AnySupervised:
        model: AnySupervised = self.pipeline.steps[-1][1]
        return model

    @property
    def _declared_width(self) -> int | None:
        first: AnyEstimator = private_steps(self.pipeline)[0][1]
        return first._declared_width

    @property
    def _bounds(self) -> Declared:
        return self._model._bounds

    @property
    def _target(self) -> Declared:
        return self._model._target

    @property
    def _skips_missing(self) -> bool:
        return self._model._skips_missing

    def _target_from_data(self, values: AnyArray) -> Domain:
        return self._model._target_from_data(values)

    @property
    def _declared_unit(self) -> PrivacyUnit:
        return self._model._unit

    def _validate_params(self) -> None:
        super()._validate_params()
        for name, step in private_steps(self.pipeline):
            step._validate_params()
            step._refuse_weights("PrivateSearchCV")
            if step._unit != self._unit:
                raise ValueError(
                    f"All steps of a pipeline must protect the same unit: {name!r} protects "
                    f"{step._unit}, the last step {self._unit}."
                )
            if step._budget().delta:
                raise ValueError(
                    f"A pipeline in a search is purely private: {name!r} must have delta=0."
                )
        step_epsilons(self.pipeline, self._budget().epsilon)  # refuses infinite ones

    _uses_n = "nowhere"

    @once
    def _mechanism(self) -> Mechanism:
        return StepByStep()

    def shared(self) -> list[AnyEstimator]:
        """Return the steps, not fitted, each with its share of epsilon."""
        whole = _shared(self.pipeline, self._budget().epsilon)
        return [step for _, step in private_steps(whole)]

    def _read(
        self,
        X: Any,
        y: Any,
        known: None = None,
        groups: Any = None,
        facts: Facts | None = None,
        sample_weight: Any = None,
    ) -> FitInput[None, None, People]:
        """Keep the records for the steps; domains that the first one cannot read are refused now.

        With declared domains no record can be refused, and a transformer declares none.
        """
        target, first = read_target(self, y), self.shared()[0]
        if isinstance(first, SupervisedEstimator):
            with silence():
                first._read(X, target, groups=groups, facts=facts)
        n = len(target)
        return FitInput(None, None, People(X, target, groups, n), facts=facts or Facts(n))

    def _prior(self, public: None) -> None:
        return None

    def _plan(self, prior: None, facts: Facts, budget: Budget) -> PipelinePlan:
        name, seeded = StepByStep.name(), self.random_state is not None
        return PipelinePlan(cost=budget, mechanism=name, pipeline=self.pipeline, seeded=seeded)

    @property
    def _n_released(self) -> int:  # type: ignore[override]
        """The secret number of records, as the last step released it."""
        n: int = self.posterior_[-1]._n_released
        return n

    def _attach(self, public: None, release: Release[Pipeline]) -> Self:
        self.posterior_ = release.posterior
        self.schema_ = release.posterior[-1].schema_
        self.guarantee_ = release.guarantee
        return self

    def winner(self, ledger: BudgetAccountant | None) -> Pipeline:
        """Return the fitted pipeline; all of its steps carry the guarantee of the whole."""
        for _, step in private_steps(self.posterior_):
            step.set_params(accountant=ledger, random_state=None)
            step.guarantee_ = self.guarantee_
            step.__dict__.pop("_proof", None)  # of a fit alone, not of the best of several
        model = self.posterior_[-1]  # which also keeps the guarantees of its batches
        model._attach(model.schema_, Release(model.posterior_, self.guarantee_))
        return self.posterior_

    def predict(self, X: Any) -> Any:
        """Return the predictions of the last step."""
        return self.posterior_.predict(X)

    def _predict_by_row(self, X: Any) -> Any:
        *steps, model = (step for _, step in private_steps(self.posterior_))
        for step in steps:
            X = step.transform(X)
        return model._predict_by_row(X)

    def __sklearn_tags__(self) -> Any:
        return self.pipeline.__sklearn_tags__()


def as_one(model: Any) -> AnySupervised:
    """Return a model or a pipeline as an estimator of one epsilon."""
    refuse_others(model)
    return PrivatePipeline(model) if isinstance(model, Pipeline) else model
