"""How likely a released posterior is to be close to the exact one.

Figure 3 of *Tailoring Differentially Private Bayesian Inference to Distance Between
Distributions*, with calibrated mechanisms added. Run
``python -m benchmarks.posterior_release.candidates``; half a minute.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.posterior_release.curves import (
    BETA,
    CALIBRATED,
    GLOBAL_CALIBRATED,
    HELLINGER,
    LOCAL,
    Curve,
    balanced,
    output_folder,
    save,
)

BETA_RECORDS, DIRICHLET_RECORDS, RUNS = 600, 60, 1500
NOISE = [
    Curve("laplace_improved", "laplace_improved", colour="tab:orange", dashed=True),
    Curve("geometric, median", "geometric", inference="median", colour="tab:red"),
]


def beta(axes) -> None:
    """Probability of every candidate against its distance."""
    counts = balanced(BETA_RECORDS, 2)
    for curve in BETA:
        law = curve.law(BETA_RECORDS, (1.0, 1.0))
        row = law.candidates.row_of([counts])
        distance = law.candidates.hellinger(row)[0]
        above = np.arange(len(distance)) >= row[0]  # the other side is its mirror image
        probability = np.exp(law.log_probabilities(row)[0])
        axes.plot(distance[above], probability[above], **{**curve.style, "marker": ""})
    axes.set(
        xlabel="Hellinger distance from the exact posterior",
        ylabel="probability of a candidate",
        title=f"Beta-binomial, {BETA_RECORDS} records",
        yscale="log",
        ylim=(1e-6, 1),
        xlim=(0, 0.5),
    )


def dirichlet(axes) -> None:
    """Probability to be within a distance."""
    counts, prior = balanced(DIRICHLET_RECORDS, 3), (1.0,) * 3
    for curve in (HELLINGER, CALIBRATED, GLOBAL_CALIBRATED, LOCAL):
        law = curve.law(DIRICHLET_RECORDS, prior)
        row = law.candidates.row_of([counts])
        distance = law.candidates.hellinger(row)[0]
        order = np.argsort(distance)
        within = np.cumsum(np.exp(law.log_probabilities(row)[0])[order])
        axes.plot(distance[order], within, **{**curve.style, "marker": ""})
    for curve in NOISE:
        distance = np.sort(curve.simulated(counts, prior, RUNS))
        axes.plot(distance, (np.arange(RUNS) + 1) / RUNS, **{**curve.style, "marker": ""})
    axes.set(
        xlabel="Hellinger distance from the exact posterior",
        ylabel="probability to be within it",
        title=f"Dirichlet-multinomial, 3 categories, {DIRICHLET_RECORDS} records",
    )


def main() -> None:
    folder = output_folder(__doc__)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2))
    for draw, axis in zip((beta, dirichlet), axes, strict=True):
        draw(axis)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8, loc="upper right" if draw is beta else "lower right")
    save(figure, folder, "hellinger_candidates")


if __name__ == "__main__":
    main()
