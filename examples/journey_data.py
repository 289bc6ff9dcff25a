"""Simulated files of the three journeys: visits of a hospital, a survey of wages, baskets."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd


def visits(n: int = 9000) -> Path:
    """Write ``visits.csv`` and ``later.csv``, of other patients, and return their folder.

    Several rows a patient, dates, notes with line breaks, typos, and rows without an outcome.
    """
    rng = np.random.default_rng(7)
    patient, age = rng.integers(0, n // 2, n), rng.integers(18, 95, n // 2)
    weak, day = rng.random(n // 2) < 0.4, rng.integers(0, 730, n)
    odds = age[patient] / 20 + 1.5 * weak[patient] - 4 - 0.001 * day
    back = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no").astype(object)
    back[rng.random(n) < 0.1] = None
    ward = np.where(weak[patient], "heart", rng.choice(["bone", "lung"], n)).astype(object)
    ward[rng.random(n) < 0.02] = "hart"
    table = pd.DataFrame(
        {
            "patient": patient,
            "age": np.where(rng.random(n) < 0.01, 999, age[patient]),
            "admitted": pd.Timestamp("2023-01-01") + pd.to_timedelta(day, unit="D"),
            "ward": ward,
            "note": "walks with a stick,\nlives alone",
            "back": back,
        }
    )
    return _written(visits=table[patient % 3 > 0], later=table[patient % 3 == 0])


def wages(n: int = 27_000) -> Path:
    """Write ``wages.csv`` and ``others.csv``: wage per hour by schooling, experience and region.

    One in ten did not say what they earn.
    """
    rng = np.random.default_rng(8)
    school, experience = rng.integers(8, 19, n), rng.integers(0, 45, n)
    region = rng.choice(["city", "country"], n)
    mean = 1.3 * school + 0.15 * experience + 2 * (region == "city")
    wage = np.maximum(mean * rng.lognormal(0, 0.25, n), 3).round(2)
    table = pd.DataFrame(
        {"school": school, "experience": experience, "region": region, "wage": wage}
    )
    table.loc[rng.random(n) < 0.1, "wage"] = np.nan
    return _written(wages=table[:18_000], others=table[18_000:])


def baskets(n: int = 6000) -> Path:
    """Write ``baskets.csv`` and ``more.csv``: which of 300 items were bought, with a child or not.

    Cells are separated by semicolons.
    """
    rng = np.random.default_rng(9)
    rate = rng.beta(0.6, 5, 300)
    with_child = np.minimum(rate * rng.lognormal(0.3, 0.5, 300), 0.8)
    child = rng.random(n) < 0.35
    items = rng.random((n, 300)) < np.where(child[:, None], with_child, rate)
    table = pd.DataFrame(items.astype(int), columns=[f"item {j}" for j in range(300)])
    table["child"] = np.where(child, "yes", "no")
    return _written(";", baskets=table[:4000], more=table[4000:])


def _written(sep: str = ",", **tables: pd.DataFrame) -> Path:
    folder = Path(tempfile.mkdtemp())
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, sep=sep)
    return folder


def shell(commands: str, folder: Path) -> None:
    """Run lines that begin with ``dpbayes`` in a folder, and print what they print."""
    for line in commands.strip().replace("\\\n", " ").splitlines():
        _, *arguments = shlex.split(line)
        program = [sys.executable, "-m", "dpbayes_sklearn", *arguments]
        done = subprocess.run(program, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        print(done.stdout)
