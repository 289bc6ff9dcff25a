"""The commands and their options; an error is one line, with exit status 2."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from dpbayes_sklearn._log import wrapped_log
from dpbayes_sklearn.command_line import commands
from dpbayes_sklearn.command_line.csv_file import FileError, as_number
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
        warnings.showwarning = _show_warning
        try:
            options.run(options)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except _ERRORS as error:
            print(f"{_PROGRAM} {given[0]}: error: {_one_line(error)}", file=sys.stderr)
            return 2
    return 0


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def _one_line(error: Exception) -> str:
    """Return the message of an error; the system's own for a file, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}"
    return " ".join(str(error).split())


def _epsilon(text: str) -> float:
    """Parse an epsilon, which must be positive."""
    value = as_number(text)
    if value is None or not value > 0:
        raise argparse.ArgumentTypeError(f"must be a positive number. Got {text!r} instead.")
    return value


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=_PROGRAM, description="Bayesian inference with differential privacy.")
    kinds = parser.add_subparsers(required=True, metavar="COMMAND")
    kinds.add_parser("demo", help="run the demonstration on data that ship with scikit-learn")
    _add_schema(kinds.add_parser("schema", help="write a schema template for a CSV file"))
    _add_fit(kinds.add_parser("fit", help="fit a private model to a CSV file"))
    _add_predict(kinds.add_parser("predict", help="make predictions for the records of a CSV file"))
    _add_card(kinds.add_parser("card", help="describe a model for its users, in Markdown or HTML"))
    return parser


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, help="CSV file with column names in the first line")
    parser.add_argument("--target", required=True, help="name of the column to predict")
    parser.add_argument(
        "--out", type=Path, default=Path("schema.json"), help="file to write (%(default)s)"
    )
    parser.set_defaults(run=commands.write_schema)


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, help="CSV file with column names in the first line")
    parser.add_argument("--target", required=True, help="name of the column to predict")
    parser.add_argument("--schema", type=Path, required=True, help="public domains (JSON)")
    parser.add_argument(
        "--epsilon", type=_epsilon, required=True, help="privacy budget of this fit"
    )
    parser.add_argument("--mechanism", help="for example laplace or fourier")
    parser.add_argument(
        "--ledger", type=Path, help="SQLite file with all releases about these people"
    )
    parser.add_argument(
        "--ceiling", type=_epsilon, metavar="E", help="create the ledger with this total budget"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("model.json"), help="file to write (%(default)s)"
    )
    parser.set_defaults(run=commands.fit)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="JSON file written by fit")
    parser.add_argument("data", type=Path, help="CSV file with the columns of the schema")
    parser.add_argument("--out", type=Path, help="CSV file to write; standard output by default")
    parser.set_defaults(run=commands.predict)


def _add_card(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="JSON file written by fit")
    parser.add_argument(
        "--out", type=Path, help=".md or .html file to write; standard output by default"
    )
    parser.set_defaults(run=commands.card)
