"""Small cards for notebooks and reports: escaped, self-contained, readable in light and dark.

A card inherits its text colour from the page, and all its other colours are semi-transparent greys,
so that it is readable in light and dark themes.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

__all__ = ["QUIET", "Html", "card", "meter", "table", "tag", "tiles"]

QUIET = "dpbayes-quiet"
ACCENTS = {"good": "#1f9e89", "weak": "#d98a1f", "bad": "#d1495b"}

STYLE = """
.dpbayes-card{border:1px solid rgba(128,128,128,.35);border-left:4px solid var(--dpbayes-accent);
border-radius:6px;background:rgba(128,128,128,.06);padding:.7em 1em .8em;margin:.6em 0;
max-width:46em;font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.dpbayes-card p{margin:.35em 0 0}
.dpbayes-card header{font-size:1.08em}
.dpbayes-card h4{margin:1em 0 0;font-size:1em}
.dpbayes-tiles{display:flex;flex-wrap:wrap;gap:.5em;margin:.6em 0 0;padding:0}
.dpbayes-tiles div{background:rgba(128,128,128,.11);border-radius:5px;padding:.25em .75em .3em;
min-width:3.2em}
.dpbayes-tiles dt{font-size:.78em;font-weight:400;opacity:.72;margin:0}
.dpbayes-tiles dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}
.dpbayes-card ul{margin:.15em 0 0;padding-left:1.3em}
.dpbayes-card li{margin:.1em 0}
.dpbayes-quiet{opacity:.72}
.dpbayes-meter{height:.55em;border-radius:.3em;background:rgba(128,128,128,.22);overflow:hidden;
margin:.6em 0 .2em}
.dpbayes-meter div{height:100%;background:var(--dpbayes-accent)}
.dpbayes-card table{border-collapse:collapse;margin:.6em 0 0;width:100%;font-size:.93em;border:0;
font-variant-numeric:tabular-nums}
.dpbayes-card table th,.dpbayes-card table td{text-align:right;padding:.22em .7em;border:0;
border-bottom:1px solid rgba(128,128,128,.22);background:none;white-space:nowrap}
.dpbayes-card table th{font-weight:600;border-bottom-color:rgba(128,128,128,.5)}
.dpbayes-card table .dpbayes-text{text-align:left;white-space:normal;overflow-wrap:anywhere}
.dpbayes-card table th.dpbayes-text{overflow-wrap:normal}
"""


class Html(str):
    """Markup. Any other string is text, and is escaped where markup is made of it."""

    __slots__ = ()


def tag(name: str, *children: object, **attributes: object) -> Html:
    """Return an element; what is not :class:`Html` among its children is escaped.

    >>> tag("p", "1 < 2 ", tag("b", "&"), class_="note")
    '<p class="note">1 &lt; 2 <b>&amp;</b></p>'
    """
    pairs = ((key.rstrip("_"), escape(str(value))) for key, value in attributes.items())
    start = "".join(f' {key}="{value}"' for key, value in pairs)
    inner = "".join(c if isinstance(c, Html) else escape(str(c)) for c in children)
    return Html(f"<{name}{start}>{inner}</{name}>")


def card(title: str, *parts: Html, accent: str = "good") -> Html:
    """Return a card with a title; ``accent`` is "good", "weak" or "bad"."""
    return tag(
        "section",
        tag("style", Html(STYLE)),
        tag("header", tag("b", title)),
        *parts,
        class_="dpbayes-card",
        style=f"--dpbayes-accent:{ACCENTS[accent]}",
    )


def tiles(figures: Iterable[tuple[str, object]]) -> Html:
    """Return named figures side by side."""
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in figures)
    return tag("dl", *pairs, class_="dpbayes-tiles")


def meter(share: float) -> Html:
    """Return a bar that is full at a share of 1."""
    width = f"width:{100 * min(max(share, 0.0), 1.0):.1f}%"
    return tag("div", tag("div", style=width), class_="dpbayes-meter")


def table(heads: Iterable[str], rows: Iterable[Iterable[object]], text: Iterable[int] = ()) -> Html:
    """Return a table of figures; columns numbered in ``text`` are aligned to the left."""
    left = set(text)

    def line(kind: str, cells: Iterable[object]) -> Html:
        marked = (
            tag(kind, cell, class_="dpbayes-text") if j in left else tag(kind, cell)
            for j, cell in enumerate(cells)
        )
        return tag("tr", *marked)

    body = (line("td", row) for row in rows)
    return tag("table", tag("thead", line("th", heads)), tag("tbody", *body))
