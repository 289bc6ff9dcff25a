"""Ways to turn exact statistics into a private posterior.

Every module here that does not begin with an underscore, but for ``base``, holds one
:class:`Mechanism` whose string name is the module's. Adding a file adds a mechanism.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from dpbayes_sklearn.mechanisms.base import Mechanism

if TYPE_CHECKING:  # for editors; at run time all are found below, these or others
    from dpbayes_sklearn.mechanisms.auto import Auto as Auto
    from dpbayes_sklearn.mechanisms.fourier import Fourier as Fourier
    from dpbayes_sklearn.mechanisms.gaussian import Gaussian as Gaussian
    from dpbayes_sklearn.mechanisms.laplace import Laplace as Laplace
    from dpbayes_sklearn.mechanisms.map import MAP as MAP
    from dpbayes_sklearn.mechanisms.options import Exponential as Exponential
    from dpbayes_sklearn.mechanisms.options import Geometric as Geometric
    from dpbayes_sklearn.mechanisms.options import Hellinger as Hellinger
    from dpbayes_sklearn.mechanisms.options import LaplaceImproved as LaplaceImproved
    from dpbayes_sklearn.mechanisms.options import Local as Local
    from dpbayes_sklearn.mechanisms.sampler import Sampler as Sampler

    def __getattr__(name: str) -> Any: ...


def _discover() -> dict[str, type[Mechanism]]:
    found = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        short = module.name.rpartition(".")[2]
        if short.startswith("_") or short == "base":
            continue
        for cls in vars(importlib.import_module(module.name)).values():
            here = isinstance(cls, type) and cls.__module__ == module.name
            if here and issubclass(cls, Mechanism):
                found[cls.name()] = cls
    return found


_BY_NAME = _discover()
globals().update({cls.__name__: cls for cls in _BY_NAME.values()})

__all__ = [
    "Mechanism",
    "mechanism_class",
    "resolve_mechanism",
    *(cls.__name__ for cls in _BY_NAME.values()),
]


def mechanism_class(name: str) -> type[Mechanism] | None:
    """Return the mechanism of that name, if there is one."""
    return _BY_NAME.get(name)


def resolve_mechanism(mechanism: str | Mechanism) -> Mechanism:
    """Return the mechanism of that name with its default options, or the one given."""
    return _BY_NAME[mechanism]() if isinstance(mechanism, str) else mechanism
