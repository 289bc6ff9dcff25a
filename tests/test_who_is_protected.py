"""Persons and secret numbers of records, through the estimators."""

import math

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    BudgetAccountant,
    BudgetError,
    Categories,
    DirichletMultinomial,
    Interval,
    PosteriorQuerySession,
    PrivateSearchCV,
    Schema,
    from_json,
    tree_augmented,
)
from dpbayes_sklearn.data.persons import COUNTED, PERSONS_STREAM, counted_records
from dpbayes_sklearn.model_selection.rehearsal import rehearsed
from dpbayes_sklearn.noise import Noise, made_by
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import SizePlan
from tests.visits import ADDED, BOTH, CLASSIFIER, PERSON, WHOM, labels, unit_of, visits


def models():
    yield BayesianNaiveBayes(**CLASSIFIER), visits()[1]
    yield BayesianNetworkClassifier(**CLASSIFIER), visits()[1]
    yield BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)), visits()[1]


@pytest.mark.parametrize("whom", WHOM, ids=str)
@pytest.mark.parametrize(("model", "y"), models(), ids=lambda x: type(x).__name__)
def test_a_fit_says_whom_it_protects_and_spends_epsilon(model, y, whom):
    X, _, who = visits()
    ledger = BudgetAccountant(epsilon=1)
    groups = labels(whom, who)
    model = clone(model)
    model.set_params(accountant=ledger, **whom).fit(X, y, groups=groups)
    unit = unit_of(whom)
    assert ledger.total().epsilon == model.guarantee_.epsilon == 1
    assert len(ledger) == 1 + unit.size_is_secret
    assert all(entry.label.endswith(unit.label) for entry in ledger)
    assert model.guarantee_.privacy_unit == unit
    assert unit.definition in str(model.guarantee_)
    assert str(unit) in model.guarantee_._repr_html_()
    public = unit.name == "person" and not unit.size_is_secret
    assert model.guarantee_.conditions == (COUNTED.format(3),) * public
    again = from_json(model.to_json())
    assert again.guarantee_ == model.guarantee_
    assert np.array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("model", [BetaBinomial(), DirichletMultinomial(categories=2)], ids=str)
@pytest.mark.parametrize("whom", WHOM, ids=str)
def test_one_variable(model, whom):
    _, y, who = visits()
    model = clone(model).set_params(inference="plug_in", random_state=0)  # which tells a public n
    model.set_params(**whom).fit(y, groups=labels(whom, who))
    concentration = model.posterior_.concentration
    counted = len(counted_records(who, 3)) if labels(whom, who) is not None else len(y)
    assert abs(concentration.sum() - 2 - counted) < 60
    assert (concentration.sum() - 2 == counted) == (not unit_of(whom).size_is_secret)
    assert from_json(model.to_json()).guarantee_ == model.guarantee_


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_number_that_missing_labels_change_is_public_or_secret(neighbours):
    x = np.array([0, 1] * 50)
    whole = np.repeat(np.arange(50), 2).astype(object)
    fewer = whole.copy()
    fewer[:2] = None
    whom = {"privacy_unit": PrivacyUnit("person", max_records=2, neighbours=neighbours)}
    whom["inference"] = "plug_in"  # which tells a public n
    fits = [BetaBinomial(**whom).fit(x, groups=labels) for labels in (whole, fewer)]
    numbers = [round(fit.posterior_.concentration.sum() - 2, 6) for fit in fits]
    stated = [COUNTED.format(2) in fit.guarantee_.conditions for fit in fits]
    assert all(stated) == (numbers == [100, 98]) == (neighbours == "replace")


def test_a_search_of_persons_and_merged_shards_say_that_the_number_is_public():
    X, y, who = visits()
    model = BayesianNaiveBayes(**CLASSIFIER, **PERSON)
    search = PrivateSearchCV(model, {"alpha": [1.0]}, random_state=0).fit(X, y, groups=who)
    assert COUNTED.format(3) in search.guarantee_.conditions
    model.set_params(temperature=1.0)
    model.fit_statistics(model.exact_statistics(X, y, groups=who))
    assert COUNTED.format(3) in model.guarantee_.conditions


