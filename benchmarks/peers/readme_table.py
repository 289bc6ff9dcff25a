"""The measured table of the README: this library beside diffprivlib and InterpretML's DP-EBM.

Each of them runs in an environment of its own, made in the user's cache; diffprivlib in two, with
the last scikit-learn that it works with and with the newest. Takes about five minutes.

Run ``python -m benchmarks.peers.readme_table``. It writes the figures to
``benchmarks/results/peers.json`` and the table made of them into the README, where the
documentation includes it too.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.peers.environment import DIFFPRIVLIB, INTERPRET, diffprivlib_python, environment

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
README = ROOT / "README.md"
BEGIN, END = "<!-- peers: begin -->\n", "<!-- peers: end -->\n"
TASKS = {
    "breast cancer": "accuracy, breast cancer (379 records, 10 features)",
    "digits": "accuracy, digits (1,198 records, 64 features, 10 classes)",
    "diabetes": "R², diabetes (294 records, 10 features)",
    "simulated": "R², simulated (13,333 records, 10 features)",
}


def measured(python: Path | str, library: str) -> dict[str, Any]:
    command = [str(python), "-m", "benchmarks.peers.measurements", library]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def imports_with_newest(ours: dict[str, Any]) -> bool:
    """Tell whether diffprivlib can be imported beside the scikit-learn that runs this library."""
    version = ours["scikit-learn"]
    python = environment(f"newest-{version}", DIFFPRIVLIB, f"scikit-learn=={version}")
    command = [str(python), "-c", "import diffprivlib.models"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def render(results: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    ours, *peers = (results[name] for name in ("dpbayes_sklearn", "diffprivlib", "interpret"))
    everybody = [ours, *peers]

    def line(what: str, without: str, *cells: str) -> str:
        return "| " + " | ".join((what, without, *cells)) + " |"

    versions = (f"diffprivlib {peers[0]['version']}", f"DP-EBM (InterpretML {peers[1]['version']})")
    rows = [line("ε = 1", "no privacy", "dpbayes_sklearn", *versions), "|---" * 5 + "|"]
    for task, label in TASKS.items():
        scores = [library["scores"].get(task) for library in everybody]
        best = max(score for score in scores if score is not None)
        cells = [f"**{_score(s)}**" if s == best else _score(s) for s in scores]
        rows.append(line(label, _score(ours["scores without privacy"][task]), *cells))
    imports = "yes" if results["diffprivlib imports"] else "import fails"
    rows += [
        line("δ", "", "0", "0", "10⁻⁵"),
        line("ε on the ledger after 10 folds of 0.1", "", *map(_spent, everybody)),
        line(
            "scikit-learn's estimator checks failed, classifier",
            "",
            *(f"{library['failed checks']} of {library['checks']}" for library in everybody),
        ),
        line(f"works with scikit-learn {ours['scikit-learn']}", "", "yes", imports, "yes"),
        line(
            "classifier, 200,000 records of 20 features, processor time",
            "",
            *(f"{library['seconds']:.2g} s" for library in everybody),
        ),
    ]
    return "\n".join(rows) + "\n"


def _spent(library: dict[str, Any]) -> str:
    return "no ledger" if library["budget"] is None else f"{library['budget']:g}"


def _score(score: float | None) -> str:
    if score is None:
        return "two classes only"
    if score > -100:
        return f"{score:.2f}".replace("-0.00", "0.00").replace("-", "−")
    return (
        f"−10{str(len(str(int(-score))) - 1).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    )


def main() -> None:
    ours = measured(sys.executable, "dpbayes_sklearn")
    old = diffprivlib_python()
    if old is None:
        raise SystemExit("The table needs diffprivlib.")
    interpret = environment("interpret", INTERPRET, f"scikit-learn=={ours['scikit-learn']}")
    results = {
        "dpbayes_sklearn": ours,
        "diffprivlib": measured(old, "diffprivlib"),
        "diffprivlib imports": imports_with_newest(ours),
        "interpret": measured(interpret, "interpret"),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    table = BEGIN + "\n" + render(results) + "\n" + END
    text = README.read_text("utf-8")
    README.write_text(re.sub(f"{BEGIN}.*?{END}", lambda _: table, text, flags=re.S), "utf-8")
    print(render(results))


if __name__ == "__main__":
    main()
