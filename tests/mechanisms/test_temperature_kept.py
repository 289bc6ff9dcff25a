"""What a model with a learned temperature keeps: the release, and nothing of the records."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

from benchmarks.audit.tools import replay
from benchmarks.audit.tools.replaying import DRAWS
from dpbayes_sklearn import BayesianNaiveBayes, BayesianNetworkClassifier, from_json
from dpbayes_sklearn.audit import leaks
from dpbayes_sklearn.counts import plans
from dpbayes_sklearn.counts.adaptive import AdaptivePosterior
from dpbayes_sklearn.counts.posterior import TemperedPosterior
from dpbayes_sklearn.counts.temperature import TEMPERINGS, LossRecords
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.noise import Noise


def labelled(n: int, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return features that all say the same, so that naive Bayes is too sure."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    seen = np.where(rng.random(n) < 0.75, y, 1 - y)
    return np.repeat(seen[:, None], d, axis=1).astype(float), y


def classifier(**options: Any) -> BayesianNaiveBayes:
    options = {"epsilon": 1.0, "bounds": (0, 1), "n_bins": 2, "classes": [0, 1]} | options
    return BayesianNaiveBayes(**options)


def fitted(**options: Any) -> tuple[BayesianNaiveBayes, np.ndarray, np.ndarray]:
    X, y = labelled(1500, seed=4)
    return classifier(random_state=0, **options).fit(X, y), X, y


@pytest.mark.parametrize("mechanism", ["laplace", "fourier", "sampler", "map"])
def test_json_and_pickle_keep_the_model(mechanism: str) -> None:
    model, X, _ = fitted(mechanism=mechanism)
    for other in (from_json(model.to_json()), pickle.loads(pickle.dumps(model))):
        assert other.posterior_.tempering == model.posterior_.tempering
        assert other.posterior_.n == 1500
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(other.posterior_.weights, model.posterior_.weights)
        assert other.to_json() == model.to_json()


def test_a_released_posterior_of_either_kind_is_written() -> None:
    model, _, _ = fitted()
    assert isinstance(model.posterior_, TemperedPosterior)
    assert isinstance(model.posterior_.posterior, AdaptivePosterior)
    plain, X, _ = fitted(temperature=1.0)
    assert isinstance(plain.posterior_, AdaptivePosterior)
    np.testing.assert_array_equal(
        from_json(plain.to_json()).predict_proba(X), plain.predict_proba(X)
    )


def _tempered(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["fitted"]["posterior_"]
    return found


WRONG: list[tuple[tuple[str, ...], Any]] = [
    (("tempering", "temperature"), 1.5),
    (("tempering", "temperature"), -0.1),
    (("tempering", "temperature"), "auto"),
    (("tempering", "temperature"), None),
    (("tempering", "emphasis"), 3.0),
    (("tempering", "emphasis"), [0]),
    (("tempering",), {}),
    (("n",), 0),
    (("n",), 1.5),
    (("n",), "1500"),
    (("posterior",), None),
    (("posterior", "ordered"), [True]),
    (("posterior", "ordered"), [0, 1, 0, 1]),
    (("posterior", "ordered"), "no"),
    (("posterior", "alphas"), []),
    (("posterior", "released", "laws"), []),
    (("posterior", "released", "n"), -4),
]


@pytest.mark.parametrize(("path", "value"), WRONG, ids=str)
def test_malformed_json_is_refused(path: tuple[str, ...], value: Any) -> None:
    document = json.loads(fitted()[0].to_json())
    part = _tempered(document)
    for name in path[:-1]:
        part = part[name]
    assert path[-1] in part
    part[path[-1]] = value
    with pytest.raises(ValueError, match=r"posterior_|it "):
        from_json(json.dumps(document))


def test_a_temperature_of_a_temperature_is_refused() -> None:
    document = json.loads(fitted()[0].to_json())
    part = _tempered(document)
    part["posterior"] = dict(part)
    with pytest.raises(ValueError, match="posterior"):
        from_json(json.dumps(document))


def test_nothing_of_the_records_survives_a_fit() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((1500, 3)), rng.integers(0, 2, 1500)
    model = classifier(n_bins=4, random_state=None).fit(X, y)
    assert isinstance(model.posterior_, TemperedPosterior)
    encoder = Encoder([*model.schema_.columns.values()])
    records = LossRecords(encoder, model.schema_.classes, LocalRecords([(Table(X), y)]))
    sums = records.loss_sums(model.posterior_.posterior).sums
    secrets = {"first column": X[:, 0], "a record": X[7], "classes": y, "losses": sums}
    assert leaks(model, secrets) == []
    assert leaks(model.posterior_, secrets) == []


@pytest.mark.parametrize("estimator", [BayesianNaiveBayes, BayesianNetworkClassifier])
@pytest.mark.parametrize("mechanism", ["laplace", "fourier", "sampler"])
def test_replay_finds_nothing_but_the_draws(estimator: Any, mechanism: str) -> None:
    X, y = labelled(700)
    X2, y2 = X.copy(), y.copy()
    X2[0], y2[0] = [np.nan, 1e308, -5.0], 1 - y[0]
    model = estimator(bounds=(0, 1), n_bins=2, classes=[0, 1], mechanism=mechanism)
    for options in ({}, {"freeze": DRAWS}):
        found = replay(model, X, y, X2, y2, **options)
        assert found.divergences == ()
        assert found.epsilon == 1.0
    assert found.calls[-1] == "choose"


def test_replay_notices_a_temperature_that_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        plans,
        "tempering_weights",
        lambda sums, share, unit: sums.sums[None].astype(np.uint64),
    )
    monkeypatch.setattr(Noise, "choose", lambda self, weights: weights[0] % len(TEMPERINGS))
    X, y = labelled(700)
    X2, y2 = X.copy(), y.copy()
    X2[0], y2[0] = 1 - X[0], 1 - y[0]
    frozen = tuple((owner, name) for owner, name in DRAWS if name != "choose")
    model = classifier(random_state=0)  # by chance both may have the same temperature
    assert replay(model, X, y, X2, y2, freeze=frozen).divergences