def test_without_groups_the_number_of_records_is_promised():
    X, y, _ = visits()
    few = PrivacyUnit("person", max_records=3, by_construction=True)
    model = BayesianNaiveBayes(**CLASSIFIER, privacy_unit=few).fit(X, y)
    assert "no person has more than 3 of the records" in str(model.guarantee_)
    again = BayesianNaiveBayes.from_json(model.to_json())
    assert again.privacy_unit.by_construction
    assert few == PrivacyUnit("person", max_records=3)
    with pytest.raises(ValueError, match="by_construction"):
        PrivacyUnit("record", by_construction=True)


@pytest.mark.filterwarnings("ignore")
def test_forgotten_groups_are_refused_and_cost_nothing():
    X, y, who = visits()
    ledger = BudgetAccountant()
    model = BayesianNaiveBayes(**CLASSIFIER, **PERSON, accountant=ledger)
    columns = {f"x{j}": Interval(0, 1, bins=2) for j in range(X.shape[1])}
    public = Schema(columns, Categories([0, 1]))
    for attempt in (
        lambda: model.fit(X, y),
        lambda: model.partial_fit(X, y),
        lambda: clone(model).set_params(temperature=1).exact_statistics(X, y),
        lambda: PosteriorQuerySession(clone(model).set_params(mechanism="sampler"), X, y),
        lambda: Schema.learn(pd.DataFrame(X, columns=[*columns]), **PERSON, accountant=ledger),
        lambda: tree_augmented(X, y, public, epsilon=1.0, accountant=ledger, **PERSON),
        lambda: BayesianLinearRegression(
            bounds_X=(0, 1), bounds_y=(0, 1), accountant=ledger, **PERSON
        ).fit(X, y),
        lambda: GridSearchCV(model, {"alpha": [1.0, 2.0]}, cv=3).fit(X, y, groups=who),
    ):
        with pytest.raises(ValueError, match=r"(?s)set_fit_request"):
            attempt()
    assert len(ledger) == 0


@pytest.mark.parametrize("of", [np.asarray, pd.Series, list, lambda g: pd.DataFrame({"id": g})])
@pytest.mark.parametrize("kind", [int, str, float, object, "category"])
def test_labels_of_any_kind_choose_the_same_records(of, kind):
    _, _, who = visits()
    options = {"epsilon": np.inf, "temperature": 1, "random_state": 0}
    model = BayesianNaiveBayes(**options, **CLASSIFIER, **PERSON)
    X, y, _ = visits()
    labels = pd.Series(who).astype(kind)
    model.fit(X, y, groups=of(labels) if of is not pd.Series else labels)
    assert model.posterior_.released.n == len(counted_records(who, 3))
    kept = counted_records(who, 3, Noise.of(0, PERSONS_STREAM))
    assert np.array_equal(model.posterior_.released.tables[-1], np.bincount(y[kept]))


@pytest.mark.parametrize("shift", [0, 1, 4000])
def test_all_choices_of_the_records_of_a_person_are_alike(shift):
    who = np.roll(np.tile(np.arange(4000), 4), shift)
    kept = counted_records(who, 2, Noise.of(shift))
    assert np.array_equal(np.bincount(who[kept]), np.full(4000, 2))
    place = (kept // 4000)[np.argsort(who[kept], kind="stable")].reshape(4000, 2)
    pairs = np.bincount(4 * place[:, 0] + place[:, 1], minlength=16).reshape(4, 4)
    assert np.allclose(pairs[np.triu_indices(4, 1)] / 4000, 1 / 6, atol=0.02)


def test_keys_that_are_equal_are_drawn_again():
    who, keys = np.zeros(3), iter([bytes(24), bytes([7] + 7 * [0] + [5] + 7 * [0] + [6] + 7 * [0])])
    assert counted_records(who, 2, Noise(lambda size: next(keys))).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="repeating itself"):
        counted_records(who, 2, Noise(bytes))


