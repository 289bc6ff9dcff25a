"""What BayesianNaiveBayes promises, on which conditions, and that nothing else leaves a fit."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from dpbayes_sklearn import (
    BayesianNaiveBayes,
    Categories,
    Interval,
    PrivacyLeakWarning,
    Schema,
    mechanisms,
)
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Release, boundary

MECHANISMS = ["laplace", "fourier", "sampler", "map"]
CLASSES_READ = "classes were read from the data"
BOUNDS_READ = "bounds of the features were read from the data"


def records(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, (n, d)), rng.integers(0, 2, n)


def declared(**params):
    defaults = {"inference": "plug_in", "classes": [0, 1], "bounds": (0, 1), "n_bins": 2}
    return BayesianNaiveBayes(**{**defaults, **params})


def messages(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all(w.category is PrivacyLeakWarning for w in caught)
    assert all(w.filename == __file__ for w in caught)  # it points at the call of fit
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(
    ("params", "leaks"),
    [
        ({"classes": None, "bounds": None}, [BOUNDS_READ, CLASSES_READ]),
        ({"classes": [0, 1], "bounds": None}, [BOUNDS_READ]),
        ({"classes": None, "bounds": (0, 1)}, [CLASSES_READ]),
        ({"classes": [0, 1], "bounds": (0, 1)}, []),
    ],
)
def test_what_is_not_declared_is_announced_and_recorded(params, leaks):
    model = declared(**params)
    texts = messages(model, *records())
    assert len(texts) == len(leaks) == len(model.guarantee_.conditions)
    for text, condition, leak in zip(texts, model.guarantee_.conditions, leaks, strict=True):
        assert text.startswith(leak)
        assert condition.startswith(leak)
        assert "set classes" in text if leak == CLASSES_READ else "set schema or bounds" in text


def test_columns_that_a_schema_does_not_declare_are_not_read():
    pd = pytest.importorskip("pandas")
    X, y = records(d=2)
    frame = pd.DataFrame(X, columns=["a", "b"])
    half = Schema({"a": Interval(0, 1)}, target=Categories([0, 1]))
    model = BayesianNaiveBayes(schema=half)
    assert messages(model, frame, y) == []
    assert [*model.fit(frame, y).schema_.columns] == ["a"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_guarantee_says_what_was_asked(mechanism):
    model = declared(epsilon=0.25, mechanism=mechanism).fit(*records())
    guarantee = model.guarantee_
    assert (guarantee.epsilon, guarantee.delta, guarantee.unit) == (0.25, 0.0, "record")
    assert (guarantee.mechanism, guarantee.conditions) == (mechanism, ())
    weaker = declared(mechanism=mechanism, privacy_unit="feature").fit(*records())
    assert weaker.guarantee_.unit == "feature"
    assert "feature value" in str(weaker.guarantee_)


def test_an_infinite_epsilon_is_called_what_it_is():
    model = declared(epsilon=float("inf")).fit(*records())
    assert "Not private" in str(model.guarantee_)


def test_a_seed_is_recorded_and_repeats():
    X, y = records()
    one, other = (declared(random_state=3).fit(X, y) for _ in range(2))
    assert_array_equal(one.predict_log_proba(X), other.predict_log_proba(X))
    assert any("random_state" in c for c in one.guarantee_.conditions)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_without_a_seed_no_two_fits_are_alike(mechanism):
    X, y = records()
    logs = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002  no generator of numpy has a say
        model = declared(mechanism=mechanism).fit(X, y)
        assert model.guarantee_.conditions == ()
        logs.append(model.predict_log_proba(X))
    assert (logs[0] != logs[1]).any()


@pytest.mark.parametrize(
    "mechanism", [*MECHANISMS, mechanisms.Sampler(n_samples=2), mechanisms.MAP(score="posterior")]
)
def test_fit_changes_no_parameter(mechanism):
    model = declared(mechanism=mechanism, alpha=np.ones(4), bounds=(np.zeros(4), np.ones(4)))
    before = model.get_params()
    pickled = pickle.dumps(before)
    model.fit(*records())
    after = model.get_params()
    assert all(after[name] is value for name, value in before.items())
    assert pickle.dumps(after) == pickled


def test_the_notebook_shows_the_guarantee():
    model = declared(epsilon=0.75)
    assert "0.75</b>" not in model._repr_mimebundle_()["text/html"]
    model.fit(*records())
    card = model.guarantee_._repr_html_()
    assert "0.75</b>" in card
    assert card in model._repr_mimebundle_()["text/html"]
    assert card in model._repr_html_()


def test_the_text_of_a_fitted_model_has_no_data():
    assert repr(declared().fit(*records())) == repr(declared())


# Replay: what the choke point let through on D is frozen and handed out on a neighbour D'. If
# the two fitted objects differ in one byte, something else got out of the data.

cells = st.sampled_from([0.0, 1.0, 0.5, -3.0, 1e308, -np.inf, np.inf, np.nan, -0.0])
rows = st.tuples(cells, cells, cells, st.sampled_from([0, 1, 2, 9]))
tables = st.sampled_from([1, 2, 6]).flatmap(lambda n: st.lists(rows, min_size=n, max_size=n))


def split(table):
    return np.array(table)[:, :3], np.array(table)[:, 3].astype(int)


@pytest.mark.parametrize("unit", ["record", "feature"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@settings(max_examples=15)
@given(table=tables, other=rows, at=st.integers(0, 5), feature=st.integers(0, 2))
def test_nothing_but_the_release_leaves_a_fit(mechanism, unit, table, other, at, feature):
    frozen, seen = [], []

    def replay(release, plan, statistics, noise):
        seen.append((statistics.counts, plan.cost))
        if not frozen:
            frozen.append(release(plan, statistics, noise))
        return frozen[0]

    changed, at = list(table), at % len(table)
    if unit == "feature":
        other = (*table[at][:feature], other[feature], *table[at][feature + 1 :])
    changed[at] = other
    params = {"mechanism": mechanism, "privacy_unit": unit, "classes": [0, 1, 2], "n_bins": 3}
    with boundary(replay):
        one, two = (pickle.dumps(declared(**params).fit(*split(t))) for t in (table, changed))
    assert one == two
    (first, budget), (second, other_budget) = seen  # one release each
    assert budget == other_budget
    moved = sum(np.abs(a - b).sum() for a, b in zip(first.tables, second.tables, strict=True))
    assert moved <= first.sensitivity(PrivacyUnit(unit))


def test_replay_sees_a_leak():
    """An attribute that holds an exact count would be caught."""

    class Leaky(BayesianNaiveBayes):
        def fit(self, X, y):
            super().fit(X, y)
            self.positives_ = int(y.sum())
            return self

    X, y = records()
    fitted = declared().fit(X, y)
    frozen = Release(fitted.posterior_, fitted.guarantee_)
    with boundary(lambda *args: frozen):
        y_other = np.where(np.arange(len(y)) == 0, 1 - y, y)
        pickles = {
            cls: [
                pickle.dumps(vars(cls(classes=[0, 1], bounds=(0, 1)).fit(X, labels)))
                for labels in (y, y_other)
            ]
            for cls in (BayesianNaiveBayes, Leaky)
        }
    assert len(set(pickles[BayesianNaiveBayes])) == 1
    assert len(set(pickles[Leaky])) == 2
