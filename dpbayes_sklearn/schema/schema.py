"""The public description of a table, by column name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpbayes_sklearn.schema.domains import Categories, Domain, Interval

__all__ = ["Schema"]


@dataclass(frozen=True, init=False)
class Schema:
    """Public domains of the columns, and of the target if given.

    Everything in a schema is public: write it from a codebook or from what anybody knows, never
    from the data.

    Parameters
    ----------
    columns : mapping of str to Interval or Categories
        One domain per column. For data frames columns are found by name; for arrays they are
        taken in the order of the mapping.
    target : Interval or Categories, optional
        Domain of the target: the classes of a classifier or the bounds of a regression.

    Examples
    --------
    >>> schema = Schema({"age": Interval(17, 90, bins=12), "job": Categories(["a", "b"])})
    >>> Schema.from_json(schema.to_json()) == schema
    True
    """

    columns: Mapping[str, Domain]
    target: Domain | None

    def __init__(self, columns: Mapping[str, Domain], target: Domain | None = None) -> None:
        if not isinstance(columns, Mapping):
            raise TypeError(
                "Schema columns must be a mapping of column names to Interval or Categories. "
                f"Got {type(columns).__name__} instead."
            )
        for name, domain in [*columns.items(), *([("target", target)] if target else [])]:
            if not isinstance(domain, (Interval, Categories)):
                raise TypeError(
                    f"The domain of {name!r} must be an Interval or Categories. "
                    f"Got {type(domain).__name__} instead."
                )
        object.__setattr__(self, "columns", {str(k): v for k, v in columns.items()})
        object.__setattr__(self, "target", target)

    @property
    def classes(self) -> Categories:
        """Return the target's domain, which must be categories."""
        if not isinstance(self.target, Categories):
            raise ValueError("A classifier needs the target of its schema to be Categories.")
        return self.target

    def __len__(self) -> int:
        return len(self.columns)

    def __hash__(self) -> int:
        return hash((tuple(self.columns.items()), self.target))

    def to_json(self) -> str:
        """Return the schema as JSON text; categories must be JSON values."""
        columns = {name: domain.to_dict() for name, domain in self.columns.items()}
        target = self.target.to_dict() if self.target else None
        return json.dumps({"columns": columns, "target": target})

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Return the schema written by :meth:`to_json`."""
        try:
            content = json.loads(text)
            columns = {name: _domain(fields) for name, fields in content["columns"].items()}
            target = _domain(content["target"]) if content["target"] else None
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise ValueError("The text is not a Schema written by Schema.to_json().") from error
        return cls(columns, target)


def _domain(fields: Mapping[str, Any]) -> Domain:
    return Categories(**fields) if "values" in fields else Interval(**fields)
