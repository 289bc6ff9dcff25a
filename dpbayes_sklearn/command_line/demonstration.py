"""The demonstration: every mechanism of both predictors, on data that ship with scikit-learn."""

from __future__ import annotations

import argparse
import platform
import re
import textwrap
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

from dpbayes_sklearn._presenting import Html, card, check_matplotlib, table, tag, tidy, wrapped_log
from dpbayes_sklearn.command_line.first_model import FirstModel, first_model, section, told
from dpbayes_sklearn.display import (
    ForestDisplay,
    PosteriorDisplay,
    PrivacyUtilityCurve,
    PrivacyUtilityDisplay,
    privacy_utility_curve,
)
from dpbayes_sklearn.display.utility import EPSILONS
from dpbayes_sklearn.linear_model import BayesianLinearRegression
from dpbayes_sklearn.mechanisms import Laplace, Mechanism
from dpbayes_sklearn.metrics import private_score
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.privacy.budget import at_least
from dpbayes_sklearn.schema import Categories, Interval, Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Everything here is public: ranges that the measurements can have, rounded outward, as a codebook
# would give them. The number of bins is declared too. Left to "auto", integers of a small range
# would be recognised by the dtype of their column, which would be a condition of the guarantee.
TUMOURS = Schema(
    {
        "radius": Interval(6, 30, bins=4),
        "texture": Interval(9, 40, bins=4),
        "perimeter": Interval(40, 190, bins=4),
        "area": Interval(140, 2600, bins=4),
        "smoothness": Interval(0.05, 0.17, bins=4),
        "compactness": Interval(0, 0.35, bins=4),
        "concavity": Interval(0, 0.43, bins=4),
        "concave points": Interval(0, 0.21, bins=4),
        "symmetry": Interval(0.1, 0.31, bins=4),
        "fractal dimension": Interval(0.04, 0.1, bins=4),
    },
    target=Categories(["malignant", "benign"]),
)
PATIENTS = Schema(
    {
        "body mass index": Interval(17, 45),
        "blood pressure": Interval(60, 135),
        "log triglycerides": Interval(3, 6.5),
    },
    target=Interval(20, 350),
)
DIGITS = Schema(
    {f"row {i + 1}, column {j + 1}": Interval(0, 16, bins=2) for i in range(4) for j in range(4)},
    target=Categories(range(10)),
)

OF_COUNTS = ("laplace", Laplace(noise="independent"), "fourier", "map", "sampler")