def test_records_without_a_label_do_not_count():
    labels = np.array(["a", None, "b", np.nan, pd.NA, pd.NaT, "a"], dtype=object)
    assert counted_records(labels, 5).tolist() == [0, 2, 6]
    numbers = np.array([1.0, np.nan, 1.0])
    assert counted_records(numbers, 5).tolist() == [0, 2]
    dates = np.array(["2020-01-01", "NaT"], "M8[D]")
    assert counted_records(dates, 5).tolist() == [0]


@pytest.mark.parametrize(
    ("parameters", "groups", "message"),
    [
        (PERSON, [1, 2], "inconsistent numbers of samples"),
        (PERSON, np.full(600, np.nan), "must have labels"),
        (PERSON, np.ones((600, 2)), "one column"),
        ({}, np.ones(600), "set privacy_unit=PrivacyUnit"),
        (
            {"privacy_unit": PrivacyUnit("person", max_records=601)},
            None,
            "more than there are records",
        ),
        ({"privacy_unit": "person"}, None, "max_records=4"),
    ],
)
def test_bad_input_is_refused_before_the_charge(parameters, groups, message):
    X, y, _ = visits()
    ledger = BudgetAccountant()
    model = BayesianNaiveBayes(accountant=ledger, **CLASSIFIER, **parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, groups=groups)
    assert len(ledger) == 0


@pytest.mark.parametrize("mechanism", ["exponential", "hellinger", "local"])
def test_mechanisms_that_list_posteriors_need_a_public_number(mechanism):
    ledger = BudgetAccountant()
    model = BetaBinomial(mechanism=mechanism, accountant=ledger, **ADDED)
    with pytest.raises(ValueError, match="mechanism='geometric'"):
        model.fit([0, 1] * 20)
    assert len(ledger) == 0


def test_wrong_parameters_are_refused_before_a_secret_number_is_released():
    X, y, _ = visits()
    ledger = BudgetAccountant()
    model = BayesianNaiveBayes(alpha=-1.0, accountant=ledger, **CLASSIFIER, **ADDED)
    with pytest.raises(ValueError, match="alpha"):
        model.fit(X, y)
    small = BayesianNaiveBayes(1e-9, mechanism="sampler", accountant=ledger, **CLASSIFIER, **ADDED)
    with pytest.raises(ValueError, match="too small"):
        small.fit(X, y)
    assert len(ledger) == 0


def test_a_budget_for_the_number_alone_is_not_enough():
    X, y, _ = visits()
    ledger = BudgetAccountant(epsilon=0.5)
    with pytest.raises(BudgetError, match="Nothing was spent"):
        BayesianNaiveBayes(1.0, accountant=ledger, **CLASSIFIER, **ADDED).fit(X, y)
    assert len(ledger) == 0


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.exceptions.PrivacyLeakWarning")
def test_groups_are_routed_by_searches_and_pipelines():
    X, y, who = visits()
    ledger = BudgetAccountant()
    model = BayesianNaiveBayes(accountant=ledger, **CLASSIFIER, **PERSON)
    model.set_fit_request(groups=True)
    scores = cross_val_score(model, X, y, params={"groups": who}, cv=GroupKFold(3))
    assert len(scores) == len(ledger) == 3
    search = GridSearchCV(model, {"alpha": [0.5, 1.0]}, cv=GroupKFold(2)).fit(X, y, groups=who)
    assert len(ledger) == 3 + 5
    assert search.best_estimator_.guarantee_.conditions == (COUNTED.format(3),)
    piped = make_pipeline(FunctionTransformer(), model).fit(X, y, groups=who)
    assert piped[-1].guarantee_.conditions == (COUNTED.format(3),)
    assert {entry.label for entry in ledger} == {"BayesianNaiveBayes, laplace, person (3 records)"}


def test_batches_and_shards():
    X, y, who = visits()
    whom = BOTH
    model = BayesianNaiveBayes(temperature=1, **CLASSIFIER, **whom)
    half = int(np.searchsorted(who, who[300]))
    model.partial_fit(X[:half], y[:half], groups=who[:half])
    model.partial_fit(X[half:], y[half:], groups=who[half:])
    assert len(model.posterior_.released.size_laws) == 2
    with pytest.raises(ValueError, match="privacy_unit must be the same"):
        model.set_params(privacy_unit="record").partial_fit(X, y, groups=who)
    shard = BayesianNaiveBayes(temperature=1, **CLASSIFIER, **whom)
    fitted = shard.fit_statistics(shard.exact_statistics(X, y, groups=who))
    assert "at most 3" in str(fitted.guarantee_)


