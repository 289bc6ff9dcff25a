"""What has to stand before the first test module is imported."""

from __future__ import annotations

import gc
import os

# scikit-learn reads this at import; without it the array-API estimator check is skipped.
os.environ["SCIPY_ARRAY_API"] = "1"

from hypothesis import settings

# "ci", the default, tries the same examples in every run, so that a failure is a fact about the
# code; `pytest --hypothesis-profile=explore` looks for new ones.
settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("ci")


def pytest_collection_finish() -> None:
    """Leave the tests themselves to no collection of garbage: they stay to the end."""
    gc.collect()
    gc.freeze()
