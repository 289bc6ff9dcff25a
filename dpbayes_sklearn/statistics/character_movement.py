"""How far neighbouring data can move sums of characters."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.splits import depths, haar

__all__ = ["block_movement", "character_movement", "star_movement"]


def character_movement(network: Network, supports: Iterable[tuple[int, ...]], unit: str) -> int:
    """Return the L1 sensitivity of the character sums with these supports.

    Exact for a star, a sound bound for any other graph.
    """
    if network.is_star:
        return star_movement(network, unit)
    return block_movement(network, supports, unit)


def block_movement(network: Network, supports: Iterable[tuple[int, ...]], unit: str) -> int:
    """Return a bound that adds up what each block of characters can move by itself.

    A record has at most prod(depth_u) characters in a block, each of them 1 or -1, so replacing
    it moves the block by at most twice that.
    """
    most = {s: 2 * prod(int(depths(network.sizes[u]).max()) for u in s) for s in supports}
    if unit == "record":
        return sum(most.values())
    features = range(network.target)
    return max((sum(m for s, m in most.items() if u in s) for u in features), default=0)


def star_movement(network: Network, unit: str) -> int:
    """Return max over neighbouring x, x' of the sum over a of abs(phi_a(x) - phi_a(x')).

    Let a class value have A characters (the constant included) and a feature value B. A pair of
    records has AB + A'B' characters in a family, less 2 for every character that both have with
    the same sign. Signs of a product agree if both factors agree or both differ, so with p, q
    characters that agree and differ between the classes, and r, s between the features, the
    family moves by AB + A'B' - 2(pr + qs). The class's own part, A + A' - 2p, is common to all
    families, and given the two classes the features can be maximised one by one.
    """
    n_classes = network.sizes[-1]
    has, agree, differ = _comparison(n_classes)
    best = 0
    for c in range(n_classes):
        for other in range(n_classes) if unit == "record" else [c]:
            p, q = agree[c, other], differ[c, other]
            own = has[c] + has[other] - 2 * p
            gains = []
            for size in network.sizes[:-1]:
                b, r, s = _comparison(size)
                family = has[c] * b[:, None] + has[other] * b[None, :] - 2 * (p * r + q * s)
                gains.append(int(family.max() - own))
            total = int(own) + sum(gains) if unit == "record" else max(gains, default=0)
            best = max(best, total)
    return best


@lru_cache(maxsize=256)
def _comparison(size: int) -> tuple[npt.NDArray[np.int64], ...]:
    """Return how many characters each value has, and how many agree and differ between two."""
    h = haar(size)
    product = h @ h.T
    both = np.abs(h) @ np.abs(h).T
    return np.abs(h).sum(axis=1), (both + product) // 2, (both - product) // 2
