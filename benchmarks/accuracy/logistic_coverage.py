"""Coverage and width of the intervals of a logistic regression's coefficients, by simulation.

Normal columns in bounds of five standard deviations, d = 3 or 8 of them with linear effects; the
same with two columns of categories (4 and 6 levels); with a correlation of .9 between all numbers;
and with a level that 1 % of the records have. All releases count. Width is relative to that of the
maximum likelihood estimate without privacy. Run ``python -m benchmarks.accuracy.logistic_coverage
[--repeats 100] [--sizes 2000 20000] [--epsilons 0.3 1 3] [--markdown FILE]``. With ``--fresh`` the
slopes, the constant and the seeds are others, which nothing was chosen on.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from dpbayes_sklearn import BayesianLogisticRegression, Categories, Interval, Schema

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
    def truth(self) -> dict[str, float]:
        """Return the true value of every coefficient but the intercept."""
        slopes = {f"x{j}": slope for j, slope in enumerate(self.slopes)}
        steps = {
            f"c{i}={k}": value for i, own in enumerate(self.levels) for k, value in enumerate(own)
        }
        return slopes | {name: value for name, value in steps.items() if not name.endswith("=0")}

    @property
    def schema(self) -> Schema:
        """Return the public domains."""
        domains: dict[str, Any] = {f"x{j}": Interval(-5, 5) for j in range(self.numbers)}
        domains |= {f"c{i}": Categories(range(len(own))) for i, own in enumerate(self.levels)}
        return Schema(domains, target=Categories([0, 1]))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Any]:
        """Return records and labels."""
        shared = rng.normal(size=(n, 1)) * np.sqrt(self.correlation)
        X = shared + rng.normal(size=(n, self.numbers)) * np.sqrt(1 - self.correlation)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(self.numbers)])
        z = self.constant + X @ self.slopes
        for i, (own, shares) in enumerate(zip(self.levels, self.shares, strict=True)):
            frame[f"c{i}"] = rng.choice(len(own), n, p=shares)
            z = z + np.array(own)[frame[f"c{i}"]]
        return frame, (rng.random(n) < expit(z)).astype(int)

    def plain_width(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
        """Return the widths of 95 % intervals without privacy, from the Fisher information."""
        columns = [np.ones(len(frame)), *(frame[f"x{j}"] for j in range(self.numbers))]
        z = self.constant + np.column_stack(columns[1:]) @ self.slopes
        for i, own in enumerate(self.levels):
            columns += [frame[f"c{i}"] == k for k in range(1, len(own))]
            z = z + np.array(own)[frame[f"c{i}"]]
        x, q = np.column_stack(columns).astype(float), expit(z)
        information = (x * (q * (1 - q))[:, None]).T @ x
        return np.asarray(2 * 1.96 * np.sqrt(np.diag(np.linalg.pinv(information))))[1:]


FOUR, SIX = (0.0, 0.8, -0.5, 0.3), (0.0, -0.6, 0.4, 1.0, -1.0, 0.2)
EVEN = ((0.25,) * 4, (1 / 6,) * 6)
DESIGNS = (
    Design("d = 3", 3),
    Design("d = 8", 8),
    Design("d = 3, categories", 3, levels=(FOUR, SIX), shares=EVEN),
    Design("d = 3, correlation .9", 3, correlation=0.9),
    Design("d = 3, a level of 1 %", 3, levels=((0.0, 0.5, -0.7),), shares=((0.6, 0.39, 0.01),)),
)


def cell(design: Design, n: int, epsilon: float, repeats: int) -> str:
    """Return coverage (mean, and range over coefficients) and relative width of one setting."""
    rng = np.random.default_rng(n + design.fresh)
    truth, inside, widths, plain = design.truth, [], [], []
    for _ in range(repeats):
        frame, y = design.draw(n, rng)
        model = BayesianLogisticRegression(
            epsilon, effects="linear", intervals=True, schema=design.schema
        )
        table = model.fit(frame, y).coefficients()
        rows = [table[name] for name in truth]
        inside.append([row.low <= truth[row.name] <= row.high for row in rows])
        widths.append([row.high - row.low for row in rows])
        plain.append(design.plain_width(frame))
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
    parser.add_argument("--markdown", type=Path, help="file that lines are appended to")
    options = parser.parse_args()
    for design in (each._replace(fresh=options.fresh) for each in DESIGNS):
        for n in options.sizes:
            for epsilon in options.epsilons:
                line = cell(design, n, epsilon, options.repeats)
                print(line, flush=True)
                if options.markdown:
                    with options.markdown.open("a") as file:
                        file.write(line + "\n")


if __name__ == "__main__":
    main()
