"""A schema to fill in, written from the types of a data frame."""

from __future__ import annotations

from typing import Any

from dpbayes_sklearn._compat import did_you_mean
from dpbayes_sklearn.data.frames import named_columns
from dpbayes_sklearn.data.reading import table_of
from dpbayes_sklearn.data.records import is_frame
from dpbayes_sklearn.schema import Schema
from dpbayes_sklearn.schema.values import Kind

_NUMBER, _TEXT = "Interval(..., ...)", "Categories([...])"
_BY_KIND: dict[Kind, tuple[str, str]] = {
    "booleans": ("Categories([False, True])", ""),
    "integers": (_NUMBER, f"integers; if they are codes, {_TEXT}"),
    "numbers": (_NUMBER, "numbers"),
    "dates": (_NUMBER, "dates, such as date(2020, 1, 31)"),
    "durations": (_NUMBER, "durations: convert them to numbers first"),
    "text": (_TEXT, "text; if it means dates, read it with parse_dates"),
}
"""The domain of a column by the kind of its type, and what is said about it."""
_HOW = """\
# Replace every ... by what is known without the records: a codebook, a form, common knowledge.
# Delete columns that the model should not use, such as names and numbers of people.
"""


def schema_template(frame: Any, target: str | None = None) -> str:
    """Return the Python code of a schema to fill in, from the names and types of the columns alone.

    No value is read, so the text tells nothing about the records.

    Parameters
    ----------
    frame : data frame
        Of pandas, polars, pyarrow or dask, or a query that has a ``limit``, which is asked for no
        row.
    target : str, optional
        Name of the column to predict.

    Returns
    -------
    str
        Lines to paste into a program. Every ``...`` is to be replaced: a schema refuses it.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpbayes_sklearn import Schema
    >>> frame = pd.DataFrame({"age": [31, 48], "job": ["clerk", "nurse"], "ill": [True, False]})
    >>> print(Schema.template(frame, target="ill"))
    # Replace every ... by what is known without the records: a codebook, a form, common knowledge.
    # Delete columns that the model should not use, such as names and numbers of people.
    from dpbayes_sklearn import Categories, Interval, Schema
    <BLANKLINE>
    schema = Schema(
        {
            "age": Interval(..., ...),  # integers; if they are codes, Categories([...])
            "job": Categories([...]),  # text; if it means dates, read it with parse_dates
        },
        target=Categories([False, True]),
    )
    """
    kinds = kinds_of_columns(frame)
    if target is not None and target not in kinds:
        raise ValueError(
            f"The frame lacks the column {target!r} that is the target."
            f"{did_you_mean(target, kinds)}"
        )
    columns = [_line(f"        {_quoted(name)}: ", kind) for name, kind in kinds.items()
               if name != target]  # fmt: skip
    own = [] if target is None else [_line("    target=", kinds[target])]
    imports = "from dpbayes_sklearn import Categories, Interval, Schema"
    if "dates" in kinds.values():
        imports = f"from datetime import date\n\n{imports}"
    return "\n".join(
        [f"{_HOW}{imports}\n", "schema = Schema(", "    {", *columns, "    },", *own, ")"]
    )


def kinds_of_columns(frame: Any) -> dict[str, Kind]:
    """Return what the type of every column says about its values, by name; no value is read."""
    if hasattr(type(frame), "limit"):  # a query: only pandas and pyarrow have none
        frame = frame.limit(0)
    frame, *_ = named_columns(frame, None, None)
    if not is_frame(frame):
        raise TypeError(
            "Schema.template takes a data frame, whose columns have names and types. "
            f"Got {type(frame).__name__} instead."
        )
    table = table_of(frame)
    return {name: table.kind(j) for j, name in enumerate(table.names or [])}


def _line(start: str, kind: Kind) -> str:
    domain, comment = _BY_KIND.get(kind, _BY_KIND["text"])
    return f"{start}{domain}," + (f"  # {comment}" if comment else "")


def _quoted(name: str) -> str:
    """Return a name as Python code, in double quotes where that is as simple.

    >>> print(_quoted("age"), _quoted('the "real" age'))
    "age" 'the "real" age'
    """
    code = repr(name)
    return code if '"' in name or code[0] == '"' else f'"{code[1:-1]}"'


Schema.template = staticmethod(schema_template)
