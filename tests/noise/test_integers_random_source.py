"""Random bytes come from the operating system unless a seed is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dpbayes_sklearn.noise
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace
from dpbayes_sklearn.noise.finite import finite_draw
from dpbayes_sklearn.noise.integers import RandomSource, random_source

PACKAGE = Path(dpbayes_sklearn.noise.__file__).parent
SCALE = Fraction(2**50)  # two equal sets of ten draws have no chance


def test_a_seed_repeats_the_noise_and_another_does_not() -> None:
    first, again, other = (
        discrete_laplace(SCALE, 10, random_source(seed)).tolist() for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_bytes_drawn_ahead_are_those_that_single_calls_would_draw() -> None:
    few = np.random.default_rng(0).integers(0, 40, 3000).tolist()
    lengths = [*few, 0, 5000, 0, 1, 70_001, 3]
    for seed, stream, state in ((7, 0, 7), (7, 2, [7, 2])):
        source, generator = random_source(seed, stream), np.random.RandomState(state)
        assert [source(n) for n in lengths] == [generator.bytes(n) for n in lengths]


def test_a_random_state_goes_on_where_it_was() -> None:
    state = np.random.RandomState(3)
    first, second = (discrete_laplace(SCALE, 10, random_source(state)).tolist() for _ in range(2))
    assert first != second


def test_seeding_numpy_does_not_touch_the_noise() -> None:
    drawn = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        drawn.append(discrete_laplace(SCALE, 10, random_source()).tolist())
    assert drawn[0] != drawn[1]


FORK = """
import os
from fractions import Fraction
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace
from dpbayes_sklearn.noise.integers import random_source
source = random_source()
discrete_laplace(Fraction(2**50), 10, source)
for _ in range(2):
    if (child := os.fork()) == 0:
        print(discrete_laplace(Fraction(2**50), 10, source).tolist(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
print(discrete_laplace(Fraction(2**50), 10, source).tolist())
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="the platform cannot fork")
def test_forked_children_draw_different_noise() -> None:
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    lines = run.stdout.split("\n")[:-1]
    assert len(lines) == 3
    assert len(set(lines)) == 3


def recording(source: RandomSource, asked: list[int]) -> RandomSource:
    def ask(count: int) -> bytes:
        asked.append(count)
        return source(count)

    return ask


def test_the_samplers_draw_through_the_source_and_nothing_else() -> None:
    weights = np.full((50, 3), 7, dtype=np.uint64)
    recorded: list[int] = []
    source = recording(random_source(4), recorded)
    noise, index = discrete_laplace(SCALE, 50, source), finite_draw(weights, source)
    assert sum(recorded) > 50 * 8
    plain = random_source(4)
    assert (discrete_laplace(SCALE, 50, plain) == noise).all()
    assert (finite_draw(weights, plain) == index).all()


def test_no_module_but_the_source_names_another_generator() -> None:
    for path in PACKAGE.glob("*.py"):
        tree = ast.parse(path.read_text())
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        names |= {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        generators = names & {"random", "default_rng", "RandomState", "urandom", "secrets"}
        assert bool(generators) == (path.name == "integers.py"), path.name
