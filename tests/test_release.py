"""What is uploaded: one version everywhere, no placeholders, an import that needs no extra."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpbayes_sklearn

ROOT = Path(__file__).parents[1]
EXTRAS = ("arviz", "dask", "duckdb", "matplotlib", "pandas", "polars", "pyarrow", "tqdm")
FIT = """
import numpy as np
X = np.random.default_rng(0).random((200, 2))
y = (X[:, 0] > 0.5).astype(int)
model = dpbayes_sklearn.BayesianNaiveBayes(1.0, bounds=(0, 1), classes=[0, 1]).fit(X, y)
dpbayes_sklearn.from_json(model.to_json()).predict(X)
model.card("html")
line = dpbayes_sklearn.BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1))
print(line.fit(X, y).summary())
"""


def setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CITATION.cff", r"^version: (\S+)$"),
        (".zenodo.json", r'^  "version": "(\S+)",$'),
        ("conda/meta.yaml", r'^{% set version = "(\S+)" %}$'),
        ("CHANGELOG.md", r"^## (\S+) \(20\d\d-\d\d-\d\d\)$"),
    ],
)
def test_one_version_everywhere(file: str, pattern: str) -> None:
    found = re.search(pattern, (ROOT / file).read_text("utf-8"), re.M)
    assert found
    assert found[1] == dpbayes_sklearn.__version__


def test_the_recipe_needs_what_the_package_needs() -> None:
    recipe, options = (ROOT / "conda/meta.yaml").read_text("utf-8"), setup()["options"]
    run = re.search(r"  run:\n((?:    - .*\n)+)", recipe)
    assert run
    listed = {line.strip("- ").replace(" ", "") for line in run[1].splitlines()}
    assert listed == {*options["install_requires"].split(), f"python{options['python_requires']}"}
    assert setup()["options.entry_points"]["console_scripts"].strip() in recipe
    backend = re.search(
        r'requires = \["(setuptools)(>=\d+)"\]', (ROOT / "pyproject.toml").read_text()
    )
    assert backend
    assert f"    - {backend[1]} {backend[2]}\n" in recipe


@pytest.mark.parametrize(
    "file",
    ["setup.cfg", "CITATION.cff", "SECURITY.md", "conda/meta.yaml", ".zenodo.json",
     "CODE_OF_CONDUCT.md", "paper.md", "paper.bib"],
)  # fmt: skip
def test_nothing_is_left_to_fill_in(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    assert not re.search(r"TODO|FIXME|TBD|XXX|example\.(com|org)|your[-_ ]|<[a-z -]+>", text, re.I)


def test_workflows_call_what_there_is() -> None:
    """Targets of make, extras, test files and Pythons; and no secrets, which nothing here needs."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for path in [*(ROOT / ".github/workflows").glob("*.yml"), ROOT / ".readthedocs.yaml"]:
        text = path.read_text("utf-8")
        assert "secrets." not in text
        for target in re.findall(r"run: make (\S+)", text):
            assert re.search(rf"^{target}:.*##", makefile, re.M), target
        for extra in re.findall(r"\.\[(\w+)\]", text) + re.findall(
            r"^        - (\w+)$", text, re.M
        ):
            assert extra in setup()["options.extras_require"]
        for file in re.findall(r"tests/\w+\.py", text):
            assert (ROOT / file).is_file()
        for python in re.findall(r'python-version: "(\S+)"|python: "(\S+)"', text):
            assert f"Python :: {''.join(python)}" in setup()["metadata"]["classifiers"]


def test_the_paper_cites_what_its_bibliography_has() -> None:
    cited = {*re.findall(r"@(\w+)", (ROOT / "paper.md").read_text("utf-8"))}
    assert cited == {*re.findall(r"^@\w+{(\w+),$", (ROOT / "paper.bib").read_text("utf-8"), re.M)}


def run(code: str) -> str:
    """Return what another process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_the_import_loads_no_extra_that_sklearn_does_not_load() -> None:
    own, sklearns = (
        run(f"import sys, {name}; print(*[e for e in {EXTRAS} if e in sys.modules])").split()
        for name in ("dpbayes_sklearn", "sklearn.linear_model, sklearn.model_selection")
    )
    assert {*own} <= {*sklearns}


def test_fits_work_without_any_extra() -> None:
    without = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS}))"  # None: cannot be imported
    assert "Linear regression" in run(f"{without}; import dpbayes_sklearn{FIT}")
