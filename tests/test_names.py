"""Every name, option and path that a docstring, a comment or a page mentions exists."""

from __future__ import annotations

import ast
import builtins
import inspect
import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import dpbayes_sklearn
from dpbayes_sklearn._compat import StrOptions

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "dpbayes_sklearn"
SOURCES = sorted(
    f
    for room in ("dpbayes_sklearn", "benchmarks", "tests", "examples", "docs")
    for f in (ROOT / room).rglob("*.py")
    if not {"auto_examples", "generated"} & {*f.parts}  # which a build of the pages has made
)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/[!_]*/**/*.md"), *ROOT.glob("docs/*.md")])
FOLDERS = (ROOT, PACKAGE, ROOT / "tests", ROOT / "docs", ROOT / "benchmarks", ROOT / "docs/theory")


ELSEWHERE = {  # names that are not in the code of this repository, by whose they are
    "scikit-learn": "AdaBoostClassifier KMeans PCA RFECV TunedThresholdClassifierCV "
    "VotingRegressor bootstrap copy_X var_smoothing",
    "diffprivlib": "DiffprivlibCompatibilityWarning histogram pop_default set_default spent_budget "
    "linear_regression.py",
    "mlflow, ArviZ": "InferenceData log_dict log_text r_hat serialization_format",
    "dask, Spark, DuckDB": "ProgressBar addArtifacts checkpoint diagnostics temp_directory",
    "Python and its tools": "JOBLIB_TEMP_FOLDER Logger OMP_NUM_THREADS arrow_c_stream mypy "
    "hypothesis-profile rgb sphinx_gallery_thumbnail_number sudo to_thread",
    "stand for any name, or are made by an example": "name_ option bins groups known.json",
}
EXTERNAL = frozenset(" ".join(ELSEWHERE.values()).split())


class Text(NamedTuple):
    """A docstring, a comment or a page; a docstring is that of ``owner`` in ``module``."""

    place: str
    line: int
    text: str
    module: str = ""
    owner: str = ""


class Source(NamedTuple):
    """A file: what it says in docstrings and comments, and the words of what is left, its code."""

    texts: list[Text]
    words: set[str]


def read(source: str, place: str, module: str = "") -> Source:
    texts, lines = [], source.splitlines()

    def walk(body: list[ast.stmt], owner: str) -> None:
        for node in body:
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    texts.append(Text(place, node.lineno, text, module, owner))
                    count = (node.end_lineno or node.lineno) - node.lineno + 1
                    lines[node.lineno - 1 : node.end_lineno] = [""] * count
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                    walk(node.body, f"{owner}.{name}".lstrip("."))
                case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try():
                    walk([*node.body, *getattr(node, "orelse", ())], owner)

    walk(ast.parse(source).body, "")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            texts.append(Text(place, row, token.string))
            lines[row - 1] = lines[row - 1][:column]
    return Source(texts, words_of("\n".join(lines)))


def words_of(code: str) -> set[str]:
    """Return the words of a text; two underscores, as in parameters of a step, part words."""
    return set(re.findall(r"\w+", code.replace("__", " ")))


@cache
def sources() -> dict[Path, Source]:
    return {
        file: read(file.read_text("utf-8"), str(file.relative_to(ROOT)), module_of(file))
        for file in SOURCES
    }


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def all_texts() -> list[Text]:
    pages = (Text(str(page.relative_to(ROOT)), 1, page.read_text("utf-8")) for page in PAGES)
    return [*(text for source in sources().values() for text in source.texts), *pages]


def names_in(code: str) -> set[str]:
    """Return the identifiers of an expression, words in its strings counted in."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        for field in ("id", "attr", "arg", "name", "value"):
            if isinstance(text := getattr(node, field, None), str):
                found |= words_of(text)
    return found


@cache
def known_names() -> frozenset[str]:
    files = (part for f in SOURCES for part in f.relative_to(ROOT).with_suffix("").parts)
    code = (source.words for file, source in sources().items() if file != Path(__file__))
    pages = (page.stem for page in PAGES)
    return frozenset().union(dir(builtins), keyword.kwlist, files, pages, EXTERNAL, *code)


@cache
def known_options() -> frozenset[str]:
    """Return the options of all commands, as they stand in the code."""
    code = (f.read_text("utf-8") for f in SOURCES if f != Path(__file__))
    return frozenset(o for text in code for o in re.findall(r"[\"']--([a-z-]+)[\"']", text))


CODE = r"^( *)(`{3,}|:{3,}|~{3,})[^\n]*\n.*?^\1\2 *$|^ *(?:>>>|\.\.\.) .*$"
MATH = r":math:`[^`]*`|\$[^$]*\$|^\.\. math::.*?(?=^\S|\Z)|https?://\S+"


def without(pattern: str, text: str) -> str:
    return re.sub(pattern, "", text, flags=re.M | re.S)


def prose_of(text: str) -> str:
    """Return a text without code, formulae and what is marked as code in a line."""
    return without(r"``[^`]*``|`[^`]*`", without(MATH, without(CODE, text)))


def spans(text: str) -> Iterator[tuple[str, str]]:
    """Yield role and content of what is marked as code in a text; no role is that of a literal."""
    prose = without(MATH, without(CODE, text))
    for role in re.finditer(r"(?::(\w+):|\{(\w+)\})`(?:[^`<]*<)?~?([^`>]+)>?`", prose):
        yield role[1] or role[2], role[3]
    prose = without(r"(:\w+:|\{\w+\})`[^`]*`", prose)
    for literal in re.finditer(r"``([^`]+)``|(?<!`)`([^`]+)`(?!`)", prose):
        yield "", re.sub(r"\s+", " ", literal[1] or literal[2])


def resolves(name: str) -> bool:
    """Tell whether a dotted name leads to a module, an object or an annotated field."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return part in getattr(found, "__annotations__", ())
            found = getattr(found, part)
        return True
    return False


PATH = re.compile(
    r"[\w./*{}-]+(/|\.(py|md|toml|cfg|inc|json|svg|png|yaml|ini|cff))|[\w.-]+/[\w./-]+\.csv"
)


def is_path(path: str, place: str) -> bool:
    folders = (*FOLDERS, (ROOT / place).parent)
    return path in EXTERNAL or any(
        (folder / path).exists() or any(folder.glob(path)) for folder in folders
    )


def is_page(name: str, place: str) -> bool:
    """Tell whether a page links to another one, or to a page that is made from an example."""
    _, made, example = name.rpartition("auto_examples/")
    if made:
        return example == "index" or (ROOT / "examples" / f"{example}.py").exists()
    return ((ROOT / place).parent / f"{name}.md").exists()


BARE = re.compile(
    r"(?<![\w./\\{}-])(?:[a-z]{3,}(?:_[a-z]{2,})+(?![\w/.}])|[\w/]+/\w+\.(?:py|md)\b)"
)


def public_classes() -> Iterator[type]:
    """Yield the estimators and mechanisms: what has parameters with constraints."""
    for file in PACKAGE.rglob("*.py"):
        if file.stem != "__main__":
            module = import_module(module_of(file))
            own = (t for t in vars(module).values() if isinstance(t, type))
            yield from (t for t in own if t.__module__ == module.__name__ and has_options(t))


def has_options(kind: type) -> bool:
    return hasattr(kind, "_parameter_constraints")


@cache
def options() -> dict[str, set[str]]:
    """Return the strings that parameters may be, without those that may be any string."""
    found: dict[str, set[str]] = {}
    free = set()
    for kind in public_classes():
        for name, constraints in kind._parameter_constraints.items():
            texts = [c.options for c in constraints if isinstance(c, StrOptions)]
            found.setdefault(name, set()).update(*texts)
            if not texts:
                free.add(name)
    return {name: texts for name, texts in found.items() if name not in free}


def wrong_options(code: str, own: set[str]) -> Iterator[str]:
    """Say which parameters in code cannot have their string, unless the page defines it."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.keyword(arg=str(name), value=ast.Constant(value=str(text))):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                pass
            case _:
                continue
        if text not in options().get(name, {text}) | own:
            yield f"no option {name}={text!r}"


def complaints(text: Text) -> Iterator[str]:
    """Say what a text mentions that does not exist."""
    own = set(re.findall(r"\w+", " ".join(m[0] for m in re.finditer(CODE, text.text, re.M | re.S))))
    known = known_names() | own
    for role, name in spans(text.text):
        if role in {"mod", "class", "func", "meth", "attr", "data", "obj", "exc"}:
            if name.startswith("dpbayes_sklearn") and not resolves(name):
                yield f"no {name}"
            if name in {text.owner or text.module, f"{text.module}.{text.owner}"}:
                yield f"{name} refers to itself"
        elif role == "doc":
            if not is_page(name, text.place):
                yield f"no page {name}"
        elif not role and PATH.fullmatch(name):
            if not is_path(name, text.place):
                yield f"no file {name}"
        elif not role:
            with suppress(SyntaxError):  # what is no expression is a formula or a message
                yield from (f"no name {n} in {name}" for n in sorted(names_in(name) - known))
                yield from wrong_options(name, own)
    for word in BARE.findall(prose_of(text.text)) * text.place.endswith(".py"):
        if not (is_path(word, text.place) if "/" in word else word in known):
            yield f"no {word}"
    for option in re.findall(r"(?<![\w-])--[a-z-]+\w", text.text):
        if option.strip("-") not in known_options() | EXTERNAL:
            yield f"no option {option}"
    for link in re.findall(r"\]\(([\w./-]+\.md)[#)]", text.text):
        if not ((ROOT / text.place).parent / link).exists():
            yield f"no page {link}"
    for twice in re.findall(r"(:\w+:`[^`]+`|``?[^`]+``?) (?:and|or) \1", text.text):
        yield f"{twice} twice"


def test_all_that_is_mentioned_exists() -> None:
    found = [(t.place, t.line, said) for t in all_texts() for said in complaints(t)]
    assert found == []
    assert len(all_texts()) > 5000


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("no dpbayes_sklearn.counts.nothing", "See :mod:`dpbayes_sklearn.counts.nothing`."),
        (
            "no dpbayes_sklearn.papers.query.Nothing",
            "{class}`~dpbayes_sklearn.papers.query.Nothing` answers.",
        ),
        ("refers to itself", "More in :func:`~dpbayes_sklearn.counts.plans.plan`."),
        ("no name moment_chunks", "The sensitivity; see `moment_chunks`."),
        ("no name no_such", "By ``model.no_such(3)``."),
        ("no option increment", 'The default is ``increment="scaled"``.'),
        ("no option mechanism", "`BetaBinomial(mechanism='hellinge')`"),
        ("no file regression/nothing.py", "All of it is in ``regression/nothing.py``."),
        ("no file nothing.md", "`nothing.md`"),
        ("no page nothing", "{doc}`the page <nothing>`"),
        ("no page auto_examples/plot_nothing", "{doc}`auto_examples/plot_nothing`"),
        ("no page nothing.md", "[more](nothing.md#here)"),
        ("no counts/nothing.py", "The layers of counts/nothing.py see it."),
        ("no some_lost_name", "# what some_lost_name has left"),
        ("no option --allotmentt", "with --allotmentt"),
        ("twice", ":mod:`dpbayes_sklearn.release` and :mod:`dpbayes_sklearn.release`"),
    ],
)
def test_a_fault_in_a_text_is_found(fault: str, text: str) -> None:
    found = list(complaints(Text("page.py", 1, text, "dpbayes_sklearn.counts.plans", "plan")))
    assert any(fault in said for said in found), found


def documented(kind: type) -> dict[str, tuple[str, str]]:
    """Return the type and the default of parameters as a docstring says them."""
    rows = r"^(\w+) : ((?:[^\n]|\n {4,}(?=[^\n]*default=))*?)(?:, default=([^\n]+))?$"
    return {m[0]: (m[1], m[2]) for m in re.findall(rows, inspect.getdoc(kind) or "", re.M)}


def misstated(kind: type) -> Iterator[str]:
    """Say which strings and defaults of parameters a docstring states otherwise than the code."""
    said, signature = documented(kind), inspect.signature(kind).parameters
    for name, constraints in kind._parameter_constraints.items():  # type: ignore[attr-defined]
        if name not in said or name not in signature:
            continue
        texts = {t for c in constraints if isinstance(c, StrOptions) for t in c.options}
        listed = set(re.findall(r'"(\w+)"', said[name][0]))
        if not said[name][0].startswith("{"):  # the options stand in the text below
            listed = {text for text in texts if f'"{text}"' in (inspect.getdoc(kind) or "")}
        if texts != listed:
            yield f"{kind.__name__}({name}) is one of {sorted(texts)}, not {sorted(listed)}"
        default = signature[name].default
        with suppress(ValueError, SyntaxError):
            if said[name][1] and ast.literal_eval(said[name][1]) != default:
                yield f"{kind.__name__}({name}={default!r}), not {said[name][1]}"


def test_documented_strings_and_defaults_are_those_of_the_code() -> None:
    kinds = list(public_classes())
    assert [said for kind in kinds for said in misstated(kind)] == []
    assert sum(len(documented(kind)) for kind in kinds) > 100


def test_a_misstated_option_is_found() -> None:
    class Wrong(dpbayes_sklearn.mechanisms.Fourier):
        __doc__ = (dpbayes_sklearn.mechanisms.Fourier.__doc__ or "").replace("paper", "rule")

    assert [*misstated(Wrong)] == [
        "Wrong(increment) is one of ['calibrated', 'paper'], not ['calibrated', 'rule']"
    ]
