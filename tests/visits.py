"""Records of persons, and whom a fit to them may protect."""

import numpy as np

ADDED = {"neighbours": "add_remove"}
PERSON = {"privacy_unit": "person", "max_records_per_person": 3}
WHOM = [ADDED, PERSON, {**ADDED, **PERSON}]
CLASSIFIER = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}


def visits(n=600, seed=0):
    """Return records of persons with one to five records each."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), rng.integers(1, 6, n))[:n]
    y = rng.integers(0, 2, n)
    return (rng.random((n, 4)) < 0.2 + 0.6 * y[:, None]).astype(float), y, who
