"""Draw ``picture.svg`` of the README, and two panels for the first page of the documentation.

Run ``python docs/figures/make_picture.py``; takes two minutes. The background is transparent, and
the grey of the texts can be read on white and on black.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import RepeatedStratifiedKFold

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BetaBinomial
from dpbayes_sklearn.mechanisms import Laplace, Mechanism

BLUE, RED, GREY = "#3a86b4", "#d1495b", "#6f7a85"
# Ranges of ten measurements of tumours, as a codebook has them.
TUMOURS = (
    [6, 9, 40, 140, 0.05, 0, 0, 0, 0.1, 0.04],
    [30, 40, 190, 2600, 0.17, 0.35, 0.43, 0.21, 0.31, 0.1],
)
EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]
MECHANISMS: dict[str, tuple[str | Mechanism, str]] = {
    "laplace": ("laplace", BLUE),
    "laplace, independent noise": (Laplace(noise="independent"), "#3d8b5f"),
    "fourier": ("fourier", "#e09f3e"),
    "sampler": ("sampler", RED),
    "map": ("map", "#9266c9"),
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


@cache
def accuracies() -> dict[str, list[float]]:
    """Return the accuracy of every mechanism at every epsilon, and without privacy."""
    X, y = load_breast_cancer(return_X_y=True)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=6, random_state=0)

    def mean_accuracy(**options: Any) -> float:
        scores = []
        for seed, (train, test) in enumerate(folds.split(X, y)):
            model = BayesianNaiveBayes(
                bounds=TUMOURS, classes=[0, 1], random_state=seed, **options
            ).fit(X[train, :10], y[train])
            scores.append(model.score(X[test, :10], y[test]))
        return float(np.mean(scores))

    curves = {
        name: [mean_accuracy(epsilon=e, mechanism=mechanism) for e in EPSILONS]
        for name, (mechanism, _) in MECHANISMS.items()
    }
    return {**curves, "without privacy": [mean_accuracy(epsilon=float("inf"))]}


def accuracy(ax: Axes) -> None:
    """Accuracy against epsilon of every mechanism."""
    curves = dict(accuracies())
    (exact,) = curves.pop("without privacy")
    for name, curve in curves.items():
        ax.plot(EPSILONS, curve, "o-", ms=4, color=MECHANISMS[name][1], label=name)
    ax.axhline(exact, color=GREY, ls="--", lw=1, label="without privacy")
    ax.set(
        title="Accuracy on tumours, 455 training records",
        xlabel="privacy budget ε (smaller is more private)",
        ylabel="accuracy",
        xscale="log",
        xticks=EPSILONS,
        xticklabels=[f"{e:g}" for e in EPSILONS],
        ylim=(0.5, 0.95),
    )
    ax.minorticks_off()


def finish(figure: Any, axes: Any, name: str) -> None:
    """Add legends to the panels of a figure, and write it."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_fontsize(11)
        ax.legend(frameon=False, fontsize=9)
    figure.savefig(
        Path(__file__).with_name(f"{name}.svg"), metadata={"Date": None}, transparent=True
    )


def main() -> None:
    """Draw the panels together, and the first two by themselves."""
    mpl.use("Agg")
    greys = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    mpl.rcParams.update({"font.size": 10.5, "svg.fonttype": "path", "svg.hashsalt": "picture"})
    mpl.rcParams.update(dict.fromkeys(greys, GREY))
    import matplotlib.pyplot as plt

    panels = {"accuracy": accuracy, "intervals": line, "proportion": proportion}
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.7), layout="constrained")
    for draw, ax in zip(panels.values(), axes, strict=True):
        draw(ax)
    finish(figure, axes, "picture")
    for name, draw in [*panels.items()][:2]:
        figure, ax = plt.subplots(figsize=(4.6, 3.5), layout="constrained")
        draw(ax)
        finish(figure, [ax], name)


if __name__ == "__main__":
    main()
