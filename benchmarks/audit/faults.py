"""Planted faults: which layers see which bug, with each bug in the library in turn."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

from benchmarks.audit._cases import first_finding
from benchmarks.audit._layers import LAYERS
from benchmarks.audit._planted import FAULTS, Fault
from benchmarks.audit._table import Row, versions
from dpbayes_sklearn._progress import progress

__all__ = ["CRASHED", "layers_that_see", "run", "sees"]

WANTED = 100
CRASHED = "the layer itself fails with"


def sees(layer: str, first: str = "") -> str | None:
    """Return the first thing that a layer finds wrong, or None.

    The cases with ``first`` in their name come first.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return first_finding(LAYERS[layer](), first)
        except Exception as error:  # nobody could overlook that
            return f"{CRASHED} {type(error).__name__}: {error}"


def layers_that_see(fault: Fault) -> dict[str, str]:
    """Return the layers that find something with the fault in the library, and what."""
    with fault.planted():
        found = {layer: sees(layer) for layer in LAYERS}
    return {layer: what for layer, what in found.items() if what is not None}


def run(scale: float) -> Iterator[Row]:
    """Try the layers without any fault, then with each of them the layer that has to see it."""
    for layer in LAYERS:
        what = sees(layer)
        yield Row("faults", f"none planted: {layer}", what or "nothing found", "nothing", not what)
    tried = FAULTS if scale >= 1 else FAULTS[:: max(1, round(0.2 / scale))]
    caught = 0
    for fault in progress(tried, "faults"):
        with fault.planted():
            what = sees(fault.seen_by, fault.shows_in) or "nothing"
        seen = what != "nothing" and not what.startswith(CRASHED)
        caught += seen
        yield Row("faults", f"{fault}"[:90], what[:60], f"seen by {fault.seen_by}", seen)
    figure, enough = f"{caught} of {len(tried)}", len(FAULTS) >= WANTED
    must = f"all, of {WANTED} or more"
    yield Row("faults", "caught", figure, must, caught == len(tried) and enough)


PAGE = """---
orphan: true
---

# Planted faults

A test that cannot fail proves nothing. So {faults} privacy bugs are planted into the library,
one at a time, and every layer of the audit is run in short: a dot means that the layer sees the
bug. Without a bug no layer sees anything. Every fault is seen by at least one layer, and
`make test` fails with any of them.

This page is written by `python -m benchmarks.audit.faults {file}`.

{table}

What the layers are:

- **enumeration** reads the laws that a release draws from, for all data sets of a small world,
  and of Gaussian noise the exact delta;
- **replay** fits a neighbour with what was released on a data set and compares all else;
- **sampler laws** compares frequencies of draws with their laws;
- **attacks** bounds epsilon from below by telling two neighbours apart, 4,000 runs a side;
- **source of bytes** sees that noise is a function of the operating system's bytes alone;
- **leak walk** looks for exact statistics in everything that a fitted object holds or shows;
- **accounting** spends in every way there is;
- **composition** compares totals with the exact loss of known mechanisms, and restores, replaces,
  loses, migrates and mistypes ledgers; batches, shards, query sessions and seeds;
- **searches** looks at every run of a private search, and listens to it;
- **declarations** leaves out what should be declared, and declares what cannot be;
- **values** tries bad values, messages, orders of rows, types, and lattices of outputs.

{versions}
"""


def matrix() -> str:
    """Return the table of faults and layers."""
    lines = [f"| | fault | {' | '.join(LAYERS)} |", "|---|---|" + ":-:|" * len(LAYERS)]
    totals = dict.fromkeys(LAYERS, 0)
    for fault in progress(FAULTS, "faults"):
        seen = layers_that_see(fault)
        if not seen:
            raise SystemExit(f"Nobody sees the fault {fault}.")
        for layer in seen:
            totals[layer] += 1
        marks = " | ".join("●" if layer in seen else "" for layer in LAYERS)
        lines.append(f"| {fault.area} | {fault.name} | {marks} |")
    sums = " | ".join(f"{totals[layer]}" for layer in LAYERS)
    return "\n".join([*lines, f"| | **{len(FAULTS)} faults, seen by** | {sums} |"])


def main() -> None:
    """Write the page of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="the Markdown file to write")
    file = parser.parse_args().file
    page = PAGE.format(faults=len(FAULTS), file=file, table=matrix(), versions=versions())
    file.write_text(page)


if __name__ == "__main__":
    main()
