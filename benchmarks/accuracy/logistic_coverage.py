"""Coverage and width of the intervals of a logistic regression's smooth effects, by simulation.

Normal columns in bounds of five standard deviations, d = 3 or 8 of them with linear effects; the
same with two columns of categories (4 and 6 levels); with a correlation of .9 between all numbers;
and with a level that 1 % of the records have. All releases count. Effects are hat functions at the
knots of a released rank. No such model is true where log odds are linear in a number, so what
intervals should hold are the differences of the model that is nearest (the maximum likelihood of
50,000 records with their true probabilities), whose width without privacy is the unit. Linear
effects are measured by ``benchmarks.accuracy.honesty``.

Run ``python -m benchmarks.accuracy.logistic_coverage [--repeats 100] [--sizes 2000 20000]
[--epsilons 0.3 1 3] [--markdown FILE]``. With ``--fresh`` the slopes, the constant and the seeds
are others, which nothing was chosen on.
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


class Design(NamedTuple):
    """How records are drawn, and the true effects by name."""

    name: str
    numbers: int
    correlation: float = 0.0
    levels: tuple[tuple[float, ...], ...] = ()  # log odds of the levels, the first is 0
    shares: tuple[tuple[float, ...], ...] = ()
    fresh: bool = False

    @property
    def slopes(self) -> np.ndarray[Any, Any]:
        """Return the effects of the numbers."""
        return (FRESH_SLOPES if self.fresh else SLOPES)[: self.numbers]

    @property
    def constant(self) -> float:
        """Return the intercept."""
        return FRESH_CONSTANT if self.fresh else CONSTANT

    @property
    def schema(self) -> Schema:
        """Return the public domains."""
        domains: dict[str, Any] = {f"x{j}": Interval(-5, 5) for j in range(self.numbers)}
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
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(self.numbers)])
        for i, (own, shares) in enumerate(zip(self.levels, self.shares, strict=True)):
            frame[f"c{i}"] = rng.choice(len(own), n, p=shares)
        return frame, (rng.random(n) < expit(self.log_odds(frame))).astype(int)


FOUR, SIX = (0.0, 0.8, -0.5, 0.3), (0.0, -0.6, 0.4, 1.0, -1.0, 0.2)
EVEN = ((0.25,) * 4, (1 / 6,) * 6)
DESIGNS = (
    Design("d = 3", 3),
    Design("d = 8", 8),
    Design("d = 3, categories", 3, levels=(FOUR, SIX), shares=EVEN),
    Design("d = 3, correlation .9", 3, correlation=0.9),
    Design("d = 3, a level of 1 %", 3, levels=((0.0, 0.5, -0.7),), shares=((0.6, 0.39, 0.01),)),
)


POPULATION = 50_000


class Nearest(NamedTuple):
    """What intervals of smooth effects should hold, and how wide they are without privacy."""

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


def cell(design: Design, n: int, epsilon: float, repeats: int) -> str:
    """Return coverage (mean, and range over coefficients) and relative width of one setting."""
    rng = np.random.default_rng(n + design.fresh)
    inside, widths, plain = [], [], []
    population, _ = design.draw(POPULATION, np.random.default_rng(1))
    for _ in range(repeats):
        frame, y = design.draw(n, rng)
        model = BayesianLogisticRegression(
            epsilon, effects="smooth", intervals=True, schema=design.schema
        ).fit(frame, y)
        truth, alone = Nearest.of(design, model, population, n)
        rows = model.coefficients().rows[1:]
        inside.append([row.low <= true <= row.high for row, true in zip(rows, truth, strict=True)])
        widths.append([row.high - row.low for row in rows])
        plain.append(alone)
    each, ratio = np.mean(inside, axis=0), np.array(widths) / np.array(plain)
    covered = f"{np.mean(each):.3f} ({each.min():.2f} to {each.max():.2f})"
    middle = np.median(ratio, axis=0)
    return (
        f"| {design.name} | {n} | {epsilon:g} | {covered} | {np.mean(ratio):.2f} | "
        f"{np.median(ratio):.2f} | {middle.min():.2f} to {middle.max():.2f} |"
    )


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=100, help="releases, each of new records")
    parser.add_argument("--sizes", type=int, nargs="*", default=[2000, 20_000])
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.3, 1.0, 3.0])
    parser.add_argument("--fresh", action="store_true", help="other slopes, constant and seeds")
    parser.add_argument("--designs", type=int, nargs="*", default=[*range(len(DESIGNS))])
    parser.add_argument("--markdown", type=Path, help="file that lines are appended to")
    options = parser.parse_args()
    for design in (DESIGNS[i]._replace(fresh=options.fresh) for i in options.designs):
        for n in options.sizes:
            for epsilon in options.epsilons:
                line = cell(design, n, epsilon, options.repeats)
                print(line, flush=True)
                if options.markdown:
                    with options.markdown.open("a") as file:
                        file.write(line + "\n")


if __name__ == "__main__":
    main()
