"""The card of a fitted model: what those who use it should know, from public facts only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpbayes_sklearn._html import Html, card, table, tag
from dpbayes_sklearn.schema.card import described

__all__ = ["model_card"]

_ERROR = 0.05  # probability that a released number is off by more than what the card says


@dataclass(frozen=True)
class _Section:
    """A heading, sentences, and a table with its heads, which may be empty."""

    title: str
    text: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def model_card(model: Any, form: str) -> str:
    """Return the card of a fitted model as ``"markdown"`` or ``"html"``."""
    sections = [_what(model), _privacy(model), _columns(model), _reading(model)]
    return {"markdown": _markdown, "html": _html}[form](type(model).__name__, sections)


def _what(model: Any) -> _Section:
    released: Any = getattr(model.posterior_, "released", None)
    n = getattr(released, "n", None)
    records = "" if n is None else f", fitted to {n:,} records"
    facts = [f"{type(model).__name__} with {model.n_features_in_} features{records}."]
    if getattr(released, "laws", None):
        bound = released.error_bound(_ERROR)
        facts.append(
            f"With probability {1 - _ERROR:g}, no released number is more than {bound:.3g} away "
            "from the exact one."
        )
    facts.append(
        "How well it predicts has to be measured on records whose scores may be published: the "
        "guarantee does not extend to an exact score on private records."
    )
    return _Section("Model", tuple(facts))


def _privacy(model: Any) -> _Section:
    given = model.guarantee_
    return _Section("Privacy", (str(given), given.meaning))


def _columns(model: Any) -> _Section:
    schema = getattr(model, "schema_", None)
    if schema is None:
        known = getattr(model, "categories_", None)
        return _Section(
            "Values", (f"{'Yes or no' if known is None else described(known).domain}.",)
        )
    rows = [(name, described(domain).domain) for name, domain in schema.columns.items()]
    rows += [] if schema.target is None else [("target", described(schema.target).domain)]
    why = "Values outside their domain are moved into it, when fitting and when predicting."
    return _Section("Columns", (why,), ("column", "domain"), tuple(rows))


def _reading(model: Any) -> _Section:
    hidden = {"accountant", "random_state", "schema", "classes", "bounds", "bounds_X", "bounds_y"}
    rows = [
        (name, _plain(value))
        for name, value in model.get_params(deep=False).items()
        if name not in hidden
    ]
    exact = getattr(model.posterior_, "exact", None)
    known = {True: "This is the exact posterior given what was released.", None: ""}
    text = known.get(exact, "This is an approximate posterior given what was released.")
    return _Section("Parameters", (text,) if text else (), ("parameter", "value"), tuple(rows))


def _plain(value: Any) -> str:
    """Return a parameter as text; exact fractions, such as a share of a budget, in decimals."""
    return f"{float(value):.6g}" if isinstance(value, Fraction) else str(value)


def _markdown(title: str, sections: Iterable[_Section]) -> str:
    parts = [f"# {title}"]
    for section in sections:
        parts += [f"## {section.title}", *section.text]
        if section.rows:
            lines = (section.heads, ("---",) * len(section.heads), *section.rows)
            parts.append("\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines))
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html(title: str, sections: Iterable[_Section]) -> str:
    parts: list[Html] = []
    for section in sections:
        parts.append(tag("p", tag("b", section.title)))
        parts += [tag("p", sentence) for sentence in section.text]
        if section.rows:
            parts.append(table(section.heads, section.rows, text=range(len(section.heads))))
    return card(title, *parts)
