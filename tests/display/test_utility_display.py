from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, PrivacyUtilityDisplay

SCORES = {"laplace": {1.0: [0.8, 1.0], 0.1: [0.5, 0.5]}, "map": {1.0: [0.6, 0.7]}}
rng = np.random.default_rng(0)
Y = rng.integers(0, 2, 60)
X = (rng.random((60, 2)) < 0.15 + 0.7 * Y[:, None]).astype(int)


def bare_axes():
    return Figure().subplots()


def test_curves_are_means_in_the_order_of_epsilon() -> None:
    display = PrivacyUtilityDisplay.from_results(SCORES, 0.95, ax=bare_axes())
    line = display.lines_["laplace"]
    np.testing.assert_allclose(line.get_xdata(), [0.1, 1.0])
    np.testing.assert_allclose(line.get_ydata(), [0.5, 0.9])
    assert display.baseline_.get_ydata()[0] == 0.95
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["laplace", "map", "no privacy"]


def test_bands_are_one_standard_deviation() -> None:
    band = PrivacyUtilityDisplay.from_results(SCORES, ax=bare_axes()).bands_["laplace"]
    heights = band.get_paths()[0].vertices
    at_one = heights[np.isclose(heights[:, 0], 1.0), 1]
    np.testing.assert_allclose((at_one.min(), at_one.max()), (0.8, 1.0))


def test_bands_may_be_bars_or_nothing() -> None:
    bars = PrivacyUtilityDisplay(SCORES).plot(bare_axes(), std_display_style="errorbar")
    assert set(bars.bands_) == {"laplace", "map"}
    nothing = PrivacyUtilityDisplay(SCORES).plot(bare_axes(), std_display_style=None)
    assert nothing.bands_ == {}
    with pytest.raises(ValueError, match="'std_display_style' parameter of PrivacyUtilityDisplay"):
        PrivacyUtilityDisplay(SCORES).plot(std_display_style="violin")


def test_without_baseline_there_is_no_line_and_no_column() -> None:
    display = PrivacyUtilityDisplay.from_results(SCORES, ax=bare_axes())
    assert display.baseline_ is None
    assert "inf" not in display.table()


def test_table_leaves_gaps_where_nothing_was_tried() -> None:
    assert PrivacyUtilityDisplay(SCORES, 0.95).table() == (
        "epsilon       0.1       1     inf\n"
        "laplace     0.500   0.900   0.950\n"
        "map                 0.650   0.950"
    )


def test_it_draws_on_the_axes_it_is_given_and_returns_itself() -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    display = PrivacyUtilityDisplay(SCORES, 0.9)
    assert display.plot(right, ylabel="accuracy", line_kw={"lw": 5}) is display
    assert display.ax_ is right
    assert display.figure_ is figure
    assert right.get_ylabel() == "accuracy"
    assert display.lines_["map"].get_linewidth() == 5
    assert not left.lines


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1]), "accuracy"),
        (BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)), "R²"),
    ],
)
def test_from_estimator_names_the_score(model, label) -> None:
    display = PrivacyUtilityDisplay.from_estimator(
        model, X, Y, epsilons=[1], mechanisms=["laplace"], cv=2, ax=bare_axes()
    )
    assert display.ax_.get_ylabel() == label
    assert len(display.scores["laplace"][1]) == 2


def test_the_axis_names_another_score() -> None:
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1])
    display = PrivacyUtilityDisplay.from_estimator(
        model, X, Y, epsilons=[1], mechanisms=["map"], cv=2, scoring="neg_log_loss", ax=bare_axes()
    )
    assert display.ax_.get_ylabel() == "neg log loss"


def test_pyplot_is_left_alone_by_who_does_not_use_it(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    display = PrivacyUtilityDisplay(SCORES, 0.9)
    assert display._repr_png_() is None
    display.plot()
    assert "matplotlib.pyplot" not in sys.modules
    assert display.figure_.canvas.manager is None
    assert display._repr_png_().startswith(b"\x89PNG")


def test_pyplot_shows_the_figure_of_who_uses_it() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    display = PrivacyUtilityDisplay(SCORES, 0.9).plot()
    assert plt.gcf() is display.figure_
    assert display._repr_png_() is None
    plt.close(display.figure_)


def test_the_package_does_not_import_matplotlib() -> None:
    program = "import sys, dpbayes_sklearn; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_without_matplotlib_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    display = PrivacyUtilityDisplay(SCORES, 0.9)
    assert display.table().endswith("0.900")
    with pytest.raises(ImportError, match=r"Display\.plot needs matplotlib\. Install it with pip"):
        display.plot()
    with pytest.raises(ImportError, match=r"Display\.from_estimator needs matplotlib"):
        PrivacyUtilityDisplay.from_estimator(None, None)
