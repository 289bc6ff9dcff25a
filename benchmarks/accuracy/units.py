"""Who is protected, and what it costs: records or persons, replaced or added and removed.

1. Accuracy and log loss of naive Bayes on six public tables, and R² of the regression on the four
   tables that nothing was chosen on, with default parameters at equal epsilon: neighbours that
   replace a record against neighbours that add or remove one. 0.3 of the records are left out.
2. The same for naive Bayes with bins that `Schema.learn` finds with a fifth of epsilon, on tables
   that nothing was chosen on.
3. Simulated visits: 800 persons with one to twelve records each, of which a person's records
   have much in common. The promise for a person, by how many of the records count, beside the
   wrong use of a promise for a record, and the epsilon that this one means for a person.
4. ``GridSearchCV`` with ``groups`` over the visits, and what its ledger shows.

Run ``python -m benchmarks.accuracy.units [--repeats 10] [--only tables,learned]``; it prints
Markdown. ``make bench-data`` installs the tables.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import sklearn
from joblib import Parallel, delayed
from sklearn.model_selection import GridSearchCV, GroupKFold

from benchmarks.accuracy.defaults import score_of
from benchmarks.accuracy.regression import score as regression_score
from benchmarks.accuracy.unknown_ranges import CLASSIFIED, Problem, halves, learn
from benchmarks.data.regression import REPORTED_ON
from benchmarks.data.tables import PUBLIC, table_split
from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, Categories
from dpbayes_sklearn.privacy.budget import PrivacyUnit

EPSILONS = (0.1, 0.3, 1.0)
KINDS = ("replace", "add_remove")
PERSONS, MOST, FEATURES = 800, 12, 20
DECLARED: dict[str, Any] = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}


def on_table(name: str, seed: int, epsilon: float, neighbours: str) -> tuple[float, float]:
    """Return accuracy and log loss on one split."""
    X, y, test_X, test_y, declared = table_split(name, seed)
    y, test_y = (np.asarray(labels).astype(str) for labels in (y, test_y))
    model = BayesianNaiveBayes(
        epsilon, privacy_unit=PrivacyUnit("record", neighbours=neighbours), **declared
    ).fit(X, y)
    found = score_of(model.predict_proba(test_X), model.classes_, test_y)
    return found.accuracy, found.loss


def on_learned(seed: int, problem: Problem, epsilon: float, neighbours: str) -> tuple[float, float]:
    """Return accuracy and log loss on one split, with learned bins."""
    X, y = problem.X, np.asarray(problem.y)
    train, test = halves(len(y), seed)
    domains, target = problem.declared.columns, problem.declared.target
    known = {name: domain for name, domain in domains.items() if isinstance(domain, Categories)}
    whom: dict[str, Any] = {"privacy_unit": PrivacyUnit("record", neighbours=neighbours)}
    schema = learn(X.iloc[train], epsilon / 5, columns=known, target=target, **whom)
    if schema is None:
        return np.nan, np.nan
    model = BayesianNaiveBayes(0.8 * epsilon, schema=schema, **whom).fit(X.iloc[train], y[train])
    found = score_of(model.predict_proba(X.iloc[test]), model.classes_, y[test])
    return found.accuracy, found.loss


def visits(seed: int, persons: int = PERSONS) -> tuple[Any, Any, Any]:
    """Return answers, outcomes and persons of simulated visits."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(persons), rng.integers(1, MOST + 1, persons))
    ill = rng.random(persons) < 0.4
    usual = rng.random((persons, FEATURES)) < 0.25 + 0.3 * ill[:, None]
    today = rng.random((len(who), FEATURES)) < 0.25 + 0.3 * ill[who, None]
    same = rng.random((len(who), FEATURES)) < 0.5  # half of the answers are those of last time
    return np.where(same, usual[who], today).astype(float), ill[who].astype(int), who


def on_visits(seed: int, epsilon: float, most: int | None, neighbours: str) -> tuple[float, float]:
    """Return accuracy and log loss on visits of other persons."""
    X, y, who = visits(seed)
    test_X, test_y, _ = visits(seed + 1000)
    model = BayesianNaiveBayes(
        epsilon, privacy_unit=PrivacyUnit("record", neighbours=neighbours), **DECLARED
    )
    if most is None:
        model.fit(X, y)
    else:
        model.set_params(
            privacy_unit=PrivacyUnit("person", max_records=most, neighbours=neighbours)
        ).fit(X, y, groups=who)
    found = score_of(model.predict_proba(test_X), model.classes_, test_y)
    return found.accuracy, found.loss


