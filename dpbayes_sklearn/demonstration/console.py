"""The demonstration on the command line."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path

from dpbayes_sklearn._log import wrapped_log
from dpbayes_sklearn.demonstration.report import report
from dpbayes_sklearn.demonstration.results import Result, run
from dpbayes_sklearn.demonstration.tasks import tasks
from dpbayes_sklearn.display import PrivacyUtilityDisplay
from dpbayes_sklearn.display.curve import EPSILONS
from dpbayes_sklearn.privacy.printing import at_least

__all__ = ["main"]

_TEXT = """\
Bayesian inference under differential privacy: naive Bayes and linear regression with every
mechanism, on data that ship with scikit-learn. Prints tables of scores, and writes figures and a
report to a folder.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration and return the exit status."""
    options = _options(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    print(textwrap.fill(_TEXT, 98))
    results = []
    for task in tasks(options.repeats):
        print(f"\n{task.title}\n{textwrap.fill(task.story, 98)}", flush=True)
        with wrapped_log():
            result = run(task, options.epsilon)
        _tell(result)
        for picture in result.pictures:
            (options.out / f"{picture.name}.png").write_bytes(picture.light)
        results.append(result)
    page = options.out / "report.html"
    page.write_text(report(results), encoding="utf-8")
    if not any(result.pictures for result in results):
        print("\nNo figures: install matplotlib with pip install 'dpbayes_sklearn[plot]'.")
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
    print(f"\n  {result.task.score} in cross-validation; inf is without privacy")
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
        tuple(names): str(result.models[names[0]].guarantee_).replace(
            f"under the {names[0]} mechanism, ", ""
        )
        for names in alike.values()
    }
