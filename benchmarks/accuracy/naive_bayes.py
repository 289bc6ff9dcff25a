"""Accuracy against epsilon of naive Bayes: Figure 1 of Zhang, Rubinstein, Dimitrakakis (2016).

Data of a naive Bayes model with 16 Boolean features, 1,000 examples of which 50 are for training,
uniform priors. Panel 1 has the paper's own calibration: laplace and fourier protect a record, the
sampler one feature value by truncation alone. As in the paper, a second Fourier curve has only the
nine of ten releases in which no cell is negative; running again for that would double the cost.
Panel 2 protects a record everywhere.

Run ``python -m benchmarks.accuracy.naive_bayes [--repeats 100] [--output figure.png]``; 100
repeats take a few minutes on two cores.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from dpbayes_sklearn import BayesianNaiveBayes, mechanisms

N_FEATURES, N_EXAMPLES, N_TRAIN = 16, 1000, 50
EPSILONS = (0.1, 0.3, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
NON_PRIVATE = "non-private"
STEALTHY = "fourier, stealth runs"
Curves = Mapping[str, npt.NDArray[np.float64]]


def paper_panel(epsilon: float) -> dict[str, dict[str, object]]:
    """Return the estimators of panel 1.

    With every probability in [omega, 1 - omega] a feature value changes the likelihood of a draw
    by a factor of at most ((1 - omega)/omega)^2, so omega = 1/(1 + exp(epsilon/2)) would do. The
    paper's exp(-epsilon/2) is larger, and leaves nothing to choose from below epsilon = 1.39.
    """
    paper = min(math.exp(-epsilon / 2), 0.5 - 1e-6)
    tight = 1 / (1 + math.exp(epsilon / 2))
    samplers = {"sampler (feature)": paper, "sampler, tight omega": tight}
    return {
        "laplace": {"mechanism": mechanisms.Laplace(noise="independent")},
        "fourier": {"mechanism": mechanisms.Fourier(noise="independent")},
        STEALTHY: {"mechanism": mechanisms.Fourier(noise="independent")},
        **{
            name: {"mechanism": mechanisms.Sampler(omega=omega), "privacy_unit": "feature"}
            for name, omega in samplers.items()
        },
    }


def record_panel(epsilon: float) -> dict[str, dict[str, object]]:
    """Return the estimators of panel 2, all with the same promise."""
    return {
        "laplace": {"mechanism": mechanisms.Laplace(noise="independent")},
        "laplace, joint noise": {"mechanism": "laplace"},
        "fourier": {"mechanism": mechanisms.Fourier(noise="independent")},
        "sampler": {"mechanism": "sampler"},
        "map": {"mechanism": "map"},
    }


PANELS = {
    "Panel 1: the paper's calibration": paper_panel,
    "Panel 2: everybody protects a record": record_panel,
}


def sample_data(rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Draw a naive Bayes model with uniform parameters and balanced classes, and data from it."""
    theta = rng.random((2, N_FEATURES))
    y = rng.integers(0, 2, N_EXAMPLES)
    return (rng.random((N_EXAMPLES, N_FEATURES)) < theta[y]).astype(np.int64), y


def accuracy(
    params: Mapping[str, object], X: npt.ArrayLike, y: npt.ArrayLike, seed: int, stealth: bool
) -> float:
    """Train on the first examples, score on the rest; NaN for a run without stealth."""
    X, y = np.asarray(X), np.asarray(y)
    model = BayesianNaiveBayes(
        **params,  # type: ignore[arg-type]
        inference="plug_in",
        temperature=1,
        classes=[0, 1],
        bounds=(0, 1),
        n_bins=2,
        random_state=seed,
    )
    model.fit(X[:N_TRAIN], y[:N_TRAIN])
    if stealth and any((table < 0).any() for table in model.posterior_.released.tables):
        return math.nan
    return float(model.score(X[N_TRAIN:], y[N_TRAIN:]))


def repeat(seed: int) -> dict[tuple[str, str, float], float]:
    """Return the accuracy of every curve at every epsilon for one draw of everything."""
    X, y = sample_data(np.random.default_rng(seed))
    scores = {}
    for panel, members in PANELS.items():
        for epsilon in EPSILONS:
            for name, params in members(epsilon).items():
                scores[panel, name, epsilon] = accuracy(
                    {"epsilon": epsilon, **params}, X, y, seed, name == STEALTHY
                )
            scores[panel, NON_PRIVATE, epsilon] = accuracy({"epsilon": math.inf}, X, y, seed, False)
    return scores


def run(n_repeats: int, n_jobs: int) -> dict[str, Curves]:
    """Return the mean curves of every panel."""
    all_scores = Parallel(n_jobs=n_jobs)(delayed(repeat)(seed) for seed in range(n_repeats))
    return {
        panel: {
            name: np.array([np.nanmean([s[panel, name, e] for s in all_scores]) for e in EPSILONS])
            for name in (*members(1.0), NON_PRIVATE)
        }
        for panel, members in PANELS.items()
    }


def print_panel(title: str, curves: Curves) -> None:
    print(f"\n{title}\n{'accuracy at epsilon =':<22}" + "".join(f"{e:>8g}" for e in EPSILONS))
    for name, means in curves.items():
        print(f"{name:<22}" + "".join(f"{mean:8.3f}" for mean in means))


def save_figure(panels: Mapping[str, Curves], path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, (title, curves) in zip(
        figure.subplots(1, 2, sharey=True), panels.items(), strict=True
    ):
        for name, means in curves.items():
            style = {"color": "grey", "linestyle": "--"} if name == NON_PRIVATE else {"marker": "o"}
            axes.semilogx(EPSILONS, means, label=name, **style)
        axes.set(title=title, xlabel="epsilon", ylabel="accuracy")
        axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--output", help="file of the figure")
    options = parser.parse_args()
    panels = run(options.repeats, options.jobs)
    for title, curves in panels.items():
        print_panel(title, curves)
    if options.output:
        save_figure(panels, options.output)


if __name__ == "__main__":
    main()
