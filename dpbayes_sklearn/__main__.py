"""The commands of ``dpbayes`` and ``python -m dpbayes_sklearn``; an error is one line, status 2."""

from __future__ import annotations

import csv
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any

from dpbayes_sklearn import planning
from dpbayes_sklearn._presenting import wrapped_log
from dpbayes_sklearn.base.published import from_json
from dpbayes_sklearn.classifier import BayesianClassifier
from dpbayes_sklearn.command_line.demonstration import main as demonstration
from dpbayes_sklearn.command_line.files import (
    FileError,
    ReservedFile,
    place_of,
    read_columns,
    read_schema,
    refuse_to_overwrite,
    skeleton,
    with_all_columns,
)
from dpbayes_sklearn.command_line.options import parser
from dpbayes_sklearn.command_line.tables import (
    REPLACED,
    UNBOUNDED_NUMBERS,
    CsvFile,
    DataFile,
    Form,
    column_kinds,
    parsed,
    read_cells,
    read_data,
    stored,
    typed_frame,
)
from dpbayes_sklearn.data.records import Columns
from dpbayes_sklearn.exceptions import BudgetError, LedgerError
from dpbayes_sklearn.linear_model import BayesianLinearRegression, BayesianLogisticRegression
from dpbayes_sklearn.metrics import private_score
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes
from dpbayes_sklearn.privacy import BudgetAccountant, PrivacyUnit
from dpbayes_sklearn.schema import Schema
from dpbayes_sklearn.schema.declared import NOT_PRIVATE, Outside
from dpbayes_sklearn.schema.domains import Domain
from dpbayes_sklearn.serialization.document import MOST_CHARACTERS

_LEAST_ROOM = 2**16  # This many bytes are reserved for any model.
# Bytes reserved for a number: one of 20 characters may be in a model several times.
_BYTES_EACH = 256
_AUTO_BINS = 32  # n_bins="auto" makes no more bins than this.

_CLASSIFIERS: dict[str | None, Any] = {
    None: BayesianClassifier,
    "auto": BayesianClassifier,
    "counts": BayesianNaiveBayes,
    "logistic": BayesianLogisticRegression,
}
_PROGRAM = "dpbayes"
# A command that raises one of these prints its message, without a traceback.
_SHOWN_ERRORS = (FileError, BudgetError, LedgerError, ValueError, TypeError, OSError)


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
    """Fit a classifier, or a regression if the target is an interval, and write it as JSON."""
    read = {"data": options.data, "schema": options.schema, "ledger": options.ledger}
    refuse_to_overwrite(options.out, read)
    if options.weights is not None and options.max_weight is None:
        raise FileError("--weights needs --max-weight, the most that a record may count: public.")
    file, schema = _opened(options)
    X, others = _records(file, schema, options)
    with ReservedFile(options.out, room_for_model(schema)) as out:  # before anything is spent
        model = _estimator(options, schema).set_params(accountant=_accountant(options))
        weights = others.get("weights")
        model.fit(X, others["target"], groups=others.get("groups"), sample_weight=weights)
        out.write(model.to_json())
    used = {*schema.columns, options.target, options.groups, options.weights}
    if unused := [name for name in file.names if name not in used]:
        print(f"Columns that are not in the schema were ignored: {', '.join(unused)}.")
    print(f"{model.guarantee_}\nWrote {options.out}.")
    _remind_of_the_ledger(options)


def _estimator(options: Namespace, schema: Schema) -> Any:
    """Return the model that is asked for, not fitted."""
    assert schema.target is not None
    of_counts = options.mechanism is not None or bool(options.delta)
    of_logistic = {"effects": options.effects, "intervals": options.intervals}
    kind: Any = _CLASSIFIERS["counts" if of_counts and not options.model else options.model]
    if schema.target.is_numeric:
        if options.model is not None:
            raise FileError("--model is for classes; an interval as the target is regressed.")
        kind = BayesianLinearRegression
    if of_counts and kind is BayesianClassifier:
        raise FileError("--mechanism and --delta go with --model counts or logistic.")
    if any(of_logistic.values()) and kind is not BayesianLogisticRegression:
        raise FileError("--effects and --intervals go with --model logistic.")
    given = {"mechanism": options.mechanism, "delta": options.delta, **of_logistic}
    return kind(
        options.epsilon,
        schema=schema,
        privacy_unit=_unit(options),
        max_weight=options.max_weight,
        **{name: value for name, value in given.items() if value},
    )


