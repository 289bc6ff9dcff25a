"""The command line: a private model of one's own CSV file, without writing any Python."""

from dpbayes_sklearn.command_line.console import main

__all__ = ["main"]
