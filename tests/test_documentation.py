"""Every code block of the documentation runs, or is known to be none."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import dpbayes_sklearn
from benchmarks import provenance

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/[!_]*/**/*.md")],
)
DOCTESTED = ["README.md", "docs"]  # the Markdown among pytest's testpaths
NOT_CODE = {"text", "csv"}
PUBLIC = (
    "conjugate",
    "display",
    "feature_selection",
    "mechanisms",
    "metrics",
    "model_selection",
    "planning",
    "preprocessing",
)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def has_prompts(self) -> bool:
        return bool(re.search(r"^\s*>>> ", self.text, re.M))


def blocks_of(text: str, page: str = "page") -> list[Block]:
    """Return the outermost fenced blocks of a Markdown text."""
    fences = re.finditer(r"^ *(`{3,}|~{3,})([^\n`]*)\n(.*?)^ *\1 *$", text, re.M | re.S)
    return [
        Block(page, 1 + text[: fence.start()].count("\n"), fence[2].strip(), fence[3])
        for fence in fences
    ]


def complaint(block: Block) -> str | None:
    """Say why nothing tests a block, None if something does."""
    if block.language.startswith("{") or block.language in NOT_CODE:
        return None if not block.has_prompts or block.language == "text" else "prompts, untested"
    if block.language == "json":
        return "no JSON" if json.loads(block.text) is None else None
    if block.language == "sh":
        return unknown_command(block.text)
    if block.language not in {"python", "pycon"}:
        return f"nothing tests a block of {block.language or 'no language'}"
    if not block.has_prompts:
        return None if block.language == "python" else "pycon without prompts"
    if not block.page.startswith(tuple(DOCTESTED)):
        return "prompts where pytest does not look for doctests"
    if "+SKIP" in block.text:
        return "a doctest that is skipped"
    return None if block.text.endswith("\n\n") else "no empty line before the closing fence"


def unknown_command(shell: str) -> str | None:
    """Say which line of shell names a target, extra or script that does not exist."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = set(setup["options.extras_require"])
    for line in shell.splitlines():
        command = line.partition("#")[0]
        for made in re.findall(r"\bmake ([a-z -]+)", command):
            if unknown := set(made.split()) - targets:
                return f"no target {unknown}"
        for script in re.findall(r"\bpython (\S+\.py)", command):
            if not (ROOT / script).exists():
                return f"no script {script}"
        for module in re.findall(r"\bpython -m (benchmarks[\w.]*)", command):
            if find_spec(module) is None:
                return f"no module {module}"
        for wanted in re.findall(r"\[([a-z,]+)\]", command):
            if unknown := set(wanted.split(",")) - extras:
                return f"no extra {unknown}"
    return None


def all_blocks() -> list[Block]:
    return [
        block
        for page in PAGES
        for block in blocks_of(page.read_text("utf-8"), str(page.relative_to(ROOT)))
    ]


def scripts() -> dict[str, list[Block]]:
    """Return the blocks without prompts of every page that has some."""
    found: dict[str, list[Block]] = {}
    for block in all_blocks():
        if block.language == "python" and not block.has_prompts:
            found.setdefault(block.page, []).append(block)
    return found


def test_every_block_is_tested_or_no_code():
    complaints = [(b.page, b.line, complaint(b)) for b in all_blocks()]
    assert [c for c in complaints if c[2]] == []
    assert len(complaints) > 50


GUIDE = [page for page in PAGES if page.parent.name == "user_guide" and page.stem != "index"]


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_a_page_of_the_guide_opens_with_code_that_runs(page):
    opening = page.read_text("utf-8").partition("\n## ")[0]
    assert {"python", "pycon", "sh"} & {block.language for block in blocks_of(opening)}


def rows_of_tables(text: str) -> list[int]:
    """Return how many rows each table of a page has, without its head."""
    return [len(table.splitlines()) - 2 for table in re.findall(r"(?:^\|.*\n)+", text, re.M)]


MEASURED = [page for page in PAGES if page.parent.name == "benchmarks"]


def test_tables_of_the_guide_and_of_measurements_have_at_most_ten_rows():
    assert rows_of_tables("| a |\n|---|\n| 1 |\n| 2 |\n\n| b |\n|---|\n| 3 |\n") == [2, 1]
    rows = {
        page.stem: max(rows_of_tables(page.read_text("utf-8")), default=0)
        for page in [*GUIDE, *MEASURED]
    }
    assert {name: n for name, n in rows.items() if n > 10} == {}


