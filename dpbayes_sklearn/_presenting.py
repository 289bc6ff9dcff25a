"""What users see: messages and progress bars, cards in HTML, draws for ArviZ, axes.

A card is escaped and self-contained. It inherits its text colour from the page, and all its other
colours are semi-transparent greys, so that it is readable in light and dark themes.

Axes are created without touching pyplot's global state.
"""

from __future__ import annotations

import logging
import re
import sys
import textwrap
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
from sklearn.utils import check_scalar

_LINE_WIDTH = 98  # A line of a terminal has this many characters.
_LOGGER = logging.getLogger("dpbayes_sklearn")

Withheld = list[tuple[type[Warning], str]]
_withheld: ContextVar[Withheld | None] = ContextVar("dpbayes_sklearn_withheld", default=None)

QUIET = "dpbayes-quiet"  # The CSS class of secondary text.
# The colour of a card's border, by how well the guarantee protects.
ACCENTS = {"good": "#1f9e89", "weak": "#d98a1f", "bad": "#d1495b"}
STYLE = """
.dpbayes-card{border:1px solid rgba(128,128,128,.35);border-left:4px solid var(--dpbayes-accent);
border-radius:6px;background:rgba(128,128,128,.06);padding:.7em 1em .8em;margin:.6em 0;
max-width:52em;font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
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
.dpbayes-scroll{overflow-x:auto}
.dpbayes-card table{border-collapse:collapse;margin:.6em 0 0;width:100%;font-size:.93em;border:0;
font-variant-numeric:tabular-nums}
.dpbayes-card table th,.dpbayes-card table td{text-align:right;padding:.22em .7em;border:0;
border-bottom:1px solid rgba(128,128,128,.22);background:none;white-space:nowrap}
.dpbayes-card table th{font-weight:600;border-bottom-color:rgba(128,128,128,.5)}
.dpbayes-card table .dpbayes-text{text-align:left;white-space:normal;overflow-wrap:anywhere}
.dpbayes-card table th.dpbayes-text{overflow-wrap:normal}
.dpbayes-card:has(.dpbayes-wide){max-width:72em;container-type:inline-size}
.dpbayes-wide .dpbayes-text:first-child{min-width:9em}
@container (max-width:720px){
.dpbayes-card .dpbayes-wide thead{display:none}
.dpbayes-card .dpbayes-wide tr{display:flex;flex-wrap:wrap;gap:0 1.2em;padding:.35em 0;
border-bottom:1px solid rgba(128,128,128,.22)}
.dpbayes-card .dpbayes-wide td{border:0;padding:0}
.dpbayes-card .dpbayes-wide td:first-child{flex-basis:100%;font-weight:600;text-align:left}
.dpbayes-wide td:not(:first-child)::before{content:attr(data-head) " ";opacity:.72}
}
"""
_WIDE = (
    6  # A table with this many columns lists the cells of a row below its name on a narrow page.
)
# A colour-blind-safe palette that is legible on white and on black.
COLOURS = ("#2f7fc1", "#e08a1e", "#1f9e89", "#c75d9b", "#8a6fd1", "#7d8794")
MARKERS = ("o", "s", "^", "D", "v", "P")  # The markers of curves, in the order of their colours.


def withheld() -> Withheld | None:
    """Return the list of the warnings that are not given in this context; None outside of one."""
    return _withheld.get()


def is_heard() -> bool:
    """Tell whether a remark would be logged, so that it can be made once in a process."""
    return withheld() is None and not _LOGGER.disabled


def remark(text: str, *facts: object) -> None:
    """Log a message, unless this context is silent."""
    if is_heard():
        _LOGGER.warning(text, *facts, stacklevel=2)


class _WhereSilent(type):
    """The type of a class that all warnings are of, in a silent context; none in any other."""

    def __subclasscheck__(cls, category: type) -> bool:
        return withheld() is not None


class _AnyWarning(Warning, metaclass=_WhereSilent): ...


_IGNORED = ("ignore", None, _AnyWarning, None, 0)  # An entry of warnings.filters.


