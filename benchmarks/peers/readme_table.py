"""The measured table of the README: this library beside diffprivlib, its nearest peer.

diffprivlib runs in environments of its own, made in the user's cache: one with the last
scikit-learn that it works with, one with the newest. Takes about two minutes.

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

from benchmarks.peers.environment import DIFFPRIVLIB, diffprivlib_python, environment

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
    ours, theirs = results["dpbayes_sklearn"], results["diffprivlib"]

    def line(what: str, without: str, mine: str, other: str) -> str:
        return f"| {what} | {without} | {mine} | {other} |"

    imports = "yes" if results["diffprivlib imports"] else "import fails"
    rows = [
        line("ε = 1", "no privacy", "dpbayes_sklearn", f"diffprivlib {theirs['version']}"),
        "|---|---|---|---|",
    ]
    for task, label in TASKS.items():
        exact = ours["scores without privacy"][task]
        mine, other = ours["scores"][task], theirs["scores"][task]
        rows.append(line(label, _score(exact), f"**{_score(mine)}**", _score(other)))
    rows += [
        line(
            "ε on the ledger after 10 folds of 0.1",
            "",
            f"{ours['budget']:g}",
            f"{theirs['budget']:g}",
        ),
        line(
            "scikit-learn's estimator checks failed, naive Bayes",
            "",
            f"{ours['failed checks']} of {ours['checks']}",
            f"{theirs['failed checks']} of {theirs['checks']}",
        ),
        line(f"works with scikit-learn {ours['scikit-learn']}", "", "yes", imports),
        line(
            "naive Bayes, 200,000 records of 20 features, processor time",
            "",
            f"{1000 * ours['seconds']:.0f} ms",
            f"{1000 * theirs['seconds']:.0f} ms",
        ),
    ]
    return "\n".join(rows) + "\n"


def _score(score: float) -> str:
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
    results = {
        "dpbayes_sklearn": ours,
        "diffprivlib": measured(old, "diffprivlib"),
        "diffprivlib imports": imports_with_newest(ours),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    table = BEGIN + "\n" + render(results) + "\n" + END
    text = README.read_text("utf-8")
    README.write_text(re.sub(f"{BEGIN}.*?{END}", lambda _: table, text, flags=re.S), "utf-8")
    print(render(results))


if __name__ == "__main__":
    main()
