"""The benchmark report: runs every experiment and writes what the documentation shows.

``python -m benchmarks.report`` (or ``make bench``) runs all sections, 50 minutes at most on two
cores, and writes ``docs/benchmarks``. ``--only accuracy speed`` runs some of them; the others keep
their results, which are in ``benchmarks/results/report``. ``--render`` runs nothing and writes the
page again. ``--quick`` tries the machinery in a few minutes and leaves everything under
``build/bench``. No figure is typed by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from benchmarks.pages import folded, folded_output
from benchmarks.report_plan import GUIDE, OWN, SECTIONS, Command, Section
from dpbayes_sklearn._presenting import progress

ROOT = Path(__file__).parent.parent
PACKAGES = ("dpbayes_sklearn", "scikit-learn", "numpy", "scipy", "joblib")
CORES = os.cpu_count() or 1


def run(section: Section, quick: bool, report: Path) -> dict[str, Any]:
    """Run the scripts of a section and return what they print, and what they ran on."""
    start = time.perf_counter()
    outputs = [output(command, quick, report) for command in section.commands]
    return {
        "outputs": outputs,
        "seconds": round(time.perf_counter() - start),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "versions": {package: version(package) for package in PACKAGES},
        "machine": f"Python {platform.python_version()}, {platform.machine()}, {CORES} cores",
    }


@cache
def commit() -> str:
    """Return the commit that is checked out, with a plus if files differed from it at first."""
    line = ["git", "describe", "--always", "--abbrev=10", "--dirty=+", "--exclude=*"]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def output(command: Command, quick: bool, report: Path) -> str:
    """Return what a script prints."""
    line = [sys.executable, *command.line(quick, report)]
    # other scripts share out the cores themselves
    one_each = {} if command.threads else {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        line, cwd=ROOT, env=one_each | os.environ, stdout=subprocess.PIPE, text=True, check=True
    )
    told = [line for line in done.stdout.split("\n") if not line.startswith("wrote ")]
    return "\n".join(told).strip()


def render(results: Path, report: Path) -> Iterator[str]:
    """Yield the lines of the report, from the results there are; long tables become files."""
    yield "# Benchmarks\n"
    yield (
        "How accurate and how fast is the library, beside no privacy, simpler settings, other "
        "libraries and the papers? The first table shows the default. "
        "Written by `make bench`; no figure on this page is typed by hand. Each section can be "
        "made separately, and states its command, date and commit.\n"
    )
    yield from made_with(results)
    for name, section in SECTIONS.items():
        path = results / f"{name}.json"
        yield f"## {section.title}\n\n{section.text}\n"
        if not path.exists():
            yield f"*Not run yet: `python -m benchmarks.report --only {name}`.*\n"
            continue
        found = json.loads(path.read_text("utf-8"))
        figures = chain((command.figures for command in section.commands), repeat(()))
        outputs = zip(figures, found["outputs"], strict=False)  # of an earlier plan
        for number, (drawn, text) in enumerate(outputs, 1):
            for figure in drawn:
                yield f"![{section.title}]({figure})\n"
            fold = folded if has_table(text) else folded_output
            if text:
                yield fold(text, report, f"{name}_{number}") + "\n"
        yield made_by(name, found) + "\n"


def has_table(text: str) -> bool:
    """Tell whether a script printed Markdown rather than columns of text."""
    return any(line.startswith("|--") for line in text.split("\n"))


def made_with(results: Path) -> Iterator[str]:
    """Yield each machine and its versions of packages, with the sections that were made on it."""
    made: dict[str, list[str]] = {}
    for name in SECTIONS:
        path = results / f"{name}.json"
        if path.exists():
            found = json.loads(path.read_text("utf-8"))
            versions = [f"{package} {number}" for package, number in found["versions"].items()]
            made.setdefault(f"{', '.join(versions)}; {found['machine']}", []).append(name)
    if len(made) == 1:
        yield f"Made with {next(iter(made))}.\n"
    else:
        yield from (f"{', '.join(names)}: made with {where}.\n" for where, names in made.items())


def made_by(name: str, found: dict[str, Any]) -> str:
    """Return how and when a section was made."""
    return (
        f"*`python -m benchmarks.report --only {name}`: {found['seconds'] / 60:.1f} minutes on "
        f"{found['date']} at commit {found.get('commit', 'unknown')}.*"
    )


def main() -> int:
    """Run, write, and return how many sections failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), metavar="SECTION")
    parser.add_argument("--render", action="store_true", help="run nothing")
    parser.add_argument("--quick", action="store_true", help="few repeats, into build/bench")
    options = parser.parse_args()
    base = ROOT / "build" / "bench" if options.quick else ROOT
    results, report = base / "benchmarks" / "results" / "report", base / "docs" / "benchmarks"
    for folder in (results, report / OWN, report / GUIDE):
        folder.mkdir(parents=True, exist_ok=True)
    chosen = options.only or [n for n, s in SECTIONS.items() if s.quick or not options.quick]
    failed = []
    commit()  # before results change files
    for name in progress([] if options.render else chosen, "benchmarks"):
        print(f"{name}: about {SECTIONS[name].minutes:g} minutes", file=sys.stderr, flush=True)
        try:
            found = run(SECTIONS[name], options.quick, report)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name} failed and keeps its old results: {error}", file=sys.stderr)
            failed.append(name)
            continue
        text = json.dumps(found, indent=1, ensure_ascii=False)
        (results / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    (report / "index.md").write_text("\n".join(render(results, report)), encoding="utf-8")
    print(f"Report: {report / 'index.md'}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
