"""Draw the picture of the README, ``picture.svg``: releases of three estimators.

Run ``python docs/figures/make_picture.py``; takes a minute.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import RepeatedStratifiedKFold

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BetaBinomial
from dpbayes_sklearn.mechanisms import Laplace, Mechanism

BLUE, RED, GREY = "#2a6f97", "#d1495b", "#5c6770"
# Ranges of ten measurements of tumours, as a codebook has them.
TUMOURS = (
    [6, 9, 40, 140, 0.05, 0, 0, 0, 0.1, 0.04],
    [30, 40, 190, 2600, 0.17, 0.35, 0.43, 0.21, 0.31, 0.1],
)
MECHANISMS: dict[str, tuple[str | Mechanism, str]] = {
    "laplace": ("laplace", BLUE),
    "laplace, independent noise": (Laplace(noise="independent"), "#3d8b5f"),
    "fourier": ("fourier", "#e09f3e"),
    "sampler": ("sampler", RED),
    "map": ("map", "#6a4c93"),
}


def proportion(ax: Axes) -> None:
    """Posterior of a proportion: exact, and released four times at each of two budgets."""
    answers = np.array([1] * 120 + [0] * 280)
    theta = np.linspace(0.1, 0.5, 400)
    exact = BetaBinomial(float("inf")).fit(answers).posterior_
    for epsilon, colour in ((0.05, RED), (1.0, BLUE)):
        for seed in range(4):
            released = BetaBinomial(epsilon, random_state=seed).fit(answers).posterior_
            label = f"released at ε = {epsilon:g}" if seed == 0 else None
            ax.plot(theta, released.pdf(theta), color=colour, lw=1.2, alpha=0.75, label=label)
    ax.fill_between(
        theta, exact.pdf(theta), color=GREY, alpha=0.3, lw=0, label="exact (not released)"
    )
    ax.set(
        title="Posterior of a proportion, released four times",
        xlabel="share of smokers",
        yticks=[],
        ylim=(0, 30),
    )


def line(ax: Axes) -> None:
    """Regression with intervals that include the noise."""
    rng = np.random.default_rng(1)
    hours = rng.uniform(0, 60, 3000)
    wage = 4 + 0.4 * hours + rng.normal(0, 3, 3000)
    at = np.linspace(0, 60, 50)[:, None]
    ax.plot(
        hours[:300], wage[:300], ".", color=GREY, ms=2.5, alpha=0.5, label="records (not released)"
    )
    for epsilon, colour in ((0.03, RED), (1.0, BLUE)):
        model = BayesianLinearRegression(
            epsilon, bounds_X=(0, 60), bounds_y=(0, 40), random_state=4
        ).fit(hours[:, None], wage)
        mean, std = model.predict(at, return_std=True)
        ax.plot(at[:, 0], mean, color=colour, label=f"ε = {epsilon:g}, 95 % interval")
        for side in (-2, 2):
            ax.plot(at[:, 0], mean + side * std, color=colour, lw=0.9, ls="--")
    ax.set(
        title="Intervals that include the privacy noise",
        xlabel="hours",
        ylabel="wage",
        ylim=(-10, 62),
    )


def accuracy(ax: Axes) -> None:
    """Accuracy against epsilon of every mechanism."""
    X, y = load_breast_cancer(return_X_y=True)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=6, random_state=0)
    epsilons = [0.1, 0.3, 1.0, 3.0, 10.0]

    def mean_accuracy(**options: object) -> float:
        scores = []
        for seed, (train, test) in enumerate(folds.split(X, y)):
            model = BayesianNaiveBayes(
                bounds=TUMOURS,
                classes=[0, 1],
                random_state=seed,
                **options,  # type: ignore[arg-type]
            )
            scores.append(model.fit(X[train, :10], y[train]).score(X[test, :10], y[test]))
        return float(np.mean(scores))

    for name, (mechanism, colour) in MECHANISMS.items():
        curve = [mean_accuracy(epsilon=e, mechanism=mechanism) for e in epsilons]
        ax.plot(epsilons, curve, "o-", ms=4, color=colour, label=name)
    exact = mean_accuracy(epsilon=float("inf"))
    ax.axhline(exact, color=GREY, ls="--", lw=1, label="without privacy")
    ax.set(
        title="Accuracy on tumours, 455 training records",
        xlabel="privacy budget ε (smaller is more private)",
        ylabel="accuracy",
        xscale="log",
        xticks=epsilons,
        xticklabels=[f"{e:g}" for e in epsilons],
        ylim=(0.5, 0.95),
    )
    ax.minorticks_off()


def main() -> None:
    """Draw the three panels and write the file."""
    mpl.use("Agg")
    mpl.rcParams.update({"font.size": 10, "svg.fonttype": "path", "svg.hashsalt": "picture"})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 3.7), layout="constrained")
    for draw, ax in zip((accuracy, line, proportion), axes, strict=True):
        draw(ax)
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_fontsize(11)
        ax.legend(frameon=False, fontsize=8.5)
    path = Path(__file__).with_name("picture.svg")
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    print(path)


if __name__ == "__main__":
    main()
