"""The report: one page that needs no other file."""

from __future__ import annotations

import platform
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import version

from dpbayes_sklearn._html import Html, tag
from dpbayes_sklearn.demonstration.figures import Picture
from dpbayes_sklearn.demonstration.results import Result
from dpbayes_sklearn.privacy.printing import at_least

__all__ = ["report"]

_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2128;--line:rgba(128,128,128,.3)}
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#dde3ea}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:70rem;margin:0 auto;padding:2.5rem 1.5rem 4rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .6rem}
h2{font-size:1.35rem;margin:3rem 0 .3rem;padding-top:1.6rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.8rem 0 .2rem}
p{margin:.3rem 0;max-width:46rem}
.quiet{opacity:.72}
.figures,.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28rem),1fr));
gap:1rem 1.6rem;align-items:start;margin-top:1rem}
.cards .dpbayes-card{margin:0}
figure{margin:0}
img{display:block;width:100%;height:auto;border-radius:6px}
figcaption{font-size:.85rem;opacity:.72;margin-top:.3rem}
.scroll{overflow-x:auto}
table.scores{border-collapse:collapse;margin:1.1rem 0;font-variant-numeric:tabular-nums}
table.scores th,table.scores td{padding:.35rem .9rem;text-align:right;
border-bottom:1px solid var(--line)}
table.scores th:first-child{text-align:left}
table.scores thead th{font-weight:600;white-space:nowrap}
table.scores tbody th{font-weight:500;overflow-wrap:anywhere}
@media (max-width:40rem){main{padding:1.5rem .9rem 3rem}table.scores{font-size:.72rem;width:100%}
table.scores th,table.scores td{padding:.3rem .22rem}table.scores thead th{white-space:normal}}
footer{margin-top:4rem;font-size:.85rem;opacity:.72}
"""

_LEAD = (
    "Each model below was fitted to personal records and released under differential privacy: the "
    "budget epsilon bounds how much any one record can change what is released. The curves show "
    "how much of the accuracy each mechanism keeps; the cards state the guarantees."
)


def report(results: Sequence[Result]) -> str:
    """Return the page."""
    body = tag(
        "main",
        tag("h1", "Bayesian inference under differential privacy"),
        tag("p", _LEAD),
        *(_section(result) for result in results),
        tag("footer", _versions()),
    )
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'),
        tag("title", "dpbayes_sklearn: demonstration"),
        tag("style", Html(_STYLE)),
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", body), lang="en") + "\n"


def _section(result: Result) -> Html:
    task = result.task
    cards = (Html(model._guarantee_card()) for model in result.models.values())
    return tag(
        "section",
        tag("h2", task.title),
        tag("p", task.story),
        tag("div", _scores(result), class_="scroll"),
        tag("div", *(_figure(picture) for picture in result.pictures), class_="figures"),
        tag("h3", f"Guarantees at epsilon = {at_least(result.epsilon)}"),
        tag("div", *cards, class_="cards"),
        tag("h3", "Total privacy cost"),
        tag("p", "All these models are about the same records, so their epsilons add up."),
        Html(result.accountant._repr_html_()),
        id=task.name,
    )


def _scores(result: Result) -> Html:
    """Return the table of mean scores, the closer to the non-private one the greener."""
    epsilons, best = result.epsilons, result.curve.baseline
    heads = [result.task.score, *(f"ε = {at_least(e)}" for e in epsilons), "no privacy"]
    rows = (
        tag(
            "tr",
            tag("th", name),
            *(_cell(result.mean(name, e), best) for e in epsilons),
            tag("td", f"{best:.3f}"),
        )
        for name in result.curve.scores
    )
    head = tag("tr", *(tag("th", text) for text in heads))
    return tag("table", tag("thead", head), tag("tbody", *rows), class_="scores")


def _cell(score: float, best: float) -> Html:
    kept = min(max(score / best, 0.0), 1.0)
    return tag("td", f"{score:.3f}", style=f"background:rgba(31,158,137,{0.45 * kept**3:.2f})")


def _figure(picture: Picture) -> Html:
    dark = f'<source media="(prefers-color-scheme:dark)" srcset="{_uri(picture.dark)}">'
    image = f'<img src="{_uri(picture.light)}" alt="{escape(picture.text)}">'
    return tag("figure", tag("picture", Html(dark), Html(image)), tag("figcaption", picture.text))


def _uri(png: bytes) -> str:
    return "data:image/png;base64," + b64encode(png).decode("ascii")


def _versions(packages: Iterable[str] = ("dpbayes_sklearn", "scikit-learn", "numpy")) -> str:
    named = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"Made with {named}, Python {platform.python_version()}."
