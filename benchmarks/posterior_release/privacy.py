"""Exact privacy loss of every mechanism, run at epsilon 1, against the number of records.

Figure 8 of *Tailoring Differentially Private Bayesian Inference to Distance Between
Distributions*, with calibrated mechanisms and other priors added. Run
``python -m benchmarks.posterior_release.privacy``; about a minute.
"""

from __future__ import annotations

import matplotlib.pyplot as plt

from benchmarks.posterior_release.curves import GLOBAL, HELLINGER, output_folder, save
from dpbayes_sklearn.conjugate import certify
from dpbayes_sklearn.mechanisms import Local
from dpbayes_sklearn.papers.candidates import Candidates
from dpbayes_sklearn.privacy import Budget

DELTA = 0.0005
RECORDS = (20, 50, 75, 100, 150, 200, 350, 500, 750, 1000)
PRIORS = {"Beta(1, 1)": (1.0, 1.0), "Beta(0.01, 5)": (0.01, 5.0)}


def uncertified_local(n: int, prior: tuple[float, float]) -> float:
    """Loss of the mechanism that the library refuses to run."""
    return Local()._at_nominal(Candidates(n, prior), Budget(1), 1.0).worst_case().epsilon


def main() -> None:
    folder = output_folder(__doc__)
    figure, both = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    for axes, (title, prior) in zip(both, PRIORS.items(), strict=True):
        print(f"\nexact epsilon, {title}\n{'':24s}" + "".join(f"{n:>7}" for n in RECORDS))
        losses = {}
        for curve in (HELLINGER, GLOBAL):
            losses[curve.label] = [
                certify(curve.name, n, prior, 1.0, DELTA, calibrate=False).pure_epsilon
                for n in RECORDS
            ]
        losses["local, not certified"] = [uncertified_local(n, prior) for n in RECORDS]
        for name in ("hellinger", "exponential", "local"):
            losses[f"{name}, calibrated"] = [
                certify(name, n, prior, 1.0, DELTA).pure_epsilon for n in RECORDS
            ]
        losses["geometric"] = [certify("geometric", n, prior).pure_epsilon for n in RECORDS]
        styles = ["b.--", "m.--", "c.--", "b.-", "m.-", "c.-", "r.-"]
        for (label, values), style in zip(losses.items(), styles, strict=True):
            print(f"{label:24s}" + "".join(f"{value:7.4f}" for value in values), flush=True)
            if style.endswith("--"):
                axes.plot(RECORDS, values, style, label=label)
        axes.plot(RECORDS, losses["geometric"], "r.-", label="geometric, and all when calibrated")
        axes.set(xscale="log", xlabel="records", title=f"{title}, ε = 1, δ = {DELTA}")
        axes.grid(alpha=0.3)
    both[0].set_ylabel("exact ε over all neighbouring data sets")
    both[0].legend(fontsize=8, loc="upper left", bbox_to_anchor=(0.02, 0.78))
    save(figure, folder, "hellinger_privacy")


if __name__ == "__main__":
    main()
