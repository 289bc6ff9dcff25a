"""``python -m checker model.json ...`` prints a verdict for each document; 0 if all hold."""

import sys
from pathlib import Path

from checker.check import HOLDS, check

verdicts = [check(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
for name, verdict in zip(sys.argv[1:], verdicts, strict=True):
    print(f"{name}: {verdict}")
sys.exit(any(verdict.answer != HOLDS for verdict in verdicts))
