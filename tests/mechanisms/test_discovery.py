from __future__ import annotations

import ast
from pathlib import Path

from dpbayes_sklearn import mechanisms


def test_what_editors_are_told_of_is_there():
    tree = ast.parse(Path(mechanisms.__file__).read_text("utf-8"))
    (checking,) = (n for n in tree.body if isinstance(n, ast.If))
    told = [n for n in checking.body if isinstance(n, ast.ImportFrom)]
    assert len(told) >= 9
    for line in told:
        (name,) = (alias.name for alias in line.names)
        assert getattr(mechanisms, name).__module__ == line.module
