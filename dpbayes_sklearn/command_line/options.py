"""The options of every command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from dpbayes_sklearn import __version__
from dpbayes_sklearn.command_line.tables import as_number


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def _epsilon(text: str) -> float:
    """Parse an epsilon, which must be positive."""
    value = as_number(text)
    if value is None or not value > 0:
        raise argparse.ArgumentTypeError(f"must be a positive number. Got {text!r} instead.")
    return value


def _level(text: str) -> float:
    """Parse the coverage of an interval."""
    value = _epsilon(text)
    if value >= 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1. Got {text!r} instead.")
    return value


def _allotment(text: str) -> tuple[str, float]:
    """Parse the name and the epsilon of an allotment."""
    name, _, epsilon = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"must be a name and an epsilon, NAME=E. Got {text!r}.")
    return name, _epsilon(epsilon)


def _date_format(text: str) -> str:
    """Check a format of dates: a date that is written by it can be read."""
    with suppress(ValueError):
        day = datetime(2001, 2, 3, 4, 5, 6)
        if datetime.strptime(day.strftime(text), text) != datetime(1900, 1, 1):
            return text
    raise argparse.ArgumentTypeError(f"must be like %d.%m.%Y. Got {text!r} instead.")


def _add_data(parser: argparse.ArgumentParser) -> None:
    """Add the file, and how it is written."""
    parser.add_argument(
        "data", type=Path, help="CSV file with column names in the first line, or .parquet"
    )
    parser.add_argument("--sep", type=_one_letter, default=",", help="between cells (%(default)s)")
    parser.add_argument("--decimal", type=_one_letter, default=".", help="in numbers (%(default)s)")
    parser.add_argument("--encoding", default="utf-8-sig", help="of the file (UTF-8)")
    parser.add_argument(
        "--date-format", type=_date_format, help="such as %%d.%%m.%%Y; YYYY-MM-DD by default"
    )


def _one_letter(text: str) -> str:
    letter = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(letter) != 1 or letter in '"\r\n':
        raise argparse.ArgumentTypeError(f"must be one character. Got {text!r} instead.")
    return letter


def _add_target(parser: argparse.ArgumentParser, declared: bool = True) -> None:
    """Add the file, its target and, unless it is to be written, the schema."""
    _add_data(parser)
    parser.add_argument("--target", required=True, help="name of the column to predict")
    if declared:
        parser.add_argument("--schema", type=Path, required=True, help="public domains (JSON)")


def _add_out(parser: argparse.ArgumentParser, name: str | None, what: str) -> None:
    """Add the file to write; standard output if it has no name by default."""
    default = "standard output by default" if name is None else name
    parser.add_argument("--out", type=Path, default=name and Path(name), help=f"{what} ({default})")


def _add_schema(parser: argparse.ArgumentParser) -> None:
    _add_target(parser, declared=False)
    _add_out(parser, "schema.json", "file to write")


def _add_learn(parser: argparse.ArgumentParser) -> None:
    _add_target(parser, declared=False)
    for kind in ("numbers", "dates", "texts"):
        parser.add_argument(
            f"--{kind}", nargs="+", action="extend", default=[], metavar="COLUMN", help="to learn"
        )
    parser.add_argument("--schema", type=Path, help="domains of columns that are declared (JSON)")
    parser.add_argument("--bins", type=int, default=8, help="0 for ranges alone (%(default)s)")
    parser.add_argument("--delta", type=_epsilon, default=0.0, help="for texts")
    _add_unit(parser)
    _add_ledger(parser)
    _add_out(parser, "schema.json", "file to write")


def _add_model(parser: argparse.ArgumentParser) -> None:
    """Add what is fitted, what it spends and who is protected."""
    parser.add_argument(
        "--model",
        choices=("auto", "counts", "logistic"),
        help="for classes: naive Bayes (counts), logistic regression, or what suits the size of "
        "the table (auto, the default without --mechanism and --delta)",
    )
    parser.add_argument(
        "--effects",
        choices=("smooth", "linear"),
        help="of numbers, with --model logistic; linear ones have odds ratios per unit",
    )
    parser.add_argument(
        "--intervals", action="store_true", help="spend for them, with --model logistic"
    )
    parser.add_argument("--mechanism", help="for example laplace, gaussian or auto")
    parser.add_argument("--delta", type=_epsilon, default=0.0, help="for gaussian and auto")
    parser.add_argument(
        "--max-weight",
        type=int,
        metavar="W",
        help="the most that a record may count, with --weights",
    )
    _add_unit(parser)


def _add_plan(parser: argparse.ArgumentParser) -> None:
    _add_target(parser)
    parser.add_argument(
        "--records", type=int, required=True, metavar="N", help="their number, or a public guess"
    )
    _add_model(parser)


def _add_fit(parser: argparse.ArgumentParser) -> None:
    _add_target(parser)
    _add_model(parser)
    parser.add_argument("--weights", metavar="COLUMN", help="how often a record counts")
    _add_ledger(parser)
    _add_out(parser, "model.json", "file to write")


def _add_unit(parser: argparse.ArgumentParser) -> None:
    """Add what is spent, and who is protected."""
    parser.add_argument(
        "--epsilon", type=_epsilon, required=True, help="privacy budget of this release"
    )
    parser.add_argument("--groups", metavar="COLUMN", help="protect persons: whose record it is")
    parser.add_argument(
        "--max-records", type=int, default=1, help="of a person that count (%(default)s)"
    )
    parser.add_argument(
        "--add-remove", action="store_true", help="keep the number of records secret"
    )


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ledger", type=Path, help="SQLite file with all releases about these people"
    )
    parser.add_argument(
        "--ceiling", type=_epsilon, metavar="E", help="create the ledger with this total budget"
    )
    parser.add_argument(
        "--ceiling-delta", type=_epsilon, default=0.0, metavar="D", help="its total delta (0)"
    )
    parser.add_argument("--allotment", help="charge this part of the ledger's budget")


def _add_released(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="JSON file written by fit")


def _add_coefficients(parser: argparse.ArgumentParser) -> None:
    _add_released(parser)
    parser.add_argument(
        "--level", type=_level, default=0.95, help="coverage of the intervals (%(default)s)"
    )


def _add_predict(parser: argparse.ArgumentParser) -> None:
    _add_released(parser)
    _add_data(parser)
    parser.add_argument(
        "--id", nargs="+", default=[], metavar="COLUMN", help="columns to write beside predictions"
    )
    _add_out(parser, None, "CSV file to write")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_released(parser)
    _add_target(parser, declared=False)
    parser.add_argument("--epsilon", type=_epsilon, required=True, help="budget of all metrics")
    parser.add_argument("--scoring", nargs="+", help="metrics, such as accuracy roc_auc, or r2")
    parser.add_argument("--groups", metavar="COLUMN", help="whose record it is, as in fit")
    _add_ledger(parser)
    _add_texts(parser)
    _add_out(parser, "card.html", "card to write")


def _add_card(parser: argparse.ArgumentParser) -> None:
    _add_released(parser)
    _add_out(parser, None, ".md or .html file to write")
    _add_texts(parser)


def _add_texts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--title", help="of the card")
    parser.add_argument("--description", help="what the data are, for the card")


def _add_budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ledger", type=Path, help="SQLite file with all releases about some people")
    parser.add_argument(
        "--allot",
        type=_allotment,
        metavar="NAME=E",
        help="give a project or person a ceiling of its own",
    )


_COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], str]] = {
    "schema": (_add_schema, "write a schema template for a CSV file"),
    "learn": (_add_learn, "learn a schema privately from a CSV file"),
    "check": (_add_target, "count values outside the schema (not private)"),
    "plan": (
        _add_plan,
        "show what a fit would release, spend and achieve, without reading records",
    ),
    "fit": (_add_fit, "fit a private model to a CSV file"),
    "coefficients": (_add_coefficients, "show the coefficients of a regression, or odds ratios"),
    "predict": (_add_predict, "make predictions for the records of a CSV file"),
    "evaluate": (_add_evaluate, "publish how good a model is on a CSV file"),
    "card": (_add_card, "describe a model for its users, in Markdown or HTML"),
    "budget": (_add_budget, "show what is left of a ledger, and divide it"),
}


def parser(program: str, run: Mapping[str, Callable[[Any], None]]) -> argparse.ArgumentParser:
    """Return the parser of all commands, whose options name the function to ``run``."""
    made = _Parser(prog=program, description="Bayesian inference with differential privacy.")
    made.add_argument("--version", action="version", version=f"dpbayes_sklearn {__version__}")
    kinds = made.add_subparsers(required=True, metavar="COMMAND")
    for name, (add, about) in _COMMANDS.items():
        own = kinds.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.",
                               aliases=["odds"] if name == "coefficients" else [])  # fmt: skip
        add(own)
        own.set_defaults(run=run[name])
    kinds.add_parser("demo", help="run the demonstration on data that ship with scikit-learn")
    return made
