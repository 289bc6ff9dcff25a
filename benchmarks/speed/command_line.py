"""Memory and time of the command line on a large CSV file, which this script writes.

Every command runs in a process of its own. *Own* memory is the peak of what the process holds for
itself (``RssAnon``); *all* counts pages of files that are mapped, too, which the system takes back
when it needs them. Time is that of the processor. Run
``python -m benchmarks.speed.command_line [--megabytes 2000]``; it needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

BLOCK = 20_000  # So many different lines are written again and again.
NUMBERS, TEXTS = 6, 3  # Columns.
WORDS = ["clerk", "nurse", "teacher", "driver", "other"]


def write_table(path: Path, megabytes: float) -> int:
    """Write a file of about this size and return its number of records."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(50, 20, (BLOCK, NUMBERS))
    texts = rng.choice(WORDS, (BLOCK, TEXTS))
    wages = numbers[:, 0] / 3 + rng.normal(20, 5, BLOCK)
    lines = [
        ",".join([*map("{:.5f}".format, row), *words, str(i % 5000), f"{wage:.3f}", ill])
        for i, (row, words, wage, ill) in enumerate(
            zip(numbers, texts, wages, rng.choice(["no", "yes"], BLOCK), strict=True)
        )
    ]
    block = "\n".join(lines) + "\n"
    times = max(1, round(megabytes * 1e6 / len(block)))
    names = [f"n{j}" for j in range(NUMBERS)] + [f"t{j}" for j in range(TEXTS)]
    with path.open("w") as file:
        file.write(",".join([*names, "who", "wage", "ill"]) + "\n")
        for _ in range(times):
            file.write(block)
    return times * BLOCK


def write_schemas(folder: Path) -> None:
    """Write a schema of a regression, and one of classes."""
    numbers = {f"n{j}": {"low": 0, "high": 100} for j in range(NUMBERS)}
    columns = numbers | {f"t{j}": {"values": WORDS} for j in range(TEXTS)}
    targets = {"wage": {"low": 0, "high": 80}, "ill": {"values": ["no", "yes"]}}
    for name, target in targets.items():
        (folder / f"{name}.json").write_text(json.dumps({"columns": columns, "target": target}))


def commands() -> dict[str, list[str]]:
    """Return the commands by name."""
    own = [sys.executable, "-m", "dpbayes_sklearn"]
    of_wage = ["big.csv", "--target", "wage", "--schema", "wage.json"]
    of_ill = ["big.csv", "--target", "ill", "--schema", "ill.json"]
    kinds = ["--numbers", "n0", "n1", "wage", "--texts", "t0", "--delta", "1e-6", "--epsilon", "1"]
    pandas = "import pandas; pandas.read_csv('big.csv')"
    return {
        "pandas.read_csv": [sys.executable, "-c", pandas],
        "check": [*own, "check", *of_wage],
        "fit (regression)": [*own, "fit", *of_wage, "--epsilon", "1", "--out", "w.model"],
        "fit (naive Bayes)": [*own, "fit", *of_ill, "--epsilon", "1", "--out", "i.model"],
        "fit (persons)": [*own, "fit", *of_ill, "--epsilon", "1", "--groups", "who",
                          "--max-records", "5", "--out", "p.model"],
        "learn": [*own, "learn", "big.csv", "--target", "wage", *kinds, "--out", "found.json"],
        "evaluate": [*own, "evaluate", "w.model", "big.csv", "--target", "wage", "--epsilon", "1"],
        "predict": [*own, "predict", "w.model", "big.csv", "--out", "out.csv"],
    }  # fmt: skip


def measured(command: list[str], folder: Path) -> tuple[float, float, float]:
    """Return own and all memory in megabytes at their peaks, and seconds of the processor."""
    path = {**os.environ, "PYTHONPATH": os.getcwd()}
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, env=path)
    own = every = 0.0
    while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        try:
            status = Path(f"/proc/{child.pid}/status").read_text()
        except OSError:
            break
        kilobytes = dict(re.findall(r"^(RssAnon|VmHWM):\s+(\d+) kB$", status, re.M))
        own = max(own, int(kilobytes.get("RssAnon", 0)) / 1e3)
        every = max(every, int(kilobytes.get("VmHWM", 0)) / 1e3)
        time.sleep(0.02)
    _, code, used = os.wait4(child.pid, 0)
    if code:
        raise RuntimeError(f"{command} failed.")
    return own, every, used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--only", nargs="+", choices=commands(), default=[*commands()])
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        n = write_table(folder / "big.csv", options.megabytes)
        write_schemas(folder)
        size = (folder / "big.csv").stat().st_size / 1e6
        print(f"{size:,.0f} MB, {n:,} records\n\n| command | own MB | all MB | processor, s |")
        print("|---|---|---|---|")
        for what in options.only:
            own, every, seconds = measured(commands()[what], folder)
            print(f"| {what} | {own:,.0f} | {every:,.0f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
