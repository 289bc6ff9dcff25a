"""What the figures of posterior release share: mechanisms, colours, exact and simulated errors."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.plans import plan
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.conjugate import expected_distance
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.papers.certify import configured
from dpbayes_sklearn.papers.choices import outcome_law
from dpbayes_sklearn.privacy import Budget, exact
from dpbayes_sklearn.release import Facts

EPSILON, DELTA = 1.0, 1e-8
FOLDER = Path(__file__).parents[2] / "docs" / "user_guide" / "figures"


@dataclass(frozen=True)
class Curve:
    """One mechanism in a figure."""

    label: str
    name: str
    calibrate: bool = True
    inference: str = "plug_in"
    share: float = 1.0  # of epsilon
    colour: str = "k"
    dashed: bool = False

    @property
    def style(self) -> dict[str, object]:
        return {
            "label": self.label,
            "color": self.colour,
            "linestyle": "--" if self.dashed else "-",
            "marker": ".",
        }

    def law(self, n: int, prior: tuple[float, ...]):
        mechanism = configured(self.name, self.calibrate, DELTA)
        delta = exact(DELTA) if getattr(mechanism, "spends_delta", False) else Fraction(0)
        return outcome_law(mechanism, n, prior, Budget(exact(EPSILON * self.share), delta))

    def error(self, counts: tuple[int, ...], prior: tuple[float, ...], epsilon=EPSILON) -> float:
        """Exact expected Hellinger error, for mechanisms with finitely many outcomes."""
        return expected_distance(
            self.name, sum(counts), prior, epsilon, DELTA, calibrate=self.calibrate, counts=counts
        )

    def simulated(self, counts: tuple[int, ...], prior: tuple[float, ...], runs: int):
        """Hellinger distances of repeated releases from the exact posterior."""
        mechanism = configured(self.name, self.calibrate, DELTA)
        statistics, noise = SimplexCounts(np.array(counts)), Noise.of(0)
        belief = SimplexPrior(Dirichlet(prior), self.inference)
        budget = Budget(exact(EPSILON * self.share))
        true = Dirichlet(np.array(prior) + counts)
        planned = plan(mechanism, belief, Facts(sum(counts)), budget)
        releases = (planned.release(statistics, noise) for _ in range(runs))
        return np.array([posterior.hellinger(true) for posterior in releases])


HELLINGER = Curve("hellinger", "hellinger", calibrate=False, colour="tab:blue", dashed=True)
CALIBRATED = Curve("hellinger, calibrated", "hellinger", colour="tab:blue")
GLOBAL = Curve("exponential", "exponential", calibrate=False, colour="tab:purple", dashed=True)
GLOBAL_CALIBRATED = Curve("exponential, calibrated", "exponential", colour="tab:purple")
LOCAL = Curve("local, calibrated", "local", colour="tab:cyan")
LAPLACE = Curve("laplace", "laplace", colour="tab:green", dashed=True)
GEOMETRIC = Curve("geometric (= laplace_improved)", "geometric", colour="tab:red")
BETA = [LAPLACE, GEOMETRIC, HELLINGER, CALIBRATED, GLOBAL_CALIBRATED, LOCAL]


def balanced(n: int, k: int) -> tuple[int, ...]:
    return tuple((n + i) // k for i in range(k))


def output_folder(description: str) -> Path:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder for the figures")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def save(figure: Figure, folder: Path, name: str) -> None:
    figure.tight_layout()
    figure.savefig(folder / f"{name}.png", dpi=110, metadata={"Software": None})
    plt.close(figure)
    print(f"wrote {folder / name}.png")


def logarithmic(axes: Axes, xlabel: str, ylabel: str, title: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel, title=title)
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
