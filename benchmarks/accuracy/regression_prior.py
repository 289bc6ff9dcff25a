"""Error against prior precision: Figure 2 of Zhang, Rubinstein, Dimitrakakis (2016).

Census income, a tenth of the records for training, the rest for testing: the 31,857 mothers of 12
features in the table ``labsup``, where the paper has 370,000 records of 14 features from IPUMS.
With prior precision b the norm of drawn coefficients is bounded by 10/sqrt(b), so a sharper prior
has less to hide: the private curve comes down to the other one, while both rise in the end because
the prior drowns the data. Figures are mean squared errors in units of the variance of the target,
so that predicting the mean has 1.

Run ``python -m benchmarks.accuracy.regression_prior [--repeats 20] [--output figure.png]``.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from joblib import Parallel, delayed

from benchmarks.data.regression import labsup
from dpbayes_sklearn import BayesianLinearRegression

PRECISIONS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
EPSILONS = (0.1, 1.0, 10.0)
CURVES: dict[str, dict[str, object]] = {
    "non-private": {"epsilon": math.inf},
    **{
        f"sampler, epsilon={e:g}": {"epsilon": e, "mechanism": "sampler", "inference": "plug_in"}
        for e in EPSILONS
    },
    "sampler, epsilon=1, noise-aware": {"epsilon": 1.0, "mechanism": "sampler"},
    "laplace, epsilon=1, noise-aware": {"epsilon": 1.0},
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--output", help="file of the figure")
    options = parser.parse_args()
    runs = Parallel(n_jobs=options.jobs)(delayed(repeat)(s) for s in range(options.repeats))
    print(f"{'MSE at prior precision b =':<34}" + "".join(f"{b:>10g}" for b in PRECISIONS))
    curves = {}
    for name in CURVES:
        values = np.array([[run[name, b] for b in PRECISIONS] for run in runs])
        curves[name] = values.mean(axis=0), values.std(axis=0) / math.sqrt(len(runs))
        print(f"{name:<34}" + "".join(f"{v:>10.3f}" for v in curves[name][0]))
    if options.output:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.subplots()
        for name, (mean, error) in curves.items():
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