def test_the_sidebar_lists_every_page_of_the_guide_once():
    page = (ROOT / "docs/index.md").read_text("utf-8")
    listed = re.findall(r"^user_guide/(\w+)$", page, re.M)
    assert sorted(listed) == sorted(["index", *(page.stem for page in GUIDE)])


HOUSE_WORDS = ("emphasis", "lattice", "law", "moments", "shard", "stealth", "temperature", "window")


def unexplained(text: str, glossary: str) -> list[str]:
    """Return the words of this library that a text uses and the glossary does not explain."""
    used = [word for word in HOUSE_WORDS if re.search(rf"\b{word}s?\b", text, re.I)]
    return [word for word in used if not re.search(rf"^{word}$", glossary, re.M)]


def test_a_house_word_is_in_the_glossary_or_not_used():
    glossary = (ROOT / "docs/glossary.md").read_text("utf-8")
    texts = [page.read_text("utf-8") for page in PAGES if page.stem != "glossary"]
    assert unexplained("\n".join(texts), glossary) == []
    assert unexplained("the emphasis of a law", "") == ["emphasis", "law"]


PLAIN = ("lattice", "law", "moments", "window")


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_the_guide_does_without_words_of_the_theory(page):
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text("utf-8"), flags=re.S)
    assert [word for word in PLAIN if re.search(rf"\b{word}s?\b", prose, re.I)] == []


