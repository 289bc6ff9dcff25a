"""The page docs/getting_started.md, followed to the letter with a CSV file of one's own."""

from __future__ import annotations

import csv
import random
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, BudgetError, Schema, from_json

PAGE = Path(__file__).parents[1] / "docs" / "getting_started.md"
MAKES_A_CSV = "to_csv("


def steps() -> list[str]:
    """Return the page's code, without the block for people who have no file."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    return [block for block in blocks if MAKES_A_CSV not in block]


def write_patients(path: Path) -> None:
    """Write the table of a careless clinic: gaps, typing errors, a value that nobody declared."""
    rng = random.Random(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "age", "sex", "smoker", "blood_pressure", "visits", "readmitted"])
        rows.writerow(["Z. Odd", 1e9, "?", "sometimes", "n/a", -3, "perhaps"])
        for i in range(3000):
            age, smokes, visits = rng.randint(18, 95), rng.random() < 0.3, rng.randint(0, 5)
            smoker = "" if i % 50 == 0 else "yes" if smokes else "no"
            pressure = "" if i % 70 == 0 else round(rng.gauss(105 + 0.4 * age + 6 * smokes, 10))
            ill = age + 15 * visits + 20 * smokes + rng.gauss(0, 15) > 110
            sex = rng.choice("fm")
            rows.writerow([f"P. {i}", age, sex, smoker, pressure, visits, ("no", "yes")[ill]])


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the page as one script beside the file; return the folder and what was printed."""
    folder = tmp_path_factory.mktemp("stranger")
    write_patients(folder / "patients.csv")
    (folder / "page.py").write_text("\n".join(steps()), encoding="utf-8")
    command = [sys.executable, "-W", "error", "page.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_the_page_has_all_its_steps():
    assert len(steps()) == 8
    assert any("guarantee_" in step for step in steps())


def without_noise(line: str) -> str:
    """Blank the figures of a prediction and of what was learned: they differ in every release.

    The odd row of the file makes numbers of its integers.
    """
    line = re.sub(r"  # (integers; .*|numbers)$", "", line)
    noisy = any(word in line for word in ("±", "probability", "(learned)"))
    return re.sub(r"-?\d[\d.]*(e[+-]\d+)?", "#", line) if noisy else line


def test_prints_what_the_page_shows(walked):
    _, printed = walked
    shown = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)[1:]
    assert len(shown) == 6
    assert [without_noise(line) for line in printed.splitlines()] == [
        without_noise(line) for block in shown for line in block.splitlines()
    ]


def test_promises_without_conditions(walked):
    folder, printed = walked
    assert "epsilon = 1 under the map mechanism" in printed
    model = from_json((folder / "model.json").read_text())
    assert model.guarantee_.conditions == ()
    assert model.guarantee_.epsilon == 1.0


def test_learns_something(walked):
    folder, _ = walked
    model = from_json((folder / "model.json").read_text())
    names = [*Schema.from_json((folder / "schema.json").read_text()).columns]
    well, ill = [20, "f", "no", 110, 0], [94, "m", "yes", 150, 5]
    chances = model.predict_proba(pd.DataFrame([well, ill], columns=names))[:, 1]
    assert chances[0] < 0.2
    assert chances[1] > 0.8


def test_the_ledger_outlives_the_script_and_refuses_more(walked):
    folder, _ = walked
    ledger = BudgetAccountant(path=folder / "patients.sqlite")
    assert len(ledger) == 2
    assert ledger.remaining().epsilon == 0.0
    model = BayesianNaiveBayes(0.1, classes=[0, 1], bounds=(0, 1), accountant=ledger)
    with pytest.raises(BudgetError):
        model.fit([[0], [1]], [0, 1])


def test_nothing_of_the_rows_is_in_the_published_file(walked):
    folder, _ = walked
    published = (folder / "model.json").read_bytes()
    assert b"P. 17" in (folder / "patients.csv").read_bytes()
    assert b"P. 17" not in published
    assert b"sometimes" not in published
    assert len(published) < 50_000
