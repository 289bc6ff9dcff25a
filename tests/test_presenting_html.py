"""Markup that is escaped and that needs nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from dpbayes_sklearn._presenting import STYLE, Html, card, meter, table, tag


class Balanced(HTMLParser):
    """Fails on an element that is not closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "<", Html("<br>")) == "<p>&lt;<br></p>"
    assert tag("p", 1.5, None) == "<p>1.5None</p>"


def test_attributes_are_escaped() -> None:
    assert tag("p", title='" onclick="x') == '<p title="&quot; onclick=&quot;x"></p>'


def test_a_card_is_balanced_and_needs_no_other_file() -> None:
    page = card("a <title>", table(["a", "b"], [["<1>", 2], [3, "&"]], text=[0]), meter(0.5))
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert not re.search(r"https?:|url\(|@import|<script|src=", page)


@pytest.mark.parametrize(("share", "width"), [(-1, "0.0%"), (0.25, "25.0%"), (7, "100.0%")])
def test_a_meter_stays_within_its_frame(share: float, width: str) -> None:
    assert f'style="width:{width}"' in meter(share)


def test_no_colour_of_text_is_fixed() -> None:
    """Text has the colour of the page it is in, so it is readable on any background."""
    assert not re.search(r"[{;]\s*color:", STYLE)


def test_cells_of_a_wide_table_carry_the_heads_of_their_columns() -> None:
    """On a narrow page they stand below the name of their row, where the heads are hidden."""
    heads = ["name", "a", "b", "c", "d", "<e>"]
    wide = table(heads, [range(6)], text=[0])
    assert '<td class="dpbayes-text" data-head="name">0</td>' in wide
    assert '<td data-head="&lt;e&gt;">5</td>' in wide
    assert "data-head" not in table(heads[:3], [range(3)])
    assert "attr(data-head)" in STYLE
