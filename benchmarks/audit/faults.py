"""Planted faults: with each bug in the library in turn, the layer that has to see it sees it."""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.audit._cases import Row, first_finding, versions
from benchmarks.audit._layers import LAYERS
from benchmarks.audit._planted import FAULTS, Fault
from dpbayes_sklearn._presenting import progress

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


def finding(fault: Fault) -> str | None:
    """Return what the layer of a fault says about it; None if it does not see it."""
    with fault.planted():
        what = sees(fault.seen_by, fault.shows_in)
    return None if what is None or what.startswith(CRASHED) else what


def run(scale: float) -> Iterator[Row]:
    """Try the layers without any fault, then with each of them the layer that has to see it."""
    for layer in LAYERS:
        what = sees(layer)
        yield Row(f"none planted: {layer}", what or "nothing found", "nothing", not what)
    tried = FAULTS if scale >= 1 else FAULTS[:: max(1, round(0.2 / scale))]
    caught = 0
    for fault in progress(tried, "faults"):
        what = finding(fault)
        caught += what is not None
        figure, must = (what or "nothing")[:60], f"seen by {fault.seen_by}"
        yield Row(f"{fault}"[:90], figure, must, what is not None)
    figure, enough = f"{caught} of {len(tried)}", len(FAULTS) >= WANTED
    must = f"all, of {WANTED} or more"
    yield Row("caught", figure, must, caught == len(tried) and enough)


PAGE = """---
orphan: true
---

# Planted faults

A test that cannot fail proves nothing. So {faults} privacy bugs are planted into the library, one
at a time, and a layer of the audit has to see each of them. Without a bug no layer sees anything.
`make test` fails with any of these bugs.

This page is written by `python -m benchmarks.audit.faults {file}`.

{table}

What the layers are:

- **enumeration** reads the laws that a release draws from, for all data sets of a small world,
  and of Gaussian noise the exact delta: of counts, of moments, of private preparation and of texts,
  and for other units of privacy;
- **replay** fits a neighbour with what was released on a data set and compares all else: of
  estimators, of containers, of preparation, and for other units;
- **order of records** sees that no record is asked, held out or counted because of its place, and
  replays neighbours that are sorted again or listed in another order;
- **containers of groups** takes away or spoils one label of a person, in every container, and sees
  whose records count; it does the same with cells of columns that a container converts;
- **command line** looks at the files that commands write, and at what they charge, say and lose;
- **sampler laws** compares frequencies of draws with their laws;
- **attacks** bounds epsilon from below by telling two neighbours apart, 4,000 runs a side;
- **source of bytes** sees that noise is a function of the operating system's bytes alone;
- **leak walk** looks for exact statistics in everything that a fitted object holds or shows;
- **accounting** spends in every way there is;
- **composition** compares totals with the exact loss of known mechanisms, and restores, replaces,
  loses, migrates and mistypes ledgers; batches, shards, query sessions and seeds;
- **scopes** compares what a ledger adds up with what concerns one person: parallel scopes, secret
  numbers of records, blocks with threads and processes, ledger files under two names;
- **adaptive adversaries** choose each release by the results of those before it, as the ledger
  allows, and compute the exact delta of the whole;
- **draws added up** compares what a sampler charges with the laws that it drew from;
- **parts** records the laws that every step of a fit really draws from, adds up what they lose
  between neighbours, and compares the sum with what was charged and promised;
- **charges** does the same whatever way records take, for every unit: with weights, missing
  targets, sparse rows, batches, shards, queries, evaluations, cross-validation; and adds up, delta
  included, what all releases cost that concern one unit, and what ledgers and allotments have left;
- **searches** looks at every run of a private search, and listens to it;
- **evaluations** enumerates all neighbours of small worlds of a private evaluation, attacks it, and
  looks at its price, its persons and bad values;
- **rehearsals** compares what searches on different records do before they are charged;
- **declarations** leaves out what should be declared, and declares what cannot be;
- **values** tries bad values, messages, orders of rows, types, and lattices of outputs;
- **intervals** counts how often published intervals hold the truth, and compares the
  probabilities of small tables with those of the plain model.
- **plans** draws public facts at random, to extremes: a fit that is charged has to end;
- **after the charge** tries every way to spend on odd records in every container: what raises does
  so before the charge, and not because of a value.

{versions}
"""


def table() -> str:
    """Return the faults and the layers that see them."""
    lines, totals = ["| | fault | seen by |", "|---|---|---|"], Counter[str]()
    for fault in progress(FAULTS, "faults"):
        if finding(fault) is None:
            raise SystemExit(f"{fault.seen_by} does not see the fault {fault}.")
        totals[fault.seen_by] += 1
        lines.append(f"| {fault.area} | {fault.name} | {fault.seen_by} |")
    sums = ", ".join(f"{layer} {number}" for layer, number in totals.most_common())
    return "\n".join([*lines, f"| | **{len(FAULTS)} faults** | {sums} |"])


def main() -> None:
    """Write the page of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="the Markdown file to write")
    file = parser.parse_args().file
    page = PAGE.format(faults=len(FAULTS), file=file, table=table(), versions=versions())
    file.write_text(page)


if __name__ == "__main__":
    main()
