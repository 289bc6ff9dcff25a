"""Records of persons, and whom a fit to them may protect."""

import numpy as np

from dpbayes_sklearn import PrivacyUnit

ADDED = {"privacy_unit": PrivacyUnit("record", neighbours="add_remove")}
PERSON = {"privacy_unit": PrivacyUnit("person", max_records=3)}
BOTH = {"privacy_unit": PrivacyUnit("person", max_records=3, neighbours="add_remove")}
WHOM = [ADDED, PERSON, BOTH]
CLASSIFIER = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}


def unit_of(whom):
    """Return the unit that some parameters declare."""
    return PrivacyUnit.of(whom.get("privacy_unit", "record"))


def labels(whom, who):
    """Return whose records they are, if a person is protected."""
    return who if unit_of(whom).name == "person" else None


def visits(n=600, seed=0):
    """Return records of persons with one to five records each."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), rng.integers(1, 6, n))[:n]
    y = rng.integers(0, 2, n)
    return (rng.random((n, 4)) < 0.2 + 0.6 * y[:, None]).astype(float), y, who
