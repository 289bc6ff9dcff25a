"""What tests of ledgers share: sums, other processes, other users, and SQL from outside."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from dpbayes_sklearn.privacy.budget import Cost, PrivacyUnit
from dpbayes_sklearn.privacy.composition import Spend

CEILING = Cost.of(1)
ONE = Spend.of(1)
TENTH = Spend.of(0.1)
ADDED = PrivacyUnit("record", neighbours="add_remove")
"""The unit of releases in a parallel scope."""


def run_in_child(action) -> str:
    """Run ``action`` in a forked process and return the name of what it raised, or ''."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            action()
        except BaseException as error:
            os.write(writer, type(error).__name__.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        return pipe.read()


def sql(path: str, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def as_a_common_user(action) -> str:
    def run():
        if os.geteuid() == 0:
            os.setuid(65534)
        action()

    return run_in_child(run)