_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2128;--line:rgba(128,128,128,.3)}
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#dde3ea}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:70rem;margin:0 auto;padding:2.5rem 1.5rem 4rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .6rem}
h2{font-size:1.35rem;margin:3rem 0 .3rem;padding-top:1.6rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.8rem 0 .2rem}
p{margin:.3rem 0;max-width:46rem}
.figures,.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28rem),1fr));
gap:1rem 1.6rem;align-items:start;margin-top:1rem}
.cards .dpbayes-card{margin:0}
figure{margin:0}
img{display:block;width:100%;height:auto;border-radius:6px;background:#fff}
figcaption{font-size:.85rem;opacity:.72;margin-top:.3rem}
@media (max-width:40rem){main{padding:1.5rem .9rem 3rem}.dpbayes-card table{font-size:.72rem}
.dpbayes-card table th,.dpbayes-card table td{padding:.3rem .22rem}}
footer{margin-top:4rem;font-size:.85rem;opacity:.72}
"""
_LEAD = (
    "Each model below was fitted to personal records and released under differential privacy: the "
    "budget epsilon bounds how much any one record can change what is released. The curves show "
    "how much of the accuracy each mechanism keeps; the cards state the guarantees."
)
_TEXT = """\
Bayesian inference under differential privacy: first a model of an invented table, with its plan,
odds ratios, private score and ledger; then naive Bayes and linear regression with every mechanism,
on data that ship with scikit-learn. Prints tables, and writes figures and a report to a folder.
"""


class Task(NamedTuple):
    """One predictor on one data set."""

    name: str
    title: str
    story: str
    estimator: Any
    X: Any
    y: Any
    cv: Any
    score: str
    column: str | None  # whose released table is drawn, for a classifier
    mechanisms: tuple[str | Mechanism, ...]


def tasks(repeats: int) -> list[Task]:
    """Return the tasks, each cross-validated on ``repeats`` random splits."""
    return [_tumours(repeats), _digits(repeats), _patients(repeats)]


def _tumours(repeats: int) -> Task:
    data = load_breast_cancer()
    return Task(
        "breast_tumours",
        "Naive Bayes: is a breast tumour malignant?",
        "569 tumours, ten measurements of cell nuclei, each divided into four bins.",
        BayesianNaiveBayes(schema=TUMOURS),
        data.data[:, :10],
        data.target_names[data.target],
        RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats, random_state=0),
        "accuracy",
        "radius",
        OF_COUNTS,
    )


def _digits(repeats: int) -> Task:
    pixels, digit = load_digits(return_X_y=True)
    tiles = pixels.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    return Task(
        "digits",
        "Naive Bayes: which digit was written?",
        "1,797 scanned digits as sixteen grey tiles, each light or dark. With about 180 records in "
        "each of ten classes, accuracy falls quickly below epsilon = 1.",
        BayesianNaiveBayes(schema=DIGITS),
        tiles,
        digit,
        RepeatedStratifiedKFold(n_splits=3, n_repeats=repeats, random_state=0),
        "accuracy",
        None,
        OF_COUNTS,
    )


def _patients(repeats: int) -> Task:
    data = load_diabetes(scaled=False)
    columns = [data.feature_names.index(name) for name in ("bmi", "bp", "s5")]
    return Task(
        "diabetes",
        "Linear regression: how far will diabetes progress in a year?",
        "442 patients, three measurements. With so few records the noise is large: at small "
        "epsilon predictions shrink to a noisy mean of the target, so R² may be below 0.",
        BayesianLinearRegression(schema=PATIENTS),
        np.asarray(data.data)[:, columns],
        data.target,
        RepeatedKFold(n_splits=5, n_repeats=4 * repeats, random_state=0),
        "R²",
        None,
        ("auto", "laplace", "fourier", "map", "sampler"),
    )


class Picture(NamedTuple):
    """One figure, as PNG."""

    name: str
    text: str
    png: bytes


def draw(
    name: str, text: str, plot: Callable[[Axes], Any], size: tuple[float, float] = (6.4, 4.0)
) -> Picture | None:
    """Return what ``plot(ax)`` draws, or None where matplotlib is not installed."""
    try:
        check_matplotlib("The demonstration")
    except ImportError:
        return None
    from matplotlib.figure import Figure

    figure, page = Figure(figsize=size, layout="constrained"), BytesIO()
    plot(tidy(figure.subplots()))
    figure.savefig(page, format="png", dpi=144)
    return Picture(name, text, page.getvalue())


@dataclass(frozen=True)
class Result:
    """Scores, models, ledger and figures of a task."""

    task: Task
    epsilon: float  # of the fitted models
    curve: PrivacyUtilityCurve
    models: dict[str, Any]
    accountant: BudgetAccountant
    pictures: list[Picture]
    evaluated: str  # the card of a model of one half of the records, evaluated on the other half

    @property
    def epsilons(self) -> list[float]:
        """The budgets that were tried."""
        return sorted({e for scores in self.curve.scores.values() for e in scores})


def run(task: Task, epsilons: Sequence[float], verbose: bool = True) -> Result:
    """Cross-validate a task, fit every mechanism on one ledger and draw what was released."""
    curve = privacy_utility_curve(
        task.estimator,
        task.X,
        task.y,
        epsilons=epsilons,
        mechanisms=task.mechanisms,
        cv=task.cv,
        verbose=verbose,
    )
    epsilon = sorted(epsilons)[len(epsilons) // 2]
    accountant = BudgetAccountant(epsilon=epsilon * (len(curve.scores) + 2))
    models = {
        name: clone(task.estimator)
        .set_params(mechanism=mechanism, epsilon=epsilon, accountant=accountant)
        .fit(task.X, task.y)
        for name, mechanism in zip(curve.scores, task.mechanisms, strict=True)
    }
    evaluated = _evaluated(task, epsilon, accountant)
    pictures = _pictures(task, curve, models)
    return Result(task, epsilon, curve, models, accountant, pictures, evaluated)


def _evaluated(task: Task, epsilon: float, accountant: BudgetAccountant) -> str:
    """Return the card of a model with a private evaluation on records that it has not seen."""
    model = clone(task.estimator).set_params(epsilon=epsilon, accountant=accountant)
    order = np.random.default_rng(0).permutation(len(task.y))
    train, test = np.array_split(order, 2)
    model.fit(task.X[train], task.y[train])
    metrics = ["accuracy", "log_loss"] if task.score == "accuracy" else ["rmse", "r2"]
    found = private_score(model, task.X[test], task.y[test], scoring=metrics, epsilon=epsilon)
    return str(model.card("html", evaluation=found))


def _pictures(task: Task, curve: PrivacyUtilityCurve, models: dict[str, Any]) -> list[Picture]:
    scores = partial(PrivacyUtilityDisplay(*curve).plot, ylabel=task.score)
    model = next(iter(models.values()))
    shown = "the most informative features" if task.column is None else task.column
    what = shown if task.score == "accuracy" else "the coefficients"
    drawn = [
        draw(task.name, f"{task.score} against epsilon", scores),
        draw(
            f"{task.name}_posterior",
            f"released posterior of {what}",
            lambda ax: PosteriorDisplay.from_estimator(model, column=task.column, ax=ax),
        ),
    ]
    return [picture for picture in drawn if picture is not None]


def report(first: FirstModel, drawn: Sequence[Picture], results: Sequence[Result]) -> str:
    """Return the page; ``drawn`` are the figures of the first model."""
    packages = ("dpbayes_sklearn", "scikit-learn", "numpy")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    body = tag(
        "main",
        tag("h1", "Bayesian inference under differential privacy"),
        section(first, *map(_figure, drawn)),
        tag("h2", "Every mechanism, measured"),
        tag("p", _LEAD),
        *(_section(result) for result in results),
        tag("footer", f"Made with {versions}, Python {platform.python_version()}."),
    )
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'),
        tag("title", "dpbayes_sklearn: demonstration"),
        tag("style", Html(_STYLE)),
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", body), lang="en") + "\n"


def _section(result: Result) -> Html:
    task = result.task
    cards = (Html(model._guarantee_card()) for model in result.models.values())
    return tag(
        "section",
        tag("h2", task.title),
        tag("p", task.story),
        card(f"Mean {task.score} in cross-validation", _scores(result)),
        tag("div", *(_figure(picture) for picture in result.pictures), class_="figures"),
        tag("h3", f"Guarantees at epsilon = {at_least(result.epsilon)}"),
        tag("div", *cards, class_="cards"),
        tag("h3", "A card to publish: fitted to one half, evaluated on the other"),
        Html(result.evaluated),
        tag("h3", "Total privacy cost"),
        tag("p", "All these models are about the same records, so their epsilons add up."),
        Html(result.accountant._repr_html_()),
        id=task.name,
    )


def _scores(result: Result) -> Html:
    """Return the table of mean scores."""
    epsilons, best = result.epsilons, f"{result.curve.baseline:.3f}"
    heads = ["mechanism", *(f"ε = {at_least(e)}" for e in epsilons), "no privacy"]
    rows = [
        (name, *(f"{np.mean(scores[e]):.3f}" for e in epsilons), best)
        for name, scores in result.curve.scores.items()
    ]
    return table(heads, rows, text=[0])


def _figure(picture: Picture) -> Html:
    source = "data:image/png;base64," + b64encode(picture.png).decode("ascii")
    image = f'<img src="{source}" alt="{escape(picture.text)}">'
    return tag("figure", Html(image), tag("figcaption", picture.text))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration and return the exit status."""
    options = _options(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    print(textwrap.fill(_TEXT, 98))
    with wrapped_log():
        first = first_model()
    print(told(first), flush=True)
    odds = draw(
        "odds_ratios",
        "odds ratios with their intervals",
        lambda ax: ForestDisplay.from_estimator(first.model, ax=ax),
    )
    drawn = [] if odds is None else [odds]
    results = []
    for task in tasks(options.repeats):
        print(f"\n{task.title}\n{textwrap.fill(task.story, 98)}", flush=True)
        with wrapped_log():
            result = run(task, options.epsilon)
        _tell(result)
        results.append(result)
    for picture in [*drawn, *(picture for result in results for picture in result.pictures)]:
        (options.out / f"{picture.name}.png").write_bytes(picture.png)
    page = options.out / "report.html"
    page.write_text(report(first, drawn, results), encoding="utf-8")
    if not drawn:
        print("\nNo figures: matplotlib is missing (pip install matplotlib).")
    print(f"\nReport: {page.resolve()}")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m dpbayes_sklearn", description=_TEXT)
    parser.add_argument(
        "--out", "--output", type=Path, default=Path("demo_output"), metavar="DIR",
        help="folder to fill (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--epsilon", type=_epsilon, nargs="+", default=list(EPSILONS), metavar="E",
        help="privacy budgets to try (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--repeats", type=int, default=2, metavar="N",
        help="random splits of the cross-validation (default: %(default)s)",
    )  # fmt: skip
    return parser.parse_args(arguments)


def _epsilon(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"a budget must be a number above 0, not {text}")
    return value


def _tell(result: Result) -> None:
    score = result.task.score
    print(f"\n  {score} in cross-validation; inf is without privacy")
    print(textwrap.indent(PrivacyUtilityDisplay(*result.curve).table(), "  "))
    print(f"\n  Guarantees at epsilon = {at_least(result.epsilon)}:")
    for names, sentence in _guarantees(result).items():
        text = f"{', '.join(names)}: {sentence}"
        print(textwrap.fill(text, 98, initial_indent="  ", subsequent_indent="    "))


def _guarantees(result: Result) -> dict[tuple[str, ...], str]:
    """Return the guarantees in words, one for all mechanisms with the same conditions."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, model in result.models.items():
        alike.setdefault(model.guarantee_.conditions, []).append(name)
    return {
        tuple(names): re.sub(
            r"under the \w+ mechanism, ", "", str(result.models[names[0]].guarantee_)
        )
        for names in alike.values()
    }
