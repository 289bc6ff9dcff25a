"""Exact samplers: integer arithmetic on random bytes from one source, without rounding.

``add`` draws the noise of a law; every module here may register the sampler of one.
"""

from importlib import import_module
from pkgutil import iter_modules

from dpbayes_sklearn.noise.add import add

__all__ = ["add"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