@contextmanager
def silence() -> Iterator[Withheld]:
    """Suppress warnings and log messages in this context; yield the library's own warnings.

    A context is that of a thread or a task (``contextvars``). A switch of the process, such as
    ``Logger.disabled`` or ``warnings.catch_warnings``, would be turned back by the first of two
    threads that ends, and left on for good by the second. So nothing is turned back but the
    context. For warnings of other libraries a filter stays that matches in silent contexts only.
    A worker, and a thread that is started within, have contexts of their own.
    """
    # from Python 3.14 on a context may have filters of its own, which cannot be looked at
    if sys.version_info >= (3, 14) or warnings.filters[:1] != [_IGNORED]:
        warnings.simplefilter("ignore", category=_AnyWarning)
    said: Withheld = []
    before = _withheld.set(said)
    try:
        yield said
    finally:
        _withheld.reset(before)


class _Wrapped(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return textwrap.fill(super().format(record), _LINE_WIDTH, subsequent_indent="  ")


@contextmanager
def wrapped_log() -> Iterator[None]:
    """Print the library's remarks on standard error, wrapped, as long as the block lasts.

    Each text is printed once. A log that the caller has configured is left as it is.
    """
    if _LOGGER.hasHandlers():
        yield
        return
    said: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        text, before = record.getMessage(), len(said)
        said.add(text)
        return len(said) > before

    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(is_new)
    handler.setFormatter(_Wrapped("note: %(message)s"))
    _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)


_T = TypeVar("_T")


def progress(
    steps: Iterable[_T],
    description: str = "",
    *,
    total: int | None = None,
    verbose: bool = True,
    delay: float = 0.0,
) -> Iterator[_T]:
    """Yield the steps one by one, with a progress bar on standard error.

    Parameters
    ----------
    steps : iterable
        The steps; a lazy iterator is possible, such as the results of joblib.
    description : str, default=""
        Text in front of the bar.
    total : int, optional
        Number of steps, if they have no length.
    verbose : bool, default=True
        Whether to show the bar. It is not shown without tqdm, or if standard error is not a
        terminal.
    delay : float, default=0.0
        Seconds before the bar is shown, for operations that are usually short.

    Examples
    --------
    >>> [step**2 for step in progress(range(3), "squares")]
    [0, 1, 4]
    """
    if verbose:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            pass
        else:
            name, options = description or None, {"leave": False, "disable": None, "delay": delay}
            steps = tqdm(steps, desc=name, total=total, **options)
    yield from steps


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
    names, left = [*heads], set(text)
    wide = len(names) >= _WIDE

    def line(kind: str, cells: Iterable[object]) -> Html:
        marked = (tag(kind, cell, **marks[j]) for j, cell in enumerate(cells))
        return tag("tr", *marked)

    marks: list[dict[str, str]] = [
        {"class_": "dpbayes-text"} if j in left else {} for j in range(len(names))
    ]
    if wide:
        marks = [{**mark, "data-head": name} for mark, name in zip(marks, names, strict=True)]
    body = (line("td", row) for row in rows)
    lines = tag("table", tag("thead", line("th", names)), tag("tbody", *body))
    return tag("div", lines, class_=f"dpbayes-scroll{' dpbayes-wide' * wide}")


