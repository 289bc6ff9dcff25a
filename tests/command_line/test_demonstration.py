"""The demonstration as a stranger sees it: on the screen, in the folder, in the browser."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from dpbayes_sklearn import BudgetAccountant
from dpbayes_sklearn.command_line import demonstration as module
from dpbayes_sklearn.command_line.demonstration import main, tasks

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser"])), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=5000",
]
DARK = "--blink-settings=preferredColorScheme=0"


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory):
    """Run it once, small; a warning of a leak would be an error."""
    folder = tmp_path_factory.mktemp("demonstration")
    with redirect_stdout(io.StringIO()) as screen:
        assert main(["--out", str(folder), "--epsilon", "1", "--repeats", "1"]) == 0
    return folder, screen.getvalue()


def test_the_screen_has_scores_and_guarantees(demonstration):
    folder, screen = demonstration
    assert len(re.findall(r"epsilon +1 +inf\n", screen)) == 3
    shown = {"laplace": 3, "Laplace(noise='independent')": 2, "fourier": 3, "map": 3, "sampler": 3}
    for mechanism, times in shown.items():
        row = rf"^  {re.escape(mechanism)} +-?\d\.\d{{3}}   0\.\d{{3}}$"
        assert len(re.findall(row, screen, re.M)) == times
    promise = "Differentially private with epsilon = 1 for data sets of the same size"
    assert promise in " ".join(screen.split())
    assert str(folder / "report.html") in screen


def test_first_comes_a_table_of_ones_own(demonstration):
    folder, screen = demonstration
    parts = ["BayesianLogisticRegression, 10,000 records", "odds ratio  95 % from", "roc_auc",
             "spent epsilon=2.0, delta=0.0; left epsilon=0.0", "is a breast tumour"]  # fmt: skip
    places = [screen.index(part) for part in parts]
    assert places == sorted(places)
    for known, name in ((0.7, "smoker=yes"), (0.35, "visits"), (0.03, "age")):
        estimate, sd = map(float, re.search(rf"^  {name} +(\S+) +(\S+)", screen, re.M).groups())
        assert abs(estimate - known) < 5 * sd < 0.5
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.index('id="first_model"') < page.index('id="breast_tumours"')
    assert "Private evaluation" in page


def test_the_folder_has_figures_and_one_report(demonstration):
    folder, _ = demonstration
    figures = {path.name for path in folder.glob("*.png")}
    of_tasks = {f"{t.name}{end}.png" for t in tasks(1) for end in ("", "_posterior")}
    assert figures == of_tasks | {"odds_ratios.png"}
    for name in figures:
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in folder.iterdir()} == figures | {"report.html"}


def test_the_report_needs_no_other_file(demonstration):
    page = (demonstration[0] / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|<link|<script|@import|url\(", page)
    assert set(re.findall(r'src="([^,]*),', page)) == {"data:image/png;base64"}
    assert "<img" in page


LOOK = """
<script>
addEventListener("load", () => {
  const card = document.querySelector("#breast_tumours .cards .dpbayes-card");
  const style = getComputedStyle(card);
  const seen = {
    text: card.innerText,
    ink: style.color,
    paper: getComputedStyle(document.body).backgroundColor,
    images: [...document.images].map(image => image.naturalWidth),
    sideways: document.documentElement.scrollWidth > innerWidth,
    scrolling: [...document.querySelectorAll("section[id]")].map(
      section => section.querySelector(".dpbayes-scroll")
    ).some(e => e.scrollWidth > e.clientWidth),
  };
  document.body.innerHTML = "<pre id=seen></pre>";
  document.getElementById("seen").textContent = JSON.stringify(seen);
});
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")
@pytest.mark.parametrize(
    "flags", [[], [DARK, "--window-size=500,900"]], ids=["light", "dark and narrow"]
)
def test_a_browser_shows_the_guarantee(demonstration, tmp_path: Path, flags):
    page = tmp_path / "report.html"
    report = (demonstration[0] / "report.html").read_text(encoding="utf-8")
    page.write_text(report.replace("</body>", LOOK + "</body>"), encoding="utf-8")
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [str(CHROMIUM), *FLAGS, *flags, profile, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    seen = json.loads(re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.S)[1])
    assert "Differentially private with epsilon = 1" in seen["text"]
    assert "no result of this release more than 2.72 times as likely" in seen["text"]
    assert re.search(r"epsilon\s+1\s+delta\s+0\s+unit\s+one record", seen["text"])
    assert "data sets of the same size that differ in one record" in seen["text"]
    assert len(seen["images"]) == 7
    assert all(width > 500 for width in seen["images"])
    assert not seen["sideways"]
    assert not seen["scrolling"]
    paper, ink = luminance(seen["paper"]), luminance(seen["ink"])
    assert (paper < ink) is (DARK in flags)
    lighter, darker = max(paper, ink), min(paper, ink)
    assert (lighter + 0.05) / (darker + 0.05) > 7


def luminance(colour: str) -> float:
    """Relative luminance of ``rgb(r, g, b)``, as the accessibility guidelines define it."""
    channels = [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_domain_is_declared():
    for task in tasks(1):
        ledger = BudgetAccountant()
        model = task.estimator.set_params(accountant=ledger).fit(task.X, task.y)
        assert model.guarantee_.conditions == ()


def test_a_budget_must_be_a_number_above_zero(capsys):
    for wrong in ("0", "-1", "nan", "inf"):
        with pytest.raises(SystemExit):
            main(["--epsilon", wrong])
        assert "a budget must be a number above 0" in capsys.readouterr().err


def test_without_matplotlib_the_report_has_tables_and_cards(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(module, "tasks", lambda repeats: tasks(repeats)[2:])
    main(["--out", str(tmp_path), "--epsilon", "1", "--repeats", "1"])
    assert "pip install matplotlib" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert "Differentially private" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_it_is_run_by_the_name_of_the_package():
    command = [sys.executable, "-m", "dpbayes_sklearn", "demo", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for option in ("--out", "--epsilon", "--repeats"):
        assert option in done.stdout
