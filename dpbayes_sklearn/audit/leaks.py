"""Search for secrets in everything that a fitted object contains or shows.

An exact statistic that survives a fit voids its guarantee, wherever it is: in a private attribute,
a cache, a closure, the pickle, a ``repr``. :func:`leaks` walks all of them.
"""

from __future__ import annotations

import pickle
import types
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from fractions import Fraction
from functools import partial
from numbers import Number
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import AnyArray, FloatArray

# Objects of these types refer to nothing that could be searched further.
_ATOMS = (str, bytes, bytearray, Number, np.generic, type, types.ModuleType, type(None))
_DEEPEST = 40  # References are followed to this depth.


def walk(thing: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that can be reached from an object, with the way to it.

    Attributes (also of slots), items, closures, defaults and bound arguments of functions, and
    the objects behind bound methods are followed; classes and modules are not.

    Examples
    --------
    >>> def remembering(hidden):
    ...     return {"f": lambda: hidden}
    >>> [path for path, value in walk(remembering([7])) if value == 7]
    ["['f'].hidden[0]"]
    """
    yield from _walk(thing, path, set(), [], 0)


def _walk(
    thing: Any, path: str, seen: set[int], alive: list[Any], depth: int
) -> Iterator[tuple[str, Any]]:
    yield path, thing
    if isinstance(thing, _ATOMS) or depth > _DEEPEST or id(thing) in seen:
        return
    seen.add(id(thing))
    alive.append(thing)  # while it lives nothing else gets its id
    for step, part in _parts(thing):
        yield from _walk(part, path + step, seen, alive, depth + 1)


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, np.ndarray):
        if thing.dtype == object:
            yield from ((f"[{i}]", value) for i, value in enumerate(thing.ravel()))
        if thing.base is not None:
            yield ".base", thing.base
        return
    if isinstance(thing, Mapping):
        for key, value in thing.items():
            yield ".keys", key
            yield f"[{key!r}]", value
    elif isinstance(thing, (list, tuple, AbstractSet)):
        yield from ((f"[{i}]", value) for i, value in enumerate(thing))
    elif isinstance(thing, partial):
        yield from ((".func", thing.func), (".args", thing.args), (".keywords", thing.keywords))
    elif isinstance(thing, types.MethodType):
        yield from ((".__self__", thing.__self__), (".__func__", thing.__func__))
    elif isinstance(thing, types.FunctionType):
        yield from _captured(thing)
    yield from ((f".{name}", value) for name, value in getattr(thing, "__dict__", {}).items())
    for cls in type(thing).__mro__:
        for name in _slots(cls):
            if hasattr(thing, name):
                yield f".{name}", getattr(thing, name)


def _slots(cls: type) -> list[str]:
    names = cls.__dict__.get("__slots__", ())
    names = [names] if isinstance(names, str) else list(names)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _captured(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function holds: the variables it closes over and its defaults."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if cell != types.CellType():
            yield f".{name}", cell.cell_contents
    yield ".__defaults__", function.__defaults__
    yield ".__kwdefaults__", function.__kwdefaults__


def fitted_numbers(fitted: Any) -> FloatArray:
    """Return all numbers of the fitted attributes (``name_``) in one array, in a fixed order.

    This is what an adversary can read off a released model, and what
    :func:`~dpbayes_sklearn.audit.audit` observes unless told otherwise.
    """
    names = sorted(name for name in vars(fitted) if name.endswith("_") and name[0] != "_")
    return numbers([getattr(fitted, name) for name in names])


def numbers(thing: Any) -> FloatArray:
    """Return all numbers that can be reached from an object, in one array."""
    found = [_as_floats(value) for _, value in walk(thing)]
    return np.concatenate([*found, np.empty(0)])


def _as_floats(value: Any) -> FloatArray:
    if isinstance(value, Fraction):
        return np.array([float(value)])
    numeric = isinstance(value, (int, float, np.number, np.ndarray)) and not isinstance(value, bool)
    array = np.asarray(value) if numeric else np.empty(0)
    return array.astype(float).ravel() if array.dtype.kind in "biuf" else np.empty(0)


def leaks(fitted: Any, secrets: Mapping[str, Any]) -> list[str]:
    """Return the places where secrets occur in a fitted object or its representations.

    Parameters
    ----------
    fitted : object
        A fitted estimator, a posterior, or anything else.
    secrets : mapping of str to object
        What must not be found, by name: arrays (exact statistics, columns), which are also found
        as a part of larger ones, or single values that do not occur by chance. Texts are searched
        for in texts and bytes.

    Returns
    -------
    list of str
        ``"name of the secret: where"``, empty if none was found.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> careless = SimpleNamespace(mean_=1.5, _cache=np.array([[12, 88], [31, 69]]))
    >>> leaks(careless, {"counts": [[12, 88], [31, 69]]})
    ['counts: object._cache', 'counts: pickle']
    """
    found = []
    matchers = {name: _matcher(secret) for name, secret in secrets.items()}
    for path, value in walk(fitted, "object"):
        found += [f"{name}: {path}" for name, matches in matchers.items() if matches(value)]
    for where, shown in _shown(fitted):
        for name, secret in secrets.items():
            found += [f"{name}: {where}"] if _prints(secret, shown) else []
    return list(dict.fromkeys(found))


def _shown(fitted: Any) -> Iterator[tuple[str, bytes]]:
    """Yield what others get to see of an object, as bytes."""
    with suppress(pickle.PicklingError, TypeError, AttributeError):  # then it cannot leave so
        yield "pickle", pickle.dumps(fitted, protocol=4)
    yield "repr", repr(fitted).encode()
    yield "str", str(fitted).encode()
    for name in ("_repr_html_", "to_json"):
        method: Callable[[], Any] | None = getattr(fitted, name, None)
        with suppress(ValueError):  # a search has no JSON form
            if callable(method):
                yield name, str(method()).encode()


def _matcher(secret: Any) -> Callable[[Any], bool]:
    if isinstance(secret, (str, bytes)):
        return lambda value: isinstance(value, (str, bytes)) and _prints(secret, _encoded(value))
    wanted = np.asarray(secret)
    if wanted.ndim == 0:
        return lambda value: _is_value(value, wanted)
    return lambda value: _holds(value, wanted)


def _is_value(value: Any, wanted: AnyArray) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind == wanted.dtype.kind and bool((value == wanted).any())
    return isinstance(value, (Number, np.generic)) and bool(value == wanted[()])


def _holds(value: Any, wanted: AnyArray) -> bool:
    """Tell whether an array, or a list of numbers, has the wanted numbers in a row."""
    if isinstance(value, (list, tuple)):
        with suppress(ValueError, TypeError):  # which tell that it is no array
            value = np.asarray(value)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        return False
    flat, row = value.ravel(), wanted.ravel()
    if flat.size < row.size:
        return False
    starts = np.flatnonzero(flat[: flat.size - row.size + 1] == row[0])
    return any(np.array_equal(flat[i : i + row.size], row) for i in starts)


def _encoded(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _prints(secret: Any, shown: bytes) -> bool:
    """Tell whether bytes hold a secret: its text, or its numbers as text or as they are stored."""
    if isinstance(secret, (str, bytes)):
        return _encoded(secret) in shown
    array = np.asarray(secret)
    if array.ndim == 0:
        text = str(array[()]).encode()
        return text in shown or array.astype(float).tobytes() in shown
    for kind in {np.dtype(np.int64), np.dtype(np.float64), array.dtype}:
        numbers = array.astype(kind).ravel()
        if not np.array_equal(numbers, array.ravel()):  # truncated: zeros are everywhere
            continue
        listed = ", ".join(str(number) for number in numbers.tolist()).encode()
        if array.size > 1 and (numbers.tobytes() in shown or listed in shown):
            return True
    return False
