"""Coverage and width of the intervals of a logistic regression's coefficients, by simulation.

Columns with linear effects on the log odds: normal ones in bounds of five standard deviations, an
income (log-normal, up to 40), effects of 3 and 2 per standard deviation, a correlation of .9, a
column that nearly is the sum of two others, categories with even and uneven shares, levels that 1 %
and 0.3 % of the records have. All releases count. What intervals should hold is the model of the
released range of a number (beyond it effects are constant, which the table says) that is nearest
to the truth: the maximum likelihood of 100,000 records with their true probabilities. A coefficient
that is *not identified* counts as held; how many are is a column of its own, and widths, relative
to those of the maximum likelihood estimate without privacy, are of the others. Run
``python -m benchmarks.accuracy.logistic_coverage [--repeats 100] [--sizes 3000 20000 100000]
[--epsilons 0.5 1 4] [--markdown FILE]``. With ``--fresh`` the slopes, the constant, the shares of
levels and the seeds are others, which nothing was chosen on. ``--smooth`` is for hat functions at
the knots of a released rank.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from dpbayes_sklearn import BayesianLogisticRegression, Categories, Interval, Schema
from dpbayes_sklearn.logistic.blocks import WEIGHT_STEPS
from dpbayes_sklearn.logistic.posterior import effects

SLOPES = np.array([1.0, -0.7, 0.5, 0.0, 0.3, -1.0, 0.2, 0.8])
CONSTANT = 0.3
FRESH_SLOPES = np.array([-0.4, 0.9, 0.15, -1.2, 0.0, 0.6, -0.25, 0.5])
FRESH_CONSTANT = -1.0
INCOME = 40.0


class Design(NamedTuple):
    """How records are drawn, and the true effects by name."""

    name: str
    numbers: int
    correlation: float = 0.0
    levels: tuple[tuple[float, ...], ...] = ()  # log odds of the levels, the first is 0
    shares: tuple[tuple[float, ...], ...] = ()
    steep: tuple[float, ...] = ()  # slopes of the first numbers, instead of the usual ones
    income: bool = False  # whether the first number is log-normal
    triple: bool = False  # whether the last number nearly is the sum of the two before
    fresh: bool = False

    @property
    def slopes(self) -> np.ndarray[Any, Any]:
        """Return the effects of the numbers."""
        usual = (FRESH_SLOPES if self.fresh else SLOPES)[: self.numbers].copy()
        usual[: len(self.steep)] = np.array(self.steep)[:: -1 if self.fresh else 1]
        return usual

    @property
    def constant(self) -> float:
        """Return the intercept."""
        return FRESH_CONSTANT if self.fresh else CONSTANT

    @property
    def schema(self) -> Schema:
        """Return the public domains."""
        domains: dict[str, Any] = {f"x{j}": Interval(-5, 5) for j in range(self.numbers)}
        if self.income:
            domains["x0"] = Interval(0, INCOME)
        domains |= {f"c{i}": Categories(range(len(own))) for i, own in enumerate(self.levels)}
        return Schema(domains, target=Categories([0, 1]))

    def log_odds(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
        """Return the true log odds of records."""
        numbers = frame[[f"x{j}" for j in range(self.numbers)]].to_numpy()
        z = self.constant + numbers @ self.slopes
        for i, own in enumerate(self.levels):
            z = z + np.array(own)[frame[f"c{i}"]]
        return np.asarray(z)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Any]:
        """Return records and labels."""
        shared = rng.normal(size=(n, 1)) * np.sqrt(self.correlation)
        X = shared + rng.normal(size=(n, self.numbers)) * np.sqrt(1 - self.correlation)
        if self.income:
            X[:, 0] = np.minimum(np.exp(X[:, 0]), INCOME)
        if self.triple:
            X[:, -1] = (X[:, -3] + X[:, -2] + 0.3 * X[:, -1]) / np.sqrt(2.09)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(self.numbers)])
        for i, (own, shares) in enumerate(zip(self.levels, self.shares, strict=True)):
            p = np.array(shares)[:: -1 if self.fresh and min(shares) > RARE else 1]
            frame[f"c{i}"] = rng.choice(len(own), n, p=p / p.sum())
        return frame, (rng.random(n) < expit(self.log_odds(frame))).astype(int)


RARE = 0.011
FOUR, SIX = (0.0, 0.8, -0.5, 0.3), (0.0, -0.6, 0.4, 1.0, -1.0, 0.2)
EVEN = ((0.25,) * 4, (1 / 6,) * 6)
TWELVE = (0.0, 0.5, -0.5, 0.2, -0.9, 1.1, 0.3, -0.2, 0.7, -0.4, 0.1, 0.0)
UNEVEN = (0.22, 0.17, 0.13, 0.1, 0.09, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.02)
DESIGNS = (
    Design("d = 3", 3),
    Design("d = 8", 8),
    Design("d = 3, categories", 3, levels=(FOUR, SIX), shares=EVEN),
    Design("d = 3, correlation .9", 3, correlation=0.9),
    Design("d = 3, a level of 1 %", 3, levels=((0.0, 0.5, -0.7),), shares=((0.6, 0.39, 0.01),)),
    Design("strong effects", 3, steep=(3.0, 2.0)),
    Design("income", 3, income=True, steep=(0.3,)),
    Design("d = 2, 12 levels", 2, levels=(TWELVE,), shares=(UNEVEN,)),
    Design("collinear triple", 3, triple=True),
    Design("a level of 0.3 %, log odds 3", 1, levels=((0.0, 3.0),), shares=((0.997, 0.003),)),
)


POPULATION = 100_000


class Nearest(NamedTuple):
    """What intervals should hold, and how wide they are without privacy."""

    truth: np.ndarray[Any, Any]
    widths: np.ndarray[Any, Any]

    @classmethod
    def of(cls, design: Design, model: Any, population: pd.DataFrame, n: int) -> Nearest:
        """Return the nearest model with the knots of a fitted one, without its intercept."""
        blocks, nodes = model._blocks(model.schema_), model.posterior_.nodes
        codes = blocks.encode(model._read_rows(population))
        x = blocks.weights(codes, blocks.tables(nodes)) / WEIGHT_STEPS @ blocks.basis
        p, w = expit(design.log_odds(population)), np.zeros(blocks.parameters)
        for _ in range(30):
            q = expit(x @ w)
            information = (x * (q * (1 - q))[:, None]).T @ x + 1e-9 * np.eye(len(w))
            step = np.linalg.solve(information, x.T @ (p - q))
            w = w + step
            if np.abs(step).max() < 1e-8:
                break
        rows = effects(model.schema_, blocks, nodes)[1][1:] @ blocks.basis
        variances = np.einsum("ij,jk,ik->i", rows, np.linalg.inv(information), rows)
        return cls(rows @ w, 2 * 1.96 * np.sqrt(variances * len(population) / n))


def cell(design: Design, n: int, epsilon: float, repeats: int, smooth: bool) -> str:
    """Return coverage (mean, and range over coefficients) and relative width of one setting."""
    rng = np.random.default_rng(n + design.fresh)
    inside, ratios, found = [], [], dict[bytes, Nearest]()
    population, _ = design.draw(POPULATION, np.random.default_rng(1))
    for _ in range(repeats):
        frame, y = design.draw(n, rng)
        kind = "smooth" if smooth else "linear"
        model = BayesianLogisticRegression(
            epsilon,
            effects=kind,
            intervals=True,
            schema=design.schema,
            random_state=int(rng.integers(2**31)),
        ).fit(frame, y)
        nodes = model.posterior_.nodes.tobytes()
        if nodes not in found:
            found[nodes] = Nearest.of(design, model, population, n)
        ends = np.array([(row.low, row.high) for row in model.coefficients().rows[1:]])
        known = np.isfinite(ends).all(axis=1)
        truth, alone = found[nodes]
        inside.append(~known | ((ends[:, 0] <= truth) & (truth <= ends[:, 1])))
        ratios.append(np.where(known, (ends[:, 1] - ends[:, 0]) / alone, np.nan))
    each, ratio = np.mean(inside, axis=0), np.array(ratios)
    covered = f"{np.mean(each):.3f} ({each.min():.2f} to {each.max():.2f})"
    some = ratio[:, np.isfinite(ratio).any(axis=0)]
    middle = np.nanmedian(some, axis=0) if some.size else np.array([np.nan])
    return (
        f"| {design.name} | {n} | {epsilon:g} | {covered} | "
        f"{np.nanmedian(some) if some.size else np.nan:.2f} | "
        f"{middle.min():.2f} to {middle.max():.2f} | {np.isnan(ratio).mean():.2f} |"
    )


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=100, help="releases, each of new records")
    parser.add_argument("--sizes", type=int, nargs="*", default=[3000, 20_000, 100_000])
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.5, 1.0, 4.0])
    parser.add_argument("--fresh", action="store_true", help="other slopes, constant and seeds")
    parser.add_argument("--smooth", action="store_true", help="hat functions")
    parser.add_argument("--designs", type=int, nargs="*", default=[*range(len(DESIGNS))])
    parser.add_argument("--markdown", type=Path, help="file that lines are appended to")
    options = parser.parse_args()
    for design in (DESIGNS[i]._replace(fresh=options.fresh) for i in options.designs):
        for n in options.sizes:
            for epsilon in options.epsilons:
                line = cell(design, n, epsilon, options.repeats, options.smooth)
                print(line, flush=True)
                if options.markdown:
                    with options.markdown.open("a") as file:
                        file.write(line + "\n")


if __name__ == "__main__":
    main()
