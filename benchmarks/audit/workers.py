"""What worker processes print: a search's output must not depend on how many runs it has.

Searches run in processes of their own, with two workers each and another seed each time, and so
with another number of runs. Classes are not declared and epsilon is large, so that every fit would
warn and log; all that is written to both outputs, workers included, is compared.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.audit._cases import Row

SEARCHES = 5
SCRIPT = """
import sys
import numpy as np
from dpbayes_sklearn import BayesianNaiveBayes, PrivateSearchCV

X = np.column_stack([np.arange(40), np.arange(40) % 3])
model = BayesianNaiveBayes(bounds=(0, 40), n_bins=2, inference="plug_in")
search = PrivateSearchCV(
    model, {"alpha": [0.5, 1.0]}, epsilon=120.0, runs_per_candidate=3, n_jobs=2,
    random_state=int(sys.argv[1]),
)
search.fit(X, np.arange(40) % 2)
"""


def output_of(seed: int) -> str:
    """Return all that a search and its workers print."""
    command = [sys.executable, "-W", "always", "-c", SCRIPT, str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout + done.stderr


def run(scale: float) -> Iterator[Row]:
    """Compare the outputs of some searches."""
    searches = max(2, int(SEARCHES * scale))
    outputs = {output_of(seed) for seed in range(searches)}
    what = f"{searches} searches with 2 worker processes: all that is printed"
    figure = f"{len(outputs)} different texts"
    warned = all("PrivacyLeakWarning" in text for text in outputs)
    yield Row(what, figure, "1", len(outputs) == 1 and warned)