@pytest.mark.parametrize("whom", WHOM, ids=str)
def test_private_searches_and_sessions(whom):
    X, y, who = visits()
    groups = labels(whom, who)
    ledger = BudgetAccountant(epsilon=6)
    model = BayesianNaiveBayes(temperature=1, **CLASSIFIER, **whom)
    search = PrivateSearchCV(
        model, {"alpha": [0.5, 1.0]}, epsilon=3, runs_per_candidate=1, accountant=ledger
    ).fit(X, y, groups=groups)
    assert search.guarantee_.privacy_unit == model._unit
    assert len(ledger) == 1
    model.set_params(epsilon=0.5, mechanism="sampler")
    with PosteriorQuerySession(model, X, y, groups=groups, accountant=ledger) as session:
        session.query(lambda tables: tables[-1])
        opened = 0.02 if unit_of(whom).size_is_secret else 0.0
        assert session.spent == session.guarantee().epsilon == 0.5 + opened
    assert ledger.total().epsilon == 3.5 + opened


def test_a_search_holds_out_whole_persons():
    X, y, who = visits()
    search = PrivateSearchCV(BayesianNaiveBayes(**CLASSIFIER, **PERSON), {"alpha": [1.0]})
    split, _ = search._protected(search._records(X, y, reset=True), who)
    train = set(split.train[2].tolist())
    assert len(split.train[1]) + len(split.test[1]) == len(counted_records(who, 3))
    assert 0.6 < len(split.train[1]) / (len(split.train[1]) + len(split.test[1])) < 0.95
    assert len(train) + len({*who.tolist()} - train) == len({*who.tolist()})
    with pytest.raises(ValueError, match="give groups"):
        search.fit(X, y)
    with pytest.raises(ValueError, match="set privacy_unit of the estimator"):
        PrivateSearchCV(BayesianNaiveBayes(), {"privacy_unit": ["record"]}).fit(X, y)


def test_half_the_noise_if_records_are_n_changed():
    star = BayesianNaiveBayes(classes=[0, 1], bounds=([0] * 4, [1] * 4), n_bins=2, temperature=1)
    replaced = star.utility_bound(n=1000)
    added = star.set_params(**ADDED).utility_bound(n=1000)
    assert added == pytest.approx(replaced / 2 * 25 / 24, rel=0.01)
    star.set_params(**PERSON)
    assert star.utility_bound(n=1000) == pytest.approx(3 * replaced, rel=0.03)


# searches and what was learned before ------------------------------------------------------------


