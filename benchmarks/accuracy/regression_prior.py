"""Error against prior precision: Figure 2 of Zhang, Rubinstein, Dimitrakakis (2016).

Census income, a tenth of the records for training, the rest for testing: the 31,857 mothers of 12
features in the table ``labsup``, where the paper has 370,000 records of 14 features from IPUMS.
With prior precision b the norm of drawn coefficients is bounded by 10/sqrt(b), so a sharper prior
has less to hide: the private curve comes down to the other one, while both rise in the end because
the prior drowns the data. Figures are mean squared errors in units of the variance of the target,
so that predicting the mean has 1.

A second table is the experiment as the paper describes it: one draw from the posterior, truncated
but not tempered, so that epsilon follows from b. Columns and target are centred (which the paper
does not account for, and neither does epsilon here), records have norm 1 at most, sigma is 1, and
nine tenths are for training, which is nearer to the paper's 37,000 records. Epsilon is printed by
the formula of the paper, with its n and d, and by the range of one record's log likelihood.

Run ``python -m benchmarks.accuracy.regression_prior [--repeats 20] [--output figure.png]``.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from benchmarks.data.regression import labsup
from dpbayes_sklearn import BayesianLinearRegression, Interval
from dpbayes_sklearn.convex.draws import score_range
from dpbayes_sklearn.noise import Noise

PRECISIONS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
EPSILONS = (0.1, 1.0, 10.0)
CURVES: dict[str, dict[str, object]] = {
    "non-private": {"epsilon": math.inf},
    **{
        f"sampler, epsilon={e:g}": {"epsilon": e, "mechanism": "sampler", "inference": "plug_in"}
        for e in EPSILONS
    },
    "sampler, epsilon=1, noise-aware": {"epsilon": 1.0, "mechanism": "sampler"},
    "default, epsilon=1": {"epsilon": 1.0},
}


def repeat(seed: int) -> dict[tuple[str, float], float]:
    """Return the error of every curve at every precision for one split."""
    X, y, schema = labsup()
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: len(y) // 10], order[len(y) // 10 :]
    errors = {}
    for name, params in CURVES.items():
        for b in PRECISIONS:
            model = BayesianLinearRegression(
                **params,  # type: ignore[arg-type]
                prior_precision=b,
                coef_bound=10 / math.sqrt(b),
                schema=schema,
                random_state=seed,
            )
            predicted = model.fit(X.iloc[train], y[train]).predict(X.iloc[test])
            errors[name, b] = float(np.mean((predicted - y[test]) ** 2) / np.var(y[test]))
    return errors


PAPER_RECORDS, PAPER_FEATURES = 37_000, 14


def printed_epsilon(b: float) -> float:
    """Return 2 L(w) of appendix D at the largest coefficients, all of the same size."""
    norm, n, d = 10 / math.sqrt(b), PAPER_RECORDS, PAPER_FEATURES
    return n * (1 + 2 * math.sqrt(d) * norm + d * norm)


def epsilon_of_a_draw(b: float) -> float:
    """Return what one draw loses: twice the range of a record's log likelihood over the ball."""
    return 2 * score_range(1.0, 10 / math.sqrt(b))


def as_the_paper_does_it(seed: int) -> dict[tuple[str, float], float]:
    """Return the error of every curve of the second table for one split."""
    X, y, schema = labsup()
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = order[: len(y) // 10], order[len(y) // 10 :]
    t = (y - y.mean()) / np.abs(y - y.mean()).max()
    columns = []
    for name, domain in schema.columns.items():
        column = np.asarray(X[name], float)
        width = domain.high - domain.low if isinstance(domain, Interval) else 1.0
        columns.append((column - column.mean()) / width * 2)
    z = np.column_stack(columns)
    z /= max(1.0, float(np.linalg.norm(z, axis=1).max()))
    noise, errors = Noise.of(seed), {}

    def error(predicted: npt.NDArray[np.float64], truth: npt.NDArray[np.float64]) -> float:
        return float(np.mean((predicted - truth) ** 2) / np.var(truth))

    for b in PRECISIONS:
        precision = z[train].T @ z[train] + b * np.eye(z.shape[1])
        linear = z[train].T @ t[train]
        (drawn,) = noise.ball(precision, linear, 10 / math.sqrt(b), 1)
        errors["linear regression", b] = error(
            z[test] @ np.linalg.solve(precision, linear), t[test]
        )
        errors["the paper's draw", b] = error(z[test] @ drawn, t[test])
        for name, options in {
            "our draw, same epsilon": {"epsilon": epsilon_of_a_draw(b), "mechanism": "sampler"},
            "our default, epsilon=1": {"epsilon": 1.0},
        }.items():
            model = BayesianLinearRegression(
                **options,  # type: ignore[arg-type]
                prior_precision=b,
                coef_bound=10 / math.sqrt(b),
                schema=schema,
                random_state=seed,
            ).fit(X.iloc[train], y[train])
            errors[name, b] = error(model.predict(X.iloc[test]), y[test])
    return errors


def table(runs: list[dict[tuple[str, float], float]]) -> dict[str, npt.NDArray[np.float64]]:
    """Print mean errors; return those of all runs by curve."""
    print(f"{'MSE at prior precision b =':<34}" + "".join(f"{b:>10g}" for b in PRECISIONS))
    curves = {}
    for name in dict.fromkeys(name for name, _ in runs[0]):
        curves[name] = np.array([[run[name, b] for b in PRECISIONS] for run in runs])
        print(f"{name:<34}" + "".join(f"{v:>10.3f}" for v in curves[name].mean(axis=0)))
    return curves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--output", help="file of the figure")
    options = parser.parse_args()
    seeds, parallel = range(options.repeats), Parallel(n_jobs=options.jobs)
    curves = table(parallel(delayed(repeat)(seed) for seed in seeds))
    print("\nAs the paper does it:")
    table(parallel(delayed(as_the_paper_does_it)(seed) for seed in seeds))
    for name, rule in {
        "epsilon, the paper's formula": printed_epsilon,
        "epsilon, by the range": epsilon_of_a_draw,
    }.items():
        print(f"{name:<34}" + "".join(f"{rule(b):>10.3g}" for b in PRECISIONS))
    if options.output:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.subplots()
        for name, values in curves.items():
            mean, error = values.mean(axis=0), values.std(axis=0) / math.sqrt(len(values))
            style = "--" if name == "non-private" else "-"
            axes.loglog(PRECISIONS, mean, style, marker="o", label=name)
            axes.fill_between(PRECISIONS, mean - error, mean + error, alpha=0.2)
        axes.set(
            xlabel="prior precision b",
            ylabel="mean squared error / variance",
            title="Census income, 3,185 records for training",
        )
        axes.legend()
        figure.savefig(options.output, dpi=150)


if __name__ == "__main__":
    main()
