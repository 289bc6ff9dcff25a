"""The benchmark report: its plan can be run, and its page shows what was found."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from benchmarks import pages, report

ROOT = Path(__file__).parents[2]


def test_the_plan_fits_its_time():
    assert sum(section.minutes for section in report.SECTIONS.values()) <= 50


def test_every_script_takes_the_arguments_of_the_plan(tmp_path):
    for section in report.SECTIONS.values():
        for command in section.commands:
            dash_m, module, *arguments = command.line(True, tmp_path)
            assert dash_m == "-m"
            source = Path(find_spec(module).origin).read_text("utf-8")
            flags = [a for a in arguments if a.startswith("--")]
            if "--output" in flags and "output_folder" in source:
                flags.remove("--output")
            assert [flag for flag in flags if f'"{flag}"' not in source] == []
            assert bool(command.output) is bool(command.figures)


def test_the_page_shows_results_figures_and_versions(tmp_path):
    name, section = next(iter(report.SECTIONS.items()))
    found = {
        "outputs": ["| table |\n|---|\n| adult |"],
        "seconds": 90,
        "date": "2026-01-02",
        "commit": "0123456789",
        "versions": {"numpy": "2.0"},
        "machine": "two cores",
    }
    (tmp_path / f"{name}.json").write_text(json.dumps(found))
    page = "\n".join(report.render(tmp_path, tmp_path))
    assert "| adult |" in page
    assert f"]({section.commands[0].figures[0]})" in page
    assert "Made with numpy 2.0; two cores." in page
    assert "1.5 minutes on 2026-01-02 at commit 0123456789." in page
    assert page.count("Not run yet") == len(report.SECTIONS) - 1


def test_a_long_table_becomes_a_file_beside_its_page(tmp_path):
    head, rows = "| n | R² |\n|---|---|\n", [f"| {i} | 0.{i} |\n" for i in range(pages.LONGEST + 1)]
    short = head + "".join(rows[:-1])
    assert pages.folded(short, tmp_path, "few") == short
    assert not (tmp_path / "tables").exists()
    text = f"before\n\n{head}{''.join(rows)}\nafter"
    folded = pages.folded(text, tmp_path, "many")
    assert folded.startswith(f"before\n\n<details><summary>All {len(rows)} rows")
    assert ":file: tables/many.csv\n" in folded
    assert folded.endswith("</details>\n\nafter")
    lines = (tmp_path / "tables/many.csv").read_text("utf-8").splitlines()
    assert lines == ["n,R²", *(f"{i},0.{i}" for i in range(pages.LONGEST + 1))]


def test_long_output_becomes_a_file_beside_its_page(tmp_path):
    assert pages.folded_output("one\ntwo", tmp_path, "few") == "```text\none\ntwo\n```\n"
    output = "\n".join(map(str, range(pages.LONGEST + 1)))
    assert "tables/many.txt" in pages.folded_output(output, tmp_path, "many")
    assert (tmp_path / "tables/many.txt").read_text("utf-8") == output + "\n"


def test_a_section_that_fails_keeps_its_results(tmp_path, monkeypatch, capsys):
    package(tmp_path, "broken", "raise SystemExit(3)")
    section = report.Section("Broken", "", (report.Command("broken"),), 1)
    monkeypatch.setitem(report.SECTIONS, "broken", section)
    monkeypatch.setattr(report, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["report.py", "--only", "broken"])
    results = tmp_path / "benchmarks" / "results" / "report"
    results.mkdir(parents=True)
    (results / "broken.json").write_text("old")
    monkeypatch.setattr(report, "render", lambda *folders: ["page"])
    assert report.main() == 1
    assert (results / "broken.json").read_text() == "old"
    assert "broken failed and keeps its old results" in capsys.readouterr().err


def test_what_a_script_prints_is_kept_but_where_it_wrote(tmp_path, monkeypatch):
    package(tmp_path, "script", "print('found 1')\nprint('wrote /somewhere/figure.png')")
    monkeypatch.setattr(report, "ROOT", tmp_path)
    assert report.output(report.Command("script"), True, tmp_path) == "found 1"


def package(folder: Path, module: str, source: str) -> None:
    """Write a package of one benchmark."""
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").touch()
    (folder / "benchmarks" / f"{module}.py").write_text(source)


def test_an_unknown_section_is_refused():
    command = [sys.executable, "-m", "benchmarks.report", "--only", "weather"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "invalid choice: 'weather'" in done.stderr
