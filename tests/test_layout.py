"""Every file of tests mirrors a module, or is about one of the declared topics."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
PACKAGE = ROOT / "dpbayes_sklearn"
BESIDE = ("benchmarks", "checker")  # These folders are mirrored by folders of the same name.

# What cuts across modules. A file about one module does not belong here.
TOPICS = {
    "papers/test_errata.py": "errata of the papers, in numbers",
    "papers/test_errata_beyond.py": "more of them",
    "preprocessing/test_estimator_checks.py": "scikit-learn's checks of transformers",
    "test_bad_input.py": "errors of every estimator before the charge",
    "test_charged_is_released.py": "what is charged is what the guarantee says",
    "test_composition_sklearn.py": "estimators inside scikit-learn's own machinery",
    "test_contributions.py": "contributions add up to predictions, for every model",
    "test_documentation.py": "code blocks of pages",
    "test_error_state.py": "the caller's numpy error state",
    "test_estimator_checks.py": "scikit-learn's checks of estimators",
    "test_exactness.py": "statistics do not depend on containers, chunks or threads",
    "test_frames.py": "data frames in and out",
    "test_from_r.py": "the page for users of R",
    "test_gallery.py": "examples",
    "test_golden.py": "seeded releases are what they were",
    "test_journeys.py": "examples for a new user",
    "test_layout.py": "the rule of this file",
    "test_missing_targets.py": "records without a target",
    "test_names.py": "names that texts mention",
    "test_new_user_tasks.py": "pages of the guide that a task leads to",
    "test_one_column_checks.py": "scikit-learn's checks of estimators of one column",
    "test_one_record_only.py": "one odd record",
    "test_one_rule_for_columns.py": "columns of frames and of schemas",
    "test_other_systems.py": "systems without fork, flock or /proc",
    "test_readme.py": "the README",
    "test_refused_before_the_charge.py": "what public numbers decide is refused before the charge",
    "test_strangers_path.py": "the page of the first steps",
    "test_weights.py": "weights of records, in every estimator",
    "test_who_is_protected.py": "persons and secret numbers of records, in every estimator",
}


def modules(folder: Path) -> set[str]:
    """Return the names of the modules in a folder, without leading underscores."""
    return {p.stem.strip("_") for p in folder.glob("*.py")} - {"init"}


def packages(folder: Path) -> set[str]:
    """Return the names of the packages in a folder."""
    return {p.parent.name for p in folder.glob("*/__init__.py")}


def mirrors(path: str) -> bool:
    """Say whether a path below ``tests`` follows the rule.

    ``tests/<room>/test_<module>.py``, with ``_<aspect>`` at the end where a module has several
    files; or ``tests/<room>/<module>/test_<aspect>.py`` where it has many.
    """
    file = Path(path)
    base = ROOT if file.parts[0] in BESIDE else PACKAGE
    room = base / file.parent
    about = file.stem.removeprefix("test_") + "_"
    by_name = any(about.startswith(f"{name}_") for name in modules(room) | packages(room))
    return by_name or room.name in modules(room.parent)


def test_every_file_of_tests_mirrors_a_module_or_is_about_a_topic() -> None:
    files = {p.relative_to(TESTS).as_posix() for p in TESTS.rglob("test_*.py")}
    assert len(files) > 200
    assert {file for file in files if not mirrors(file)} == set(TOPICS)


@pytest.mark.parametrize(
    "path",
    [
        "noise/test_finite.py",
        "noise/test_finite_random_stopping.py",
        "test_compat.py",
        "mechanisms/test_laplace.py",
        "main/test_commands.py",
        "benchmarks/audit/tools/test_ratios.py",
    ],
)
def test_a_module_is_mirrored(path: str) -> None:
    assert mirrors(path)


@pytest.mark.parametrize(
    "path",
    [
        "noise/test_gone.py",
        "noise/test_finitely.py",
        "counts/test_finite.py",
        "gone/test_finite.py",
        "test_finite.py",
        "noise/gone/test_finite.py",
        "benchmarks/test_ratios.py",
    ],
)
def test_a_file_that_mirrors_nothing_is_seen(path: str) -> None:
    assert not mirrors(path)