def plan(options: Namespace) -> None:
    """Print what a fit would release and spend, and what to expect; no record is read."""
    names = [*column_kinds(options.data, _form(options))]
    schema = _declared(options, names)
    for name in (*schema.columns, options.target):
        place_of(name, names)
    model = _estimator(options, schema)
    print(model.plan(options.records))
    print(planning.report(model, options.records))


def _remind_of_the_ledger(options: Namespace) -> None:
    if options.ledger is None:
        print("No --ledger was given: nothing adds this up with other releases about these people.")


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
    frame, groups = typed_frame(file, declared, kinds, options.groups)
    if options.target not in frame.columns:
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
            groups=groups,
            privacy_unit=_unit(options),
            accountant=_accountant(options),
        )
        out.write(schema.to_json())
    print(f"Wrote {options.out}.")
    _remind_of_the_ledger(options)


def _opened(options: Namespace) -> tuple[DataFile, Schema]:
    """Return a file and its schema."""
    file = read_data(options.data, _form(options))
    return file, _declared(options, file.names)


def _records(file: DataFile, schema: Schema, options: Namespace) -> tuple[Columns, dict[str, Any]]:
    """Return the columns of a schema, and by option the target, persons and weights if named."""
    domains = {"target": schema.target, "groups": None, "weights": UNBOUNDED_NUMBERS}
    named = {
        option: (name, domain)
        for option, domain in domains.items()
        if (name := getattr(options, option, None)) is not None
    }
    kept = stored(file, [*schema.columns.items(), *named.values()])
    others = dict(zip(named, kept[len(schema) :], strict=True))
    return Columns([*schema.columns], kept[: len(schema)]), others


def _declared(options: Namespace, names: Sequence[str]) -> Schema:
    """Return the schema of a file with these columns."""
    others = [getattr(options, name, None) for name in ("groups", "weights")]
    schema = with_all_columns(read_schema(options.schema), names, [options.target, *others])
    if options.target in schema.columns:
        raise FileError(
            f"{options.target!r} is the target, which {options.schema.name} has as a column, too: "
            "it would be predicted from itself. Delete it there."
        )
    return schema


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
    file, schema = _opened(options)
    domains: dict[str, Any] = {**schema.columns, options.target: schema.target}
    found, n, other = dict.fromkeys(domains, Outside(0, 0)), 0, 0
    near = dict.fromkeys(domains, 0)
    for name in domains:
        place_of(name, file.names)
    for batch in file.batches(file.names):
        for name, domain in domains.items():
            cells = read_cells(batch[name], domain, file.form, odd=...)
            found[name] = found[name].plus(Outside.of(domain, cells))
            near[name] += _spelled_otherwise(batch[name], domain)
        lines = [*zip(*batch.values(), strict=True)]
        n, other = n + len(lines), other + sum(any(map(_is_replaced, line)) for line in lines)
    print(NOT_PRIVATE)
    for name, domain in domains.items():
        print(found[name].line("target" if name == options.target else name, domain, n))
        if near[name]:
            print(f"  listed with other case or spaces: {near[name]}. List these spellings, too.")
        dates = domain.is_numeric and domain.dates
        if dates and found[name].outside == n - found[name].missing > 0:
            print("  None is such a date: --date-format may be another, such as %d/%m/%Y.")
    if isinstance(file, CsvFile) and other:
        print(
            f"{other} of {n} lines are not {file.form.called}: --encoding may be another, such as "
            "latin-1."
        )


