"""Build the distributions and try them in empty environments, where nothing else is installed.

Run ``make test-wheel``, or ``python tests/wheel.py --python python3.11 python3.13``. Each
environment gets the sdist, or the wheel with or without the extra ``plot`` and the newest or the
oldest supported scikit-learn; then the demonstration, the commands and a fit are run from an empty
folder. ``--dist FOLDER`` tries distributions that were built before, for a Python elsewhere.
"""

from __future__ import annotations

import argparse
import configparser
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIT = """
import sys
from importlib.util import find_spec
import numpy as np, sklearn
import dpbayes_sklearn
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, from_json

assert "site-packages" in dpbayes_sklearn.__file__
assert find_spec("pandas") is None
rng = np.random.default_rng(0)
X = rng.random((500, 3))
model = BayesianNaiveBayes(1.0, bounds=(0, 1), classes=[0, 1]).fit(X, (X[:, 0] > 0.5).astype(int))
assert (from_json(model.to_json()).predict(X) == model.predict(X)).all()
BayesianLinearRegression(1.0, bounds_X=(0, 1), bounds_y=(0, 3)).fit(X, X.sum(axis=1)).predict(X)
print(sys.version.split()[0], "scikit-learn", sklearn.__version__,
      "with" if find_spec("matplotlib") else "without", "matplotlib: fits")
"""


def run(*command: object, cwd: Path | None = None) -> str:
    """Run a command, and return what it printed; an error is shown and ends the script."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> None:
    """Build sdist and wheel, and check what is in them."""
    for leftover in (ROOT / "build" / "lib", ROOT / "build" / "bdist.linux-x86_64"):
        shutil.rmtree(leftover, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    ours = {str(p.relative_to(ROOT)) for p in (ROOT / "dpbayes_sklearn").rglob("*.py")}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == ours | {"dpbayes_sklearn/py.typed"}, packed ^ ours
    with tarfile.open(sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    assert ours | {"LICENSE", "README.md", "setup.cfg", "pyproject.toml"} <= files
    print(f"{wheel.name}: {len(packed)} files; {sdist.name}: {len(files)} files")


def requirements(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what is installed, and for which scikit-learn."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    needed = setup["options"]["install_requires"].split()
    oldest = next(line.partition(">=")[2] for line in needed if line.startswith("scikit-learn"))
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    yield str(sdist), "scikit-learn"
    yield str(wheel), "scikit-learn"
    yield str(wheel), f"scikit-learn=={oldest}.*"
    yield f"{wheel}[plot]", "scikit-learn"


def has_wheel(python: Path, sklearn: str, folder: Path) -> bool:
    """Tell whether a scikit-learn was made for a Python: an old one is not, for a new Python."""
    command = [python, "-m", "pip", "download", "-qq", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*map(str, command), "-d", str(folder), sklearn], capture_output=True)
    return done.returncode == 0


def try_out(python: str, wheel: str, sklearn: str) -> None:
    """Install into an empty environment and use it from an empty folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(python, "-m", "venv", folder / "env")
        own = folder / "env" / "bin" / "python"
        if not has_wheel(own, sklearn, folder):
            print(f"{python}: there is no wheel of {sklearn} for it")
            return
        run(own, "-m", "pip", "install", "-qq", wheel, sklearn)
        work = folder / "work"
        work.mkdir()
        print(run(own, "-c", FIT, cwd=work), end="", flush=True)
        assert run(own.with_name("dpbayes"), cwd=work).startswith("usage: dpbayes")
        main = (own, "-m", "dpbayes_sklearn")
        told = run(*main, "demo", "--repeats", "1", "--epsilon", "1", cwd=work)
        assert ("No figures" in told) is not ("[plot]" in wheel), told
        (work / "data.csv").write_text("age,ill\n" + "30,no\n70,yes\n" * 200)
        run(*main, "schema", "data.csv", "--target", "ill", cwd=work)
        (work / "schema.json").write_text(
            '{"columns": {"age": {"low": 0, "high": 100}}, "target": {"values": ["no", "yes"]}}'
        )
        fit = ("fit", "data.csv", "--target", "ill", "--schema", "schema.json", "--epsilon", "1")
        run(*main, *fit, cwd=work)
        told = run(*main, "predict", "model.json", "data.csv", cwd=work)
        assert told.count("\n") == 401, told[:200]
        run(*main, "card", "model.json", "--out", "card.html", cwd=work)


def main() -> None:
    """Try every environment."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters")
    parser.add_argument("--dist", type=Path, help="folder with sdist and wheel; built by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.dist or Path(name)
        if options.dist is None:
            build(folder)
        for python in options.python:
            for what, sklearn in requirements(folder):
                try_out(python, what, sklearn)
    print("All environments work.")


if __name__ == "__main__":
    main()
