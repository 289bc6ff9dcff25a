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

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.pipeline import Pipeline

from dpbayes_sklearn._log import silence
from dpbayes_sklearn.base.estimator import FitInput, PrivateEstimator
from dpbayes_sklearn.base.supervised import SupervisedEstimator
from dpbayes_sklearn.data.reading import read_target
from dpbayes_sklearn.mechanisms import Mechanism, Release
from dpbayes_sklearn.model_selection.runs import Prepaid, seed_from
from dpbayes_sklearn.model_selection.steps import (
    fresh,
    private_steps,
    refuse_others,
    step_epsilons,
)
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.privacy import Budget, BudgetAccountant, PrivacyGuarantee
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["PrivatePipeline", "as_one"]


class People(NamedTuple):
    """Sensitive: the records that every step is fitted to."""

    X: Any
    y: Any
    groups: Any
    n: int
    kind: str = "records"


class StepByStep(Mechanism):
    """Fit the steps of a pipeline one after the other, each with its share of the budget."""

    def preflight(self, statistics: Any, prior: Any, budget: Budget) -> None:
        """Refuse nothing: every step refuses for itself."""

    def release(
        self, statistics: Any, prior: Any, budget: Budget, source: RandomSource
    ) -> Release[Pipeline]:
        """Return the fitted pipeline."""
        seeded = prior.random_state is not None
        pipeline = _shared(prior.pipeline, budget.epsilon)
        for _, step in private_steps(pipeline):
            step.set_params(random_state=seed_from(source) if seeded else None)
        fitted = _fitted_in_turn(pipeline, statistics, prior._n_is_guessed)
        conditions = [condition for guarantee in fitted for condition in guarantee.conditions]
        promise = PrivacyGuarantee.of(budget, fitted[-1].mechanism, dict.fromkeys(conditions))
        return Release(pipeline, promise)


def _shared(pipeline: Pipeline, epsilon: Any) -> Pipeline:
    """Return the pipeline with an epsilon that was paid for divided among its steps."""
    whole = fresh(pipeline)
    for name, share in step_epsilons(whole, epsilon).items():
        whole[name].set_params(epsilon=share, accountant=Prepaid(), random_state=None)
    return whole


def _fitted_in_turn(pipeline: Pipeline, people: People, n_is_guessed: bool) -> list[Any]:
    """Fit one step after the other, each told whose records they are; return their guarantees.

    By hand, because a Pipeline passes ``groups`` on in one of two ways, which a setting decides.
    """
    X, steps = people.X, [step for _, step in private_steps(pipeline)]
    for step in steps:
        if n_is_guessed:
            step._n_is_guessed = True
        step.fit(X, people.y, groups=people.groups)
        X = X if step is steps[-1] else step.transform(X)
    return [step.guarantee_ for step in steps]


class PrivatePipeline(SupervisedEstimator):
    """A pipeline of private steps that spends one epsilon.

    Parameters
    ----------
    pipeline : Pipeline
        Its steps share ``epsilon`` in proportion to their own.
    epsilon, accountant, random_state
        As for any estimator.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "pipeline": [Pipeline],
    }

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        epsilon: Any = 1.0,
        accountant: BudgetAccountant | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.epsilon = epsilon
        self.accountant = accountant
        self.random_state = random_state

    @property
    def _model(self) -> SupervisedEstimator:
        model: SupervisedEstimator = self.pipeline.steps[-1][1]
        return model

    @property
    def _declared_width(self) -> int | None:
        first: PrivateEstimator = private_steps(self.pipeline)[0][1]
        return first._declared_width

    @property
    def _bounds(self) -> Any:
        return self._model._bounds

    @property
    def _target(self) -> Any:
        return self._model._target

    def _target_from_data(self, values: Any) -> Any:
        return self._model._target_from_data(values)

    @property
    def _unit(self) -> PrivacyUnit:
        return self._model._unit

    def _validate_params(self) -> None:
        super()._validate_params()
        for name, step in private_steps(self.pipeline):
            step._validate_params()
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

    _looks_at_n: ClassVar[bool] = False

    def _resolve_mechanism(self) -> Mechanism:
        return StepByStep()

    def shared(self) -> list[PrivateEstimator]:
        """Return the steps, not fitted, each with its share of epsilon."""
        whole = _shared(self.pipeline, self._budget().epsilon)
        return [step for _, step in private_steps(whole)]

    def _read(self, X: Any, y: Any, known: Any = None, groups: Any = None) -> FitInput:
        """Keep the records for the steps; domains that the first one cannot read are refused now.

        With declared domains no record can be refused, and a transformer declares none.
        """
        target, first = read_target(self, y), self.shared()[0]
        first._n_known = self._n_known
        if isinstance(first, SupervisedEstimator):
            with silence():
                first._read(X, target, groups=groups)
        return FitInput(None, People(X, target, groups, len(target)))

    def _prior(self, public: Any) -> PrivatePipeline:
        return self

    @property
    def _n_released(self) -> int:
        """The secret number of records, as the last step released it."""
        n: int = self.posterior_[-1]._n_released
        return n

    def _attach(self, public: Any, release: Release[Any]) -> Self:
        self.posterior_ = release.posterior
        self.schema_ = release.posterior[-1].schema_
        self.guarantee_ = release.guarantee
        return self

    def winner(self, ledger: BudgetAccountant | None) -> Pipeline:
        """Return the fitted pipeline; all of its steps carry the guarantee of the whole."""
        for _, step in private_steps(self.posterior_):
            step.set_params(accountant=ledger, random_state=None)
            step.guarantee_ = self.guarantee_
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


def as_one(model: Any) -> SupervisedEstimator:
    """Return a model or a pipeline as an estimator of one epsilon."""
    refuse_others(model)
    return PrivatePipeline(model) if isinstance(model, Pipeline) else model
