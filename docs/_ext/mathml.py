"""Formulae as MathML, which browsers draw by themselves: pages load nothing from elsewhere."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

# spellings that the converter of docutils does not know
SPELLINGS = (
    (re.compile(r"\\dots\b"), r"\\ldots"),
    (re.compile(r"\\(?:text|display)style\b"), ""),
    (re.compile(r"\\[bB]igg?[lr]?(?![a-z])"), ""),
    (re.compile(r"\\([td]?)frac\s*(\w)\s*(\w)"), r"\\\1frac{\2}{\3}"),
)


def mathml(formula: str, node: nodes.Node, as_block: bool) -> str:
    """Return the formula as MathML; one that cannot be read is a warning."""
    for spelling, known in SPELLINGS:
        formula = spelling.sub(known, formula)
    try:
        return str(latex2mathml.tex2mathml(formula, as_block=as_block))
    except (MathError, SyntaxError) as error:
        logging.getLogger(__name__).warning("formula %r: %s", formula, error, location=node)
        return ""


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a sentence."""
    translator.body.append(mathml(node.astext(), node, as_block=False))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    translator.body.append(
        f'<div class="formula">{mathml(node.astext(), node, as_block=True)}</div>\n'
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
