"""What the commands are, and how errors are told: in one line, with exit status 2."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from dpbayes_sklearn._log import wrapped_log
from dpbayes_sklearn.command_line import commands
from dpbayes_sklearn.command_line.csv_file import FileError
from dpbayes_sklearn.demonstration import main as demonstration
from dpbayes_sklearn.exceptions import BudgetError, LedgerError

__all__ = ["main"]

_PROGRAM = "python -m dpbayes_sklearn"
_ERRORS = (FileError, BudgetError, LedgerError, ValueError, TypeError, OSError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status; without a name it is the demonstration."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] == "demo":
        return demonstration(given[1:])
    if (not given or given[0].startswith("-")) and given not in (["-h"], ["--help"]):
        return demonstration(given)
    options = _parser().parse_args(given)
    with warnings.catch_warnings(), wrapped_log():
        warnings.showwarning = _tell_warning
        try:
            options.run(options)
        except _ERRORS as error:
            text = " ".join(str(error).split())
            print(f"{_PROGRAM} {given[0]}: error: {text}", file=sys.stderr)
            return 2
    return 0


def _tell_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM, description="Bayesian inference under differential privacy."
    )
    kinds = parser.add_subparsers(required=True, metavar="COMMAND")
    kinds.add_parser("demo", help="the demonstration, on data that ship with scikit-learn")
    _add_schema(kinds.add_parser("schema", help="write a schema to fill in, from a CSV file"))
    _add_fit(kinds.add_parser("fit", help="fit a private model to a CSV file"))
    _add_predict(kinds.add_parser("predict", help="predict for the records of a CSV file"))
    _add_card(kinds.add_parser("card", help="describe a model for those who will use it"))
    return parser


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, help="CSV file with a line of column names")
    parser.add_argument("--target", required=True, help="name of the column to predict")
    parser.add_argument("--out", type=Path, default=Path("schema.json"), help="(%(default)s)")
    parser.set_defaults(run=commands.write_schema)


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, help="CSV file with a line of column names")
    parser.add_argument("--target", required=True, help="name of the column to predict")
    parser.add_argument("--schema", type=Path, required=True, help="public domains (JSON)")
    parser.add_argument("--epsilon", type=float, required=True, help="budget of this fit")
    parser.add_argument("--mechanism", help="such as laplace or fourier")
    parser.add_argument("--ledger", type=Path, help="ledger of all releases about these people")
    parser.add_argument(
        "--ceiling", type=float, metavar="E", help="make a new ledger that allows so much epsilon"
    )
    parser.add_argument("--out", type=Path, default=Path("model.json"), help="(%(default)s)")
    parser.set_defaults(run=commands.fit)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="what fit wrote")
    parser.add_argument("data", type=Path, help="CSV file with the columns of the schema")
    parser.add_argument("--out", type=Path, help="CSV file to write; printed if left out")
    parser.set_defaults(run=commands.predict)


def _add_card(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="what fit wrote")
    parser.add_argument("--out", type=Path, help=".md or .html file; printed if left out")
    parser.set_defaults(run=commands.card)
