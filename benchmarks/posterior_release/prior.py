"""Error of a released Beta posterior against its prior, at 50 ones and 50 zeros.

Figure 7 of *Tailoring Differentially Private Bayesian Inference to Distance Between
Distributions*, with calibrated mechanisms added. Boxes hold the middle half of all releases, the
whiskers 90 %; all numbers are exact. Run ``python -m benchmarks.posterior_release.prior``; a
few seconds.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.posterior_release.curves import BETA, output_folder, save

COUNTS = (50, 50)
PRIORS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200)
QUANTILES = {"whislo": 0.05, "q1": 0.25, "med": 0.5, "q3": 0.75, "whishi": 0.95}


def box(curve, prior: tuple[float, float]) -> dict[str, float]:
    """Return the exact quantiles of the error."""
    law = curve.law(sum(COUNTS), prior)
    row = law.candidates.row_of([COUNTS])
    distance = law.candidates.hellinger(row)[0]
    order = np.argsort(distance)
    below = np.cumsum(np.exp(law.log_probabilities(row)[0])[order])
    at = {name: np.searchsorted(below, q) for name, q in QUANTILES.items()}
    return {name: float(distance[order][i]) for name, i in at.items()}


def main() -> None:
    folder = output_folder(__doc__)
    figure, axes = plt.subplots(figsize=(11, 4.5))
    print("E[H] by prior Beta(a, a), data (50, 50)")
    print(f"{'':32s}" + "".join(f"{a:>8g}" for a in PRIORS))
    width = 0.8 / len(BETA)
    for place, curve in enumerate(BETA):
        errors = [curve.error(COUNTS, (float(a), float(a))) for a in PRIORS]
        print(f"{curve.label:32s}" + "".join(f"{error:8.4f}" for error in errors), flush=True)
        positions = np.arange(len(PRIORS)) + (place - (len(BETA) - 1) / 2) * width
        axes.bxp(
            [box(curve, (float(a), float(a))) for a in PRIORS],
            positions=positions,
            widths=0.8 * width,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": curve.colour, "alpha": 0.3 if curve.dashed else 0.8},
            medianprops={"color": "k"},
            manage_ticks=False,
        )
        mark = {**curve.style, "linestyle": "", "marker": "D", "markersize": 3}
        axes.plot(positions, errors, **mark)
    axes.set_xticks(range(len(PRIORS)), [f"Beta({a:g}, {a:g})" for a in PRIORS])
    axes.set(ylabel="Hellinger error", title="50 ones, 50 zeros: median, quartiles and mean")
    axes.grid(alpha=0.3, axis="y")
    axes.legend(fontsize=8)
    save(figure, folder, "hellinger_prior")


if __name__ == "__main__":
    main()