def _spelled_otherwise(cells: Iterable[Any], domain: Domain) -> int:
    """Count the texts that are no category only by their case or by spaces around them."""
    known = {value for value in getattr(domain, "values", ()) if isinstance(value, str)}
    folded = {value.strip().casefold() for value in known}
    texts = (cell for cell in cells if isinstance(cell, str) and cell not in known)
    return sum(text.strip().casefold() in folded for text in texts)


def _is_replaced(cell: Any) -> bool:
    return isinstance(cell, str) and REPLACED in cell


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
    file = read_data(options.data, _form(options))
    with TemporaryFile("w+", newline="", encoding="utf-8") as written:
        csv.writer(written).writerows(_predictions(model, file, options.id))
        written.seek(0)
        if options.out is None:
            copyfileobj(written, sys.stdout)
            return
        with options.out.open("w", newline="", encoding="utf-8") as out:
            copyfileobj(written, out)
    print(f"Wrote {options.out}.")


def _predictions(model: Any, file: DataFile, ids: Sequence[str]) -> Iterator[Iterable[Any]]:
    """Yield the names of the columns, and a line for every record."""
    domains, classifies = model.schema_.columns, hasattr(model, "predict_proba")
    names = ["prediction", "standard deviation"]
    if classifies:
        names = ["prediction", *(f"probability of {label}" for label in model.classes_)]
    yield [*ids, *names]
    for batch in file.batches([*domains, *ids]):
        X = parsed(batch, domains, file.form)
        if classifies:
            probabilities = model.predict_proba(X)
            columns = [model.classes_[probabilities.argmax(axis=1)], *probabilities.T]
        else:
            columns = model.predict(X, return_std=True)
        yield from zip(*(batch[name] for name in ids), *columns, strict=True)


def coefficients(options: Namespace) -> None:
    """Print the coefficients of a regression with their intervals; of classes, odds ratios."""
    model = _model(options.model)
    model = getattr(model, "chosen_", model)
    if not hasattr(model, "coefficients"):
        raise FileError(
            f"{options.model.name} has no coefficients: fit a regression, as with --model logistic."
        )
    print(model.coefficients(options.level))


def evaluate(options: Namespace) -> None:
    """Publish metrics on private records, in one charge, and write the card with them."""
    read = {"model": options.model, "data": options.data, "ledger": options.ledger}
    refuse_to_overwrite(options.out, read)
    model, file = _model(options.model), read_data(options.data, _form(options))
    X, others = _records(file, model.schema_, options)
    scoring = options.scoring or ("r2" if model.schema_.target.is_numeric else "accuracy")
    form, paid = _card_form(options.out), _accountant(options)
    with ReservedFile(
        options.out, room_for_model(model.schema_)
    ) as out:  # before anything is spent
        found = private_score(
            model,
            X,
            others["target"],
            scoring=scoring,
            epsilon=options.epsilon,
            groups=others.get("groups"),
            accountant=paid,
        )
        out.write(_card(model, form, options, found))
    print(f"{found}\nWrote {options.out}.")
    _remind_of_the_ledger(options)


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
    print(accountant)


def _model(path: Path) -> Any:
    model = from_json(path.read_text(encoding="utf-8", errors="replace"))
    if not hasattr(model, "schema_"):
        raise FileError(f"{path.name} is not a model of a table.")
    return model


_COMMANDS = {
    "schema": write_schema,
    "learn": learn,
    "check": check,
    "plan": plan,
    "fit": fit,
    "coefficients": coefficients,
    "predict": predict,
    "evaluate": evaluate,
    "card": card,
    "budget": budget,
}


def script() -> int:
    """Run ``dpbayes``, which shows its help when it is called alone."""
    return main(sys.argv[1:] or ["--help"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status; without a name it is the demonstration."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] == "demo":
        return demonstration(given[1:])
    if (not given or given[0].startswith("-")) and given not in (["-h"], ["--help"], ["--version"]):
        return demonstration(given)
    options = parser(_PROGRAM, _COMMANDS).parse_args(given)
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


def _one_line(error: Exception) -> str:
    """Return the message of an error; the system's own for a file, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}"
    return " ".join(str(error).split())


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
