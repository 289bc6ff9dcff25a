"""Every estimator with every mechanism on small made-up data: what audits go through."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from dpbayes_sklearn.base.estimator import AnyEstimator
from dpbayes_sklearn.bayesian_network import BayesianNetworkClassifier
from dpbayes_sklearn.conjugate import BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.linear_model import BayesianLinearRegression, BayesianLogisticRegression
from dpbayes_sklearn.means import GammaExponential, NormalMean
from dpbayes_sklearn.mechanisms import Fourier, Laplace, Mechanism, resolve_mechanism
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes
from dpbayes_sklearn.schema import Categories

# The inferences of a model of counts that are tried with every mechanism.
_INFERENCES = ("plug_in", "noise_aware")
_DELTA = 1e-3  # It is below one over the number of records; only some mechanisms spend it.


class Example(NamedTuple):
    """An estimator whose domains are all declared, and records for it."""

    name: str
    estimator: AnyEstimator
    X: npt.NDArray[Any]
    y: npt.NDArray[Any] | None


def names_of(estimator: type[AnyEstimator]) -> set[str]:
    """Return the names of the mechanisms that an estimator takes."""
    names: set[str] = estimator._parameter_constraints["mechanism"][0].options
    return names


def every_case(n: int = 40, epsilon: float = 1.0, seed: int = 0) -> Iterator[Example]:
    """Yield every estimator with every mechanism and way of inference.

    >>> len([*every_case()])
    81
    """
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (n, 3)), rng.integers(0, 2, n)
    numbers = rng.uniform(-1, 3, (n, 2)), rng.uniform(0, 5, n)
    families: list[tuple[str, type[AnyEstimator], dict[str, Any], Any, Any]] = [
        ("counts", BayesianNaiveBayes, {"classes": [0, 1], "bounds": (0, 2), "n_bins": 3}, X, y),
        (
            "counts",
            BayesianNetworkClassifier,
            {"classes": [0, 1], "bounds": (0, 2), "n_bins": 3, "parents": _GRAPH},
            X,
            y,
        ),
        ("moments", BayesianLinearRegression, {"bounds_X": (-1, 3), "bounds_y": (0, 5)}, *numbers),
        ("simplex", BetaBinomial, {}, y.astype(bool), None),
        ("simplex", DirichletMultinomial, {"categories": Categories([0, 1, 2])}, X[:, 0], None),
    ]
    for kind, estimator, options, data, target in families:
        mechanisms: dict[str, str | Mechanism] = {m: m for m in names_of(estimator)}
        if kind == "counts":
            mechanisms["fourier with joint noise"] = Fourier(noise="joint")
        if estimator is BayesianNaiveBayes:
            mechanisms["laplace with joint noise"] = Laplace(noise="joint")
        for label, mechanism in sorted(mechanisms.items(), key=itemgetter(0)):
            for inference in _INFERENCES:
                given = {**options, "mechanism": mechanism, "inference": inference}
                if resolve_mechanism(mechanism).spends_delta:
                    given["delta"] = _DELTA
                name = f"{estimator.__name__}, {label}, {inference}"
                yield Example(name, estimator(epsilon=epsilon, **given), data, target)
    for means, options in (
        (NormalMean, {"bounds": (-1, 3)}),
        (GammaExponential, {"bounds": (-1, 3), "data": "laplace", "location": 1.0}),
    ):
        for mechanism in ("laplace", "sampler"):
            model = means(epsilon=epsilon, mechanism=mechanism, **options)
            yield Example(f"{means.__name__}, {mechanism}", model, numbers[0], None)
    for effects in ("smooth", "linear"):
        logistic = BayesianLogisticRegression(
            epsilon, bounds=(-1, 3), classes=[0, 1], effects=effects, intervals=effects == "linear"
        )
        yield Example(f"BayesianLogisticRegression, map, {effects}", logistic, numbers[0], y)
    draws = clone(logistic).set_params(mechanism="sampler", intervals=False)
    yield Example("BayesianLogisticRegression, sampler", draws, numbers[0], y)


# A network in which the class has a parent, and features depend on each other.
_GRAPH = {"class": [0], 1: ["class", 0], 2: [1]}
