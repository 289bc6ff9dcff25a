"""The command line: a private model of a CSV file, without Python code."""

from dpbayes_sklearn.command_line.console import main

__all__ = ["main"]
