"""Files that commands write: never one that is read, and with room before anything is spent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import BinaryIO, NoReturn
from uuid import uuid4

from dpbayes_sklearn.command_line.csv_file import FileError

__all__ = ["ReservedFile", "refuse_to_overwrite", "reserved"]

_OF_SQLITE = ("", "-journal", "-wal", "-shm")  # a ledger, and the files that SQLite puts beside it
_AT_ONCE = 2**20  # bytes


def refuse_to_overwrite(out: Path | None, read: Mapping[str, Path | None]) -> None:
    """Refuse a file to write that is one of those that the command reads, by whatever name."""
    for what, path in read.items():
        endings = _OF_SQLITE if what == "ledger" else ("",)
        names = [path.with_name(path.name + ending) for ending in endings] if path else []
        if out is not None and any(_same(out, name) for name in names):
            raise FileError(f"--out {out} is the file of the {what}: name another file.")


def _same(one: Path, other: Path) -> bool:
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and one.samefile(other)  # a hard link


@contextmanager
def reserved(path: Path, room: int) -> Iterator[ReservedFile]:
    """Hold room for a file on the disk while its content is made.

    The content goes to a file beside ``path``, which takes its place at the end. If there is no
    content, because an error was raised, that file is removed.
    """
    file = ReservedFile(path)
    try:
        file.hold(room)
        yield file
    finally:
        file.give_up()


class ReservedFile:
    """A file beside the one that is wanted, whose place it will take."""

    def __init__(self, path: Path) -> None:
        self._path, self._final = path, _checked(path)
        self._side = self._final.with_name(f".{uuid4().hex[:16]}.part")
        self._done = False

    def hold(self, room: int) -> None:
        """Fill the file with so many zeros, so that the disk has room for what will come."""
        try:
            with self._side.open("xb") as file:
                for start in range(0, room, _AT_ONCE):
                    file.write(bytes(min(_AT_ONCE, room - start)))
                _to_disk(file)
        except OSError as error:
            raise FileError(f"{self._path} cannot be written: {error.strerror}.") from None

    def write(self, text: str) -> None:
        """Put the text into the file; if that fails, somewhere else, as it was paid for."""
        self._done = True
        try:
            with self._side.open("r+b") as file:
                file.write(text.encode("utf-8"))
                file.truncate()
                _to_disk(file)
        except OSError:
            self._rescue(text)
        try:
            self._side.replace(self._final)
        except OSError:
            self._say_where(f"in {self._side}")

    def _rescue(self, text: str) -> NoReturn:
        """Write the text to the folder of temporary files or, if that fails too, print it."""
        with suppress(OSError):
            self._side.unlink()
        other = Path(gettempdir(), f"{uuid4().hex[:16]}-{self._final.name}")
        with suppress(OSError):
            other.write_text(text, encoding="utf-8")
            self._say_where(f"in {other}")
        print(text)
        self._say_where("what was printed")

    def _say_where(self, place: str) -> NoReturn:
        raise FileError(f"{self._path} could not be written. The released model is {place}.")

    def give_up(self) -> None:
        """Remove the file, unless something was written to it."""
        if not self._done:
            self._side.unlink(missing_ok=True)


def _checked(path: Path) -> Path:
    """Return the file that a path leads to, or refuse it."""
    if path.is_symlink() and not path.exists():
        raise FileError(f"{path} is a link to a file that does not exist.")
    if not path.parent.is_dir():
        raise FileError(f"The folder of {path} must exist.")
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        raise FileError(f"{path} must be a file that can be written.")
    return path.resolve()


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