def averaged(jobs: int, repeats: int, function: Any, *arguments: Any) -> Any:
    """Average over seeds, which come second among the arguments of ``function``, or first."""
    return np.mean(
        Parallel(jobs)(delayed(function)(seed, *arguments) for seed in range(repeats)), 0
    )


def tables(repeats: int, jobs: int) -> None:
    print("\n| table | ε | replace: accuracy / log loss | add or remove |\n|---|---|---|---|")
    for name in PUBLIC:
        for epsilon in EPSILONS:
            cells = [
                averaged(jobs, repeats, lambda s, n, *a: on_table(n, s, *a), name, epsilon, kind)
                for kind in KINDS
            ]
            shown = " | ".join(f"{accuracy:.3f} / {loss:.3f}" for accuracy, loss in cells)
            print(f"| {name} | {epsilon:g} | {shown} |", flush=True)


def learned(repeats: int, jobs: int) -> None:
    print("\n| table | ε | replace: accuracy / log loss | add or remove |\n|---|---|---|---|")
    for name in ("contraceptive", "german", "penbased", "ring", "satimage"):
        problem = CLASSIFIED[name]()
        for epsilon in EPSILONS:
            cells = [averaged(jobs, repeats, on_learned, problem, epsilon, kind) for kind in KINDS]
            text = f"{name} | {epsilon:g} | " + " | ".join(f"{a:.3f} / {b:.3f}" for a, b in cells)
            print(f"| {text.replace('nan / nan', 'refused')} |", flush=True)


def regressions(repeats: int, jobs: int) -> None:
    print("\n| table | ε | replace: R² | add or remove |\n|---|---|---|---|")
    for name, load in REPORTED_ON.items():
        data = load()
        for epsilon in EPSILONS:
            cells = [
                averaged(
                    jobs,
                    repeats,
                    lambda s, d, o: regression_score(d, o, s)[0],
                    data,
                    {"epsilon": epsilon, "privacy_unit": PrivacyUnit(neighbours=kind)},
                )
                for kind in KINDS
            ]
            print(f"| {name} | {epsilon:g} | {cells[0]:.3f} | {cells[1]:.3f} |", flush=True)


def persons(repeats: int, jobs: int) -> None:
    print("\n| promise | neighbours | ε | ε of a person | accuracy / log loss |")
    print("|---|---|---|---|---|")
    for epsilon in EPSILONS:
        for most in (None, 1, 3, 6, MOST):
            for kind in KINDS:
                accuracy, loss = averaged(jobs, repeats, on_visits, epsilon, most, kind)
                what = "a record (wrong)" if most is None else f"a person (k = {most})"
                real = epsilon * (MOST if most is None else 1)
                print(f"| {what} | {kind} | {epsilon:g} | {real:g} | {accuracy:.3f} / {loss:.3f} |")


def search() -> None:
    X, y, who = visits(0, persons=1_000)
    ledger = BudgetAccountant()
    person = {"privacy_unit": PrivacyUnit("person", max_records=6, by_construction=True)}
    model = BayesianNaiveBayes(0.5, accountant=ledger, temperature=1, **DECLARED, **person)
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scores of private data are for this benchmark only
        model.set_fit_request(groups=True)
        grid = GridSearchCV(model, {"alpha": [0.5, 5.0]}, cv=GroupKFold(3))
        grid.fit(X, y, groups=who)
    labels = {entry.label for entry in ledger}
    print(f"\nGridSearchCV: {len(ledger)} fits, {ledger.total().epsilon:g} spent, {labels}.")
    print(f"Guarantee of the selected model: {grid.best_estimator_.guarantee_}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="tables,learned,regressions,visits")
    options = parser.parse_args()
    if "tables" in options.only:
        tables(options.repeats, options.jobs)
    if "learned" in options.only:
        learned(options.repeats, options.jobs)
    if "regressions" in options.only:
        regressions(options.repeats, options.jobs)
    if "visits" in options.only:
        persons(options.repeats, options.jobs)
        search()


if __name__ == "__main__":
    main()
