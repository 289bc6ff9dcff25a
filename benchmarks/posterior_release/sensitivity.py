"""Local, smooth and global sensitivity of the Hellinger distance, and where the local one lies.

Figures 1 and 2 of *Tailoring Differentially Private Bayesian Inference to Distance Between
Distributions*. Run ``python -m benchmarks.posterior_release.sensitivity``; seconds.
"""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.posterior_release.curves import output_folder, save
from dpbayes_sklearn.papers.candidates import Candidates

N, EPSILON, DELTA = 100, 1.0, 1e-8


def main() -> None:
    folder = output_folder(__doc__)
    candidates = Candidates(N, (1.0, 1.0))
    local = candidates.local_sensitivity()
    gamma = math.log1p(EPSILON / (2 * math.log(2 * len(candidates) / DELTA)))
    smooth = candidates.smooth_sensitivity(gamma)
    ones = candidates.counts[:, 0]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    left.plot(ones, np.full(N + 1, local.max()), "m--", label="global")
    left.plot(ones, smooth, "b-", label=f"smooth, δ = {DELTA:g}")
    left.plot(ones, local, "c-", label="local")
    left.set(xlabel="ones among the records", ylabel="sensitivity", ylim=(0, None))
    left.set_title(f"Beta(1, 1), {N} records, ε = {EPSILON:g}")
    distances = candidates.hellinger(np.arange(N + 1))
    for x in (0, 10, 25, 50):
        neighbours = [y for y in (x - 1, x + 1) if 0 <= y <= N]
        moved = np.abs(distances[neighbours] - distances[x]).max(axis=0)
        (line,) = right.plot(ones, moved, label=f"x = {x}")
        right.plot(x, moved[x], "o", color=line.get_color())
        print(f"x = {x}: {moved[x]:.4f} at r = x, at most {moved.max():.4f}, LS {local[x]:.4f}")
    right.set(xlabel="ones of the candidate r", ylabel="change of H(x, r) over neighbours of x")
    right.set_title("The largest change is at r = x")
    print(f"local {local.min():.4f} to {local.max():.4f}, smooth from {smooth.min():.4f}")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    save(figure, folder, "hellinger_sensitivity")


if __name__ == "__main__":
    main()