def aligned(lines: Sequence[Sequence[str]], left: int) -> list[str]:
    """Return lines of cells side by side, the first ``left`` columns aligned to the left.

    >>> aligned([("end", "events"), ("7", "12")], left=1)
    ['end  events', '7        12']
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    forms = [f"{{:{'<' if j < left else '>'}{width}}}" for j, width in enumerate(widths)]
    return ["  ".join(map(str.format, forms, line)) for line in lines]


class Tabular(ABC):
    """A table of figures with a title above and notes below, as text, Markdown, LaTeX or HTML."""

    @property
    @abstractmethod
    def _title(self) -> str: ...

    @property
    @abstractmethod
    def _body(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Heads of the columns, and rows; the first column has names."""

    @property
    @abstractmethod
    def _notes(self) -> tuple[str, ...]: ...

    def __repr__(self) -> str:
        heads, rows = self._body
        return "\n".join([*aligned([heads, *rows], left=1), *self._notes])

    def to_markdown(self) -> str:
        """Return the table as Markdown, with its notes below."""
        heads, rows = self._body
        lines = [heads, ("---", *["---:"] * (len(heads) - 1)), *rows]
        printed = ["| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines]
        return "\n".join([*printed, *(f"\n{note}" for note in self._notes)])

    def to_latex(self) -> str:
        """Return the table as LaTeX, for the package booktabs, with its notes below."""
        heads, rows = self._body
        lines = [" & ".join(map(_in_latex, line)) + r" \\" for line in (heads, *rows)]
        columns = "l" + "r" * (len(heads) - 1)
        top = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule"]
        notes = [r"\par\smallskip " + _in_latex(note) for note in self._notes]
        return "\n".join([*top, *lines[1:], r"\bottomrule", r"\end{tabular}", *notes])

    def to_html(self) -> str:
        """Return the table as a card in HTML, as notebooks show it."""
        return self._repr_html_()

    def _repr_html_(self) -> str:
        heads, rows = self._body
        notes = (tag("p", note, class_=QUIET) for note in self._notes)
        return card(self._title, table(heads, rows, text=[0]), *notes)


_LATEX = {
    **{letter: "\\" + letter for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": "$<$", ">": "$>$", "²": "$^2$", "ε": r"$\varepsilon$", "δ": r"$\delta$",
    "∞": r"$\infty$", "–": "--",
}  # fmt: skip


def _in_latex(text: str) -> str:
    r"""Return a text as LaTeX; a number below zero has a minus sign.

    >>> print(_in_latex("95 % of R², x_1"), _in_latex("-∞"), _in_latex("-1.5"))
    95 \% of R$^2$, x\_1 $-\infty$ $-1.5$
    """
    number = re.fullmatch(r"-([\d.e+-]+|∞)", text)
    escaped = "".join(_LATEX.get(letter, letter) for letter in text)
    return f"${escaped.replace('$', '')}$" if number else escaped


class _Sampled(Protocol):
    _parameter: ClassVar[str]

    def sample(self, rng: np.random.Generator, n: int) -> Any:
        """Return draws along a first axis: an array, or a tuple of arrays."""


class ToArviz:
    """A posterior whose draws can be handed over; it has ``sample(rng, n)``."""

    _parameter: ClassVar[str] = "parameters"
    """What draws are called that are one array."""

    def to_arviz(self: _Sampled, draws: int = 1000, *, random_state: int | None = None) -> Any:
        """Return draws from the released posterior as ArviZ's ``InferenceData``.

        Post-processing, at no further privacy cost: draw as often as you like. One chain of
        independent draws, so that diagnostics of convergence say nothing.

        Parameters
        ----------
        draws : int, default=1000
        random_state : int, optional

        Returns
        -------
        arviz.InferenceData
            With one group, ``posterior``. The tables of a network are called ``feature_0``, ...,
            and ``class``, with the values of the parents along their first axes.
        """
        try:
            from arviz import from_dict
        except ImportError:
            raise ImportError("to_arviz needs arviz. Install it with pip install arviz.") from None
        check_scalar(draws, "draws", Integral, min_val=1)
        drawn = self.sample(np.random.default_rng(random_state), int(draws))
        if not isinstance(drawn, tuple):
            return from_dict(posterior={self._parameter: drawn[None]})
        names = [*(f"feature_{j}" for j in range(len(drawn) - 1)), "class"]
        return from_dict(posterior=dict(zip(names, (table[None] for table in drawn), strict=True)))


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


def check_matplotlib(caller: str) -> None:
    """Raise an error that names what to install if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            f"{caller} needs matplotlib. Install it with pip install matplotlib."
        ) from None


class Drawn:
    """A display with the axes that it is drawn on."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _axes(self, ax: Axes | None, size: tuple[float, float]) -> Axes:
        """Return the caller's axes, or those of a new figure, and remember them."""
        check_matplotlib(f"{type(self).__name__}.plot")
        if ax is None:
            ax = new_axes(size)
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _repr_png_(self) -> bytes | None:
        """Show the figure in a notebook, unless pyplot does."""
        figure = getattr(self, "figure_", None)
        if figure is None or figure.canvas.manager is not None:
            return None
        from io import BytesIO

        page = BytesIO()
        figure.savefig(page, format="png", dpi=110)
        return page.getvalue()


def new_axes(size: tuple[float, float]) -> Axes:
    """Return axes of a figure of pyplot's if the caller uses it, so that ``plt.show()`` works."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        return tidy(pyplot.figure(figsize=size, layout="constrained").subplots())
    from matplotlib.figure import Figure

    return tidy(Figure(figsize=size, layout="constrained").subplots())


def tidy(ax: Axes) -> Axes:
    """Remove unneeded lines from the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
