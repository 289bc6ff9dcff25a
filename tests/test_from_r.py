"""The R script of the user guide runs as it stands, where there is R with reticulate."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "wages.R"


def has_reticulate() -> bool:
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "-e", "library(reticulate)"]
    return subprocess.run(asked, capture_output=True, timeout=60).returncode == 0


@pytest.mark.skipif(not has_reticulate(), reason="needs R with reticulate")
def test_slopes_and_odds_from_r_hold_the_truth() -> None:
    environment = os.environ | {"RETICULATE_PYTHON": sys.executable}
    done = subprocess.run(
        ["Rscript", str(SCRIPT)], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (age,) = re.findall(r"age +(\S+) +(\S+) +(\S+)", done.stdout)[:1]
    estimate, low, high = map(float, age)
    assert low < estimate < high
    assert abs(estimate - 0.15) < 0.02
    assert "spent epsilon=2.0" in done.stdout