@pytest.mark.parametrize("page", scripts())
def test_blocks_without_prompts_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as one script in an empty folder
    names = {"__name__": "__main__"}
    for block in scripts()[page]:
        exec(compile("\n" * block.line + block.text, page, "exec"), names)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("no language", "```\nmodel.fit(X)\n```\n"),
        ("javascript", "```javascript\nfit()\n```\n"),
        ("skipped", "```python\n>>> fit()  # doctest: +SKIP\n\n```\n"),
        ("closing fence", "```python\n>>> fit()\n```\n"),
        ("without prompts", "```pycon\nfit()\n```\n"),
        ("target", "```sh\nmake coffee\n```\n"),
        ("script", "```sh\npython benchmarks/nothing.py\n```\n"),
        ("module", "```sh\npython -m benchmarks.speed.nothing\n```\n"),
        ("extra", '```sh\npip install ".[plot,coffee]"\n```\n'),
    ],
)
def test_faults_are_found(fault, text):
    (block,) = blocks_of(text, "docs/page.md")
    assert fault in complaint(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_benchmarks_that_a_page_names_exist(page):
    text = page.read_text("utf-8")
    modules = set(re.findall(r"\bpython -m (benchmarks[\w.]*\w)", text))
    files = set(re.findall(r"(?<!\})`(benchmarks/[\w/]+(?:\.py)?)`", text))
    assert [module for module in modules if find_spec(module) is None] == []
    assert [file for file in files if not (ROOT / file).exists()] == []


def unknown_links(page: str) -> list[str]:
    """Return the names of code, tests and errata in a page that do not exist."""
    tests = re.findall(r"`([\w/]+)::(\w+)`", page)
    errata = (ROOT / "docs/theory/errata.md").read_text("utf-8")
    numbers = set(re.findall(r"^\| (\d+) \|", errata, re.M))
    cited = re.findall(r"errat(?:um|a) ([\d, ]*\d)", page)
    return [
        *(name for name in re.findall(r"\{obj\}`~([\w.]+)`", page) if not exists(name)),
        *(f"{file}::{test}" for file, test in tests if not is_test(file, test)),
        *(number for some in cited for number in some.split(", ") if number not in numbers),
    ]


def exists(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    return hasattr(import_module(module), attribute)


def is_test(file: str, name: str) -> bool:
    path = ROOT / "tests" / f"{file}.py"
    return path.exists() and f"\ndef {name}(" in path.read_text("utf-8")


def test_every_statement_of_the_papers_is_linked():
    page = (ROOT / "docs/theory/papers.md").read_text("utf-8")
    assert unknown_links(page) == []
    rows = [line for line in page.splitlines() if "::test_" in line]
    assert len(rows) > 60
    assert all(re.search(r"\| (faithful|corrected|replaced) \|", row) for row in rows)


@pytest.mark.parametrize(
    "link",
    [
        "{obj}`~dpbayes_sklearn.papers.bounds.no_bound`",
        "`papers/test_errata::test_0_nothing`",
        "`papers/test_nothing::test_1_truncation_of_the_sampler`",
        "see erratum 99",
    ],
)
def test_a_wrong_link_is_found(link):
    assert len(unknown_links(link)) == 1


def test_every_erratum_has_its_own_number_and_test():
    page = (ROOT / "docs/theory/errata.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| .*\| (`test_.*`) \|$", page, re.M)
    assert [number for number, _ in rows] == [str(i + 1) for i in range(len(rows))]
    names = [(number, test) for number, tests in rows for test in re.findall(r"`(\w+)`", tests)]
    files = ("papers/test_errata", "papers/test_errata_beyond")
    assert [test for _, test in names if not any(is_test(file, test) for file in files)] == []
    assert [test for number, test in names if not test.startswith(f"test_{number}_")] == []


def test_every_benchmark_that_a_page_names_has_commit_and_date():
    table = provenance.known()
    named = [(page, name) for page in provenance.pages() for name, _ in provenance.commands(page)]
    keys = [(str(page.relative_to(ROOT)), f"python -m {name}") for page, name in named]
    assert [key for key in keys if key not in table] == []
    assert len(keys) > 20
    made = [" ".join(table[key]) for key in keys]
    assert [when for when in made if not re.fullmatch(r"[0-9a-f]{10} 2\d{3}-\d\d-\d\d", when)] == []


def test_prompts_outside_the_doctested_pages_are_found():
    (block,) = blocks_of("```python\n>>> 1\n1\n\n```\n", "CONTRIBUTING.md")
    assert "does not look" in complaint(block)


def test_testpaths_hold_the_doctested_pages(pytestconfig):
    assert set(DOCTESTED) <= set(pytestconfig.getini("testpaths"))
    assert "--doctest-glob=*.md" in pytestconfig.getini("addopts")


def listed_objects(page: str) -> Iterator[object]:
    """Yield what the reference lists, internals left out."""
    module = dpbayes_sklearn
    for line in page.partition("## Internals")[0].splitlines():
        if line.startswith(".. currentmodule:: "):
            module = import_module(line.split()[-1])
        elif re.fullmatch(r"   [\w.]+", line):
            yield attrgetter(line.strip())(module)


def test_the_reference_equals_the_public_names():
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    modules = [dpbayes_sklearn, *(import_module(f"dpbayes_sklearn.{name}") for name in PUBLIC)]
    named = (getattr(module, name) for module in modules for name in module.__all__)
    public = [thing for thing in named if not isinstance(thing, ModuleType)]
    shown = list(listed_objects(page))
    assert {*map(id, shown)} == {*map(id, public)}
    assert len(shown) == len({*map(id, shown)})


def named_in(word: str) -> set[str]:
    """Return the files of the package, audits apart, that match a regular expression."""
    package = Path(dpbayes_sklearn.__path__[0])
    return {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "audit" not in path.parts and re.search(word, path.read_text(encoding="utf-8"))
    }


def test_ten_changes_touch_the_files_that_the_table_names() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Ten changes")[2]
    rows = [
        row.split("|")
        for row in text.partition("## Tests")[0].splitlines()
        if row[:1] == "|" and "`" in row
    ]
    named = {row[1].strip(): {*re.findall(r"`([\w/]+\.py)`", row[3])} for row in rows}
    for paths in named.values():
        assert all((ROOT / "dpbayes_sklearn" / path).exists() for path in paths)
    assert named_in(r"\bZeroSum\b") == named["a noise law, such as `ZeroSum`"]
    assert named_in(r" alpha: float \| npt.*= 1") == named["a default prior, as of `alpha`"]
    accountant = named_in(r'(?m)accountant: .* = None$|self\.accountant = acc|"accountant": \[')
    assert accountant == named["a parameter of all estimators, such as `accountant`"]
    assert named_in(r"def temperature_share") == named["the share of the temperature"]
    assert named_in(r"CREATE TABLE|INSERT INTO") == named["the format of a ledger"]
    assert len(named_in(r"isinstance\([^)]*\b(Interval|Categories)\b")) <= 15
