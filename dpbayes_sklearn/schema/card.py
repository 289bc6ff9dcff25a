"""A schema as an HTML card: what is declared about every column."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import NamedTuple

from dpbayes_sklearn._html import QUIET, Html, card, table, tag
from dpbayes_sklearn.schema.domains import Categories, Domain, Interval

__all__ = ["Described", "described", "schema_card"]

_LISTED = 10  # categories that are listed
_HEADS = ("column", "domain", "other values count as")


class Described(NamedTuple):
    """The values or bounds of a domain, and what other values count as."""

    domain: str
    others: str


@singledispatch
def described(domain: Domain) -> Described:
    """Describe a domain in words."""
    raise TypeError(f"Not a domain: {type(domain).__name__}.")


@described.register
def _(domain: Interval) -> Described:
    bounds = domain.short.replace("T00:00:00", "")  # of dates
    bins = "" if domain.bins is None else f", {domain.bins} bins"
    own = {"middle": "the middle", "indicator": "a separate value"}
    missing = own.get(str(domain.missing), f"{domain.stand_in:g}")
    return Described(bounds + bins, f"the nearest end; if missing, {missing}")


@described.register
def _(domain: Categories) -> Described:
    few = domain.n_values <= _LISTED
    text = ", ".join(map(str, domain.values)) if few else domain.short
    return Described(text, str(domain.unseen))


def schema_card(
    columns: Iterable[tuple[str, Domain]], target: Domain | None, guarantee: object
) -> Html:
    """Return one row for each column, the target last, and the guarantee of what was learned."""
    rows = [(name, *described(domain)) for name, domain in columns]
    title = f"Public domains of {len(rows)} columns"
    if target is not None:
        rows.append(("target", *described(target)))
    parts = [table(_HEADS, rows, text=range(len(_HEADS)))]
    if guarantee is not None:
        parts.append(tag("p", tag("span", "Learned: ", class_=QUIET), str(guarantee)))
    return card(title, *parts)
