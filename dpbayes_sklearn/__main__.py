"""The commands of ``python -m dpbayes_sklearn``; an error is one line, with status 2."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dpbayes_sklearn._presenting import wrapped_log
from dpbayes_sklearn.base.published import from_json
from dpbayes_sklearn.command_line.demonstration import main as demonstration
from dpbayes_sklearn.command_line.files import (
    UNBOUNDED_NUMBERS,
    CsvFile,
    DataFile,
    FileError,
    Form,
    ReservedFile,
    as_number,
    column_kinds,
    mark_odd,
    read_columns,
    read_data,
    read_schema,
    refuse_to_overwrite,
    skeleton,
    typed_frame,
    with_all_columns,
)
from dpbayes_sklearn.exceptions import BudgetError, LedgerError
from dpbayes_sklearn.linear_model import BayesianLinearRegression
from dpbayes_sklearn.metrics import private_score
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes
from dpbayes_sklearn.privacy import BudgetAccountant, PrivacyUnit
from dpbayes_sklearn.privacy.budget import Cost
from dpbayes_sklearn.schema import Schema
from dpbayes_sklearn.schema.domains import Domain
from dpbayes_sklearn.serialization.document import MOST_CHARACTERS

_LEAST_ROOM = 2**16  # This many bytes are reserved for any model.
# Bytes reserved for a number: one of 20 characters may be in a model several times.
_BYTES_EACH = 256
_AUTO_BINS = 32  # n_bins="auto" makes no more bins than this.


def write_schema(options: Namespace) -> None:
    """Write a schema template; an existing file is never overwritten."""
    template = skeleton(column_kinds(options.data, _form(options)), options.target)
    with options.out.open("x", encoding="utf-8") as out:
        out.write(template)
    print(
        f"Wrote {options.out}. Fill in low and high, or the values, of every column. Take them "
        "from a codebook or common knowledge, not from the data. Delete columns that the model "
        "should not use."
    )


def fit(options: Namespace) -> None:
    """Fit naive Bayes, or a regression if the target is an interval, and write it as JSON."""
    read = {"data": options.data, "schema": options.schema, "ledger": options.ledger}
    refuse_to_overwrite(options.out, read)
    file, schema, X, y = _read(options)
    assert schema.target is not None
    if options.weights is not None and options.max_weight is None:
        raise FileError("--weights needs --max-weight, the most that a record may count: public.")
    kind = BayesianLinearRegression if schema.target.is_numeric else BayesianNaiveBayes
    with ReservedFile(options.out, room_for_model(schema)) as out:  # before anything is spent
        model: Any = kind(options.epsilon, schema=schema, accountant=_accountant(options))
        if options.mechanism is not None:
            model.set_params(mechanism=options.mechanism)
        if options.delta:
            model.set_params(delta=options.delta)
        model.set_params(privacy_unit=_unit(options), max_weight=options.max_weight)
        weights = (
            None if options.weights is None else file.column(options.weights, UNBOUNDED_NUMBERS)
        )
        groups = _groups(options, file)
        out.write(model.fit(X, y, groups=groups, sample_weight=weights).to_json())
    used = {*schema.columns, options.target, options.groups, options.weights}
    if unused := [name for name in file.names if name not in used]:
        print(f"Columns that are not in the schema were ignored: {', '.join(unused)}.")
    print(f"{model.guarantee_}\nWrote {options.out}.")


def learn(options: Namespace) -> None:
    """Learn ranges, bins and categories of columns privately, and write a schema."""
    read = {"data": options.data, "schema": options.schema, "ledger": options.ledger}
    refuse_to_overwrite(options.out, read)
    file = read_data(options.data, _form(options))
    given = options.schema
    if options.texts and not options.delta:
        raise FileError("--texts needs --delta, as in --delta 1e-6; or declare texts in --schema.")
    declared = {} if given is None else read_columns(given, options.target)
    kinds = {"numbers": options.numbers, "dates": options.dates, "texts": options.texts}
    frame = typed_frame(file, [*declared], kinds)
    if options.target not in frame:
        raise FileError(
            f"Say what the column {options.target!r} holds: --numbers, --dates or --texts, or "
            "declare it in --schema."
        )
    with ReservedFile(options.out, _LEAST_ROOM + _BYTES_EACH * len(frame.columns)) as out:
        schema = Schema.learn(
            frame,
            options.epsilon,
            columns=declared,
            target=options.target,
            bins=options.bins or None,
            delta=options.delta,
            groups=_groups(options, file),
            privacy_unit=_unit(options),
            accountant=_accountant(options),
        )
        out.write(schema.to_json())
    print(f"Wrote {options.out}.")


def _read(options: Namespace) -> tuple[DataFile, Schema, Any, Any]:
    """Return a file, its schema, the records and their targets."""
    file, schema = read_data(options.data, _form(options)), read_schema(options.schema)
    others = [getattr(options, name, None) for name in ("groups", "weights")]
    schema = with_all_columns(schema, file.names, [options.target, *others])
    assert schema.target is not None
    if options.target in schema.columns:
        raise FileError(
            f"{options.target!r} is the target, which {options.schema.name} has as a column, too: "
            "it would be predicted from itself. Delete it there."
        )
    return file, schema, _records(file, schema), file.column(options.target, schema.target)


def _groups(options: Namespace, file: DataFile) -> Any:
    return None if options.groups is None else file.texts(options.groups)


def _form(options: Namespace) -> Form:
    if options.sep == options.decimal:
        raise FileError("--sep and --decimal must differ.")
    return Form(options.sep, options.decimal, options.encoding, options.date_format)


def _unit(options: Namespace) -> PrivacyUnit:
    if options.groups is None and options.max_records != 1:
        raise FileError(
            "--max-records goes with --groups, the column that says whose record it is."
        )
    name = "record" if options.groups is None else "person"
    neighbours = "add_remove" if options.add_remove else "replace"
    return PrivacyUnit(name, max_records=options.max_records, neighbours=neighbours)


def check(options: Namespace) -> None:
    """Print how many values are outside their domain: not private, for the data owner."""
    file, schema, X, y = _read(options)
    for name, cells in [*zip(schema.columns, X.T, strict=True), (options.target, y)]:
        mark_odd(cells, file.texts(name))
    schema.check(X, y)
    if isinstance(file, CsvFile) and (other := file.other_lines):
        print(
            f"{other} of {len(file.lines)} lines are not {file.form.called}: --encoding may be "
            "another, such as latin-1."
        )


def room_for_model(schema: Schema) -> int:
    """Return bytes that are more than a model needs on the disk."""
    domains = schema.columns.values()
    if schema.target is not None and not schema.target.is_numeric:
        numbers = (1 + sum(map(_values, domains))) * schema.target.n_values
    else:
        numbers = (1 + sum(2 if d.is_numeric else d.n_values for d in domains)) ** 2
    return min(_LEAST_ROOM + _BYTES_EACH * numbers, MOST_CHARACTERS)


def _values(domain: Domain) -> int:
    """Return the largest number of values that a column has in a classifier."""
    return domain.in_bins(_AUTO_BINS).n_values


def predict(options: Namespace) -> None:
    """Write one line per record: the class and all probabilities, or mean and deviation."""
    refuse_to_overwrite(options.out, {"model": options.model, "data": options.data})
    model: Any = _model(options.model)
    X = _records(read_data(options.data, _form(options)), model.schema_)
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
        names = ["prediction", *(f"probability of {label}" for label in model.classes_)]
        rows = zip(model.classes_[probabilities.argmax(axis=1)], *probabilities.T, strict=True)
    else:
        names, rows = ["prediction", "standard deviation"], zip(*model.predict(X, return_std=True),
                                                                strict=True)  # fmt: skip
    _write(options.out, names, rows)


def evaluate(options: Namespace) -> None:
    """Publish metrics on private records, in one charge, and write the card with them."""
    read = {"model": options.model, "data": options.data, "ledger": options.ledger}
    refuse_to_overwrite(options.out, read)
    model, file = _model(options.model), read_data(options.data, _form(options))
    X, target = _records(file, model.schema_), model.schema_.target
    y = file.column(options.target, target)
    scoring = options.scoring or ("r2" if target.is_numeric else "accuracy")
    form, paid = _card_form(options.out), _accountant(options)
    with ReservedFile(
        options.out, room_for_model(model.schema_)
    ) as out:  # before anything is spent
        found = private_score(
            model,
            X,
            y,
            scoring=scoring,
            epsilon=options.epsilon,
            groups=_groups(options, file),
            accountant=paid,
        )
        out.write(_card(model, form, options, found))
    print(f"{found}\nWrote {options.out}.")


def card(options: Namespace) -> None:
    """Print the card of a model, or write it as Markdown or HTML."""
    refuse_to_overwrite(options.out, {"model": options.model})
    model = _model(options.model)
    if options.out is None:
        print(_card(model, "markdown", options))
        return
    options.out.write_text(_card(model, _card_form(options.out), options), encoding="utf-8")
    print(f"Wrote {options.out}.")


def _card_form(out: Path) -> str:
    form = {".md": "markdown", ".html": "html"}.get(out.suffix)
    if form is None:
        raise FileError("The file of a card must end with .md or .html.")
    return form


def _card(model: Any, form: str, options: Namespace, evaluation: Any = None) -> str:
    text: str = model.card(
        form, evaluation=evaluation, title=options.title, description=options.description
    )
    return text


def _records(file: DataFile, schema: Schema) -> Any:
    return np.stack([file.column(name, d) for name, d in schema.columns.items()], axis=1)


def _accountant(options: Namespace) -> BudgetAccountant | None:
    if options.ledger is None:
        for name in ("ceiling", "allotment"):
            if getattr(options, name) is not None:
                raise FileError(f"--{name} is about a ledger: name its file with --ledger.")
        return None
    if options.ceiling is not None:
        accountant = BudgetAccountant(options.ceiling, options.ceiling_delta, path=options.ledger)
    else:
        accountant = _existing(options.ledger)
    return accountant if options.allotment is None else accountant.allotment(options.allotment)


def _existing(ledger: Path) -> BudgetAccountant:
    if not ledger.exists():
        raise FileError(f"There is no ledger {ledger}. Create it with --ceiling.")
    return BudgetAccountant(path=ledger, existing=True)


def budget(options: Namespace) -> None:
    """Show what was spent of a ledger and is left of it, and of its allotments; or allot."""
    accountant = _existing(options.ledger)
    if options.allot is not None:
        accountant.allotment(*options.allot)
    ceiling = Cost(accountant.epsilon, accountant.delta)
    lines = [("all releases", accountant.total("sum"), accountant.remaining(), ceiling)]
    lines += [
        (part.name, part.spent.rounded_up(), part.left.rounded_down(), part.ceiling.rounded_down())
        for part in accountant.allotments()
    ]
    width = max(len(name) for name, *_ in lines)
    for name, spent, left, most in lines:
        print(f"{name:<{width}}  spent {spent}; left {left}; ceiling {most}")
    print(f"{len(accountant)} releases, unit: {accountant.unit or 'none yet'}")


def _model(path: Path) -> Any:
    model = from_json(path.read_text(encoding="utf-8", errors="replace"))
    if not hasattr(model, "schema_"):
        raise FileError(f"{path.name} is not a model of a table.")
    return model


def _write(path: Path | None, names: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    if path is None:
        csv.writer(sys.stdout).writerows([names, *rows])
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    print(f"Wrote {path}.")


_PROGRAM = "python -m dpbayes_sklearn"
# A command that raises one of these prints its message, without a traceback.
_SHOWN_ERRORS = (FileError, BudgetError, LedgerError, ValueError, TypeError, OSError)


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
        except _SHOWN_ERRORS as error:
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


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=_PROGRAM, description="Bayesian inference with differential privacy.")
    kinds = parser.add_subparsers(required=True, metavar="COMMAND")
    kinds.add_parser("demo", help="run the demonstration on data that ship with scikit-learn")
    _add_schema(kinds.add_parser("schema", help="write a schema template for a CSV file"))
    _add_learn(kinds.add_parser("learn", help="learn a schema privately from a CSV file"))
    _add_fit(kinds.add_parser("fit", help="fit a private model to a CSV file"))
    _add_check(kinds.add_parser("check", help="count values outside the schema (not private)"))
    _add_predict(kinds.add_parser("predict", help="make predictions for the records of a CSV file"))
    _add_evaluate(kinds.add_parser("evaluate", help="publish how good a model is on a CSV file"))
    _add_budget(kinds.add_parser("budget", help="show what is left of a ledger, and divide it"))
    _add_card(kinds.add_parser("card", help="describe a model for its users, in Markdown or HTML"))
    return parser


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


def _add_check(parser: argparse.ArgumentParser) -> None:
    _add_data(parser)
    parser.add_argument("--target", required=True, help="name of the column to predict")
    parser.add_argument("--schema", type=Path, required=True, help="public domains (JSON)")
    parser.set_defaults(run=check)


def _add_schema(parser: argparse.ArgumentParser) -> None:
    _add_data(parser)
    parser.add_argument("--target", required=True, help="name of the column to predict")
    parser.add_argument(
        "--out", type=Path, default=Path("schema.json"), help="file to write (%(default)s)"
    )
    parser.set_defaults(run=write_schema)


def _add_learn(parser: argparse.ArgumentParser) -> None:
    _add_data(parser)
    parser.add_argument("--target", required=True, help="name of the column to predict")
    for kind in ("numbers", "dates", "texts"):
        parser.add_argument(
            f"--{kind}", nargs="+", action="extend", default=[], metavar="COLUMN", help="to learn"
        )
    parser.add_argument("--schema", type=Path, help="domains of columns that are declared (JSON)")
    parser.add_argument("--bins", type=int, default=8, help="0 for ranges alone (%(default)s)")
    parser.add_argument("--delta", type=_epsilon, default=0.0, help="for texts")
    _add_spending(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("schema.json"), help="file to write (%(default)s)"
    )
    parser.set_defaults(run=learn)


def _add_fit(parser: argparse.ArgumentParser) -> None:
    _add_data(parser)
    parser.add_argument("--target", required=True, help="name of the column to predict")
    parser.add_argument("--schema", type=Path, required=True, help="public domains (JSON)")
    parser.add_argument("--mechanism", help="for example laplace, gaussian or auto")
    parser.add_argument("--delta", type=_epsilon, default=0.0, help="for gaussian and auto")
    parser.add_argument("--weights", metavar="COLUMN", help="how often a record counts")
    parser.add_argument(
        "--max-weight",
        type=int,
        metavar="W",
        help="the most that a record may count, with --weights",
    )
    _add_spending(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("model.json"), help="file to write (%(default)s)"
    )
    parser.set_defaults(run=fit)


def _add_spending(parser: argparse.ArgumentParser) -> None:
    """Add what is spent, who is protected, and the ledger."""
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
    _add_ledger(parser)


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


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="JSON file written by fit")
    _add_data(parser)
    parser.add_argument("--target", required=True, help="name of the column that was predicted")
    parser.add_argument("--epsilon", type=_epsilon, required=True, help="budget of all metrics")
    parser.add_argument("--scoring", nargs="+", help="metrics, such as accuracy roc_auc, or r2")
    parser.add_argument("--groups", metavar="COLUMN", help="whose record it is, as in fit")
    _add_ledger(parser)
    _add_texts(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("card.html"), help="card to write (%(default)s)"
    )
    parser.set_defaults(run=evaluate)


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
    parser.set_defaults(run=budget)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="JSON file written by fit")
    _add_data(parser)
    parser.add_argument("--out", type=Path, help="CSV file to write; standard output by default")
    parser.set_defaults(run=predict)


def _add_card(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="JSON file written by fit")
    parser.add_argument(
        "--out", type=Path, help=".md or .html file to write; standard output by default"
    )
    _add_texts(parser)
    parser.set_defaults(run=card)


if __name__ == "__main__":
    sys.exit(main())