@pytest.mark.parametrize("whom", WHOM, ids=str)
def test_a_secret_split_is_drawn_from_the_source_of_the_noise(whom):
    X, y, who = visits()
    groups, drawn = (labels(whom, who)), []

    def source(size):
        drawn.append(size)
        keys = np.arange(size // 8, dtype=np.uint64)
        of_records = size == 8 * len(y)
        return (100 * 2**56 + keys if of_records else keys * (2**67 // size)).tobytes()

    search = PrivateSearchCV(BayesianNaiveBayes(**CLASSIFIER, **whom), {"alpha": [1.0]})
    records = search._records(X, y, reset=True)
    search.set_params(test_size=0.35)  # all coins of records are about 100/256
    with made_by(lambda _: Noise(source)):
        split, _ = search._protected(records, groups)
    assert (len(split.test[1]) == 0) == (groups is None)
    persons = 0 if groups is None else len(np.unique(groups))
    # those held out of a public number; else all, and nobody's
    asked = persons + 1 if unit_of(whom).size_is_secret else math.ceil(0.35 * persons)
    assert drawn == [8 * len(y), *([8 * asked] if persons else [])]


def test_a_rehearsal_does_not_release_the_number_of_records(monkeypatch):
    X, y, _ = visits()
    sizes, real = [], SizePlan.release

    def watched(self, *rest):
        sizes.append(real(self, *rest))
        return sizes[-1]

    monkeypatch.setattr(SizePlan, "release", watched)
    models = PrivateSearchCV(
        BayesianNaiveBayes(**CLASSIFIER, **ADDED), {"alpha": [1.0, 2.0]}
    )._models([{"alpha": 1.0}, {"alpha": 2.0}])
    rehearsed(models, X, y, None, "numbers")
    assert sizes == []
    models[0].fit(X, y)
    assert len(sizes) == 1


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("whom", [{}, {"privacy_unit": "feature"}, *WHOM], ids=str)
def test_what_was_learned_for_another_unit_is_named(whom, as_text):
    X, y, who = visits()
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    schema = Schema.learn(frame, 1.0, target=Categories([0, 1]), bins=2, verbose=False)
    schema = Schema.from_json(schema.to_json()) if as_text else schema
    model = BayesianNaiveBayes(schema=schema, **whom)
    model.fit(frame, y, groups=labels(whom, who))
    (learned,) = (c for c in model.guarantee_.conditions if "learned domains" in c)
    assert ("does not protect" in learned) == (whom in WHOM)
    assert ("all records of one person (at most 3)" in learned) == (labels(whom, who) is not None)


def test_a_tree_learned_for_another_unit_is_named():
    X, y, _ = visits()
    schema = Schema({str(j): Categories([0, 1]) for j in range(4)}, Categories([0, 1]))
    frame = pd.DataFrame(X.astype(int), columns=[*schema.columns])
    parents = tree_augmented(frame, y, epsilon=1.0, schema=schema)
    model = BayesianNetworkClassifier(parents=parents, schema=schema, **ADDED).fit(frame, y)
    assert "does not protect one record and the number of records" in str(model.guarantee_)


# no record at all --------------------------------------------------------------------------------


def empty_fits():
    two, none, numbers = np.zeros((0, 2)), np.zeros(0, int), np.zeros(0)
    frame = pd.DataFrame({"a": numbers, "b": np.zeros(0, object)})
    schema = Schema({"a": Interval(0, 1), "b": Categories(["x", "y"])}, Categories([0, 1]))
    for mechanism in ("laplace", "fourier", "sampler", "map", "gaussian", "auto"):
        options = {"mechanism": mechanism, "delta": 1e-6, **ADDED}
        yield BayesianNaiveBayes(**options, **CLASSIFIER), two, none
        yield BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), **options), two, numbers
    for inference in ("noise_aware", "adaptive"):
        yield BayesianNaiveBayes(inference=inference, **CLASSIFIER, **ADDED), two, none
    yield BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], **ADDED), two, none
    yield BayesianNaiveBayes(schema=schema, **ADDED), frame, none
    yield BayesianNaiveBayes(**CLASSIFIER, **ADDED), csr_matrix((0, 2)), none
    yield BayesianNetworkClassifier(**CLASSIFIER, **ADDED), two, none
    yield BetaBinomial(**ADDED), none, None
    yield DirichletMultinomial(categories=3, **ADDED), none, None


@pytest.mark.parametrize(("model", "X", "y"), empty_fits(), ids=lambda x: type(x).__name__)
def test_no_record_is_refused_only_where_the_number_is_public(model, X, y):
    ledger = BudgetAccountant(delta=1)
    assert clone(model).set_params(accountant=ledger).fit(X, y).guarantee_.epsilon == 1
    assert len(ledger) == 1 + (model._uses_n != "nowhere")
    with pytest.raises(ValueError, match="0 sample"):
        clone(model).set_params(privacy_unit="record").fit(X, y)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_search_of_hardly_any_records(n):
    X, y, _ = visits()
    model = BayesianNaiveBayes(**CLASSIFIER, **ADDED)
    for seed in range(3):
        search = PrivateSearchCV(model, {"alpha": [1.0]}, runs_per_candidate=2, random_state=seed)
        assert search.fit(X[:n], y[:n]).guarantee_.epsilon == 1
    with pytest.raises(ValueError):  # noqa: PT011, the words are those of scikit-learn
        PrivateSearchCV(
            model.set_params(privacy_unit="record"),
            {"alpha": [1.0]},
        ).fit(X[:0], y[:0])
