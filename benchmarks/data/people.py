"""Tables about people, read from packages that carry them; domains are those of the codebooks."""

from __future__ import annotations

import pandas as pd

from benchmarks.data.classification import Classification, Domain, classification, numbered, words
from benchmarks.data.packages import keel_table, package_file, stripped
from dpbayes_sklearn import Interval


def adult() -> Classification:
    """US census of 1994: who earns more than 50,000 dollars."""
    domains = {
        "age": Interval(17, 90, bins=12),
        "workclass": words(
            "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay "
            "Never-worked ?"
        ),
        "education": words(
            "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc "
            "Assoc-acdm Bachelors Masters Prof-school Doctorate"
        ),
        "marital-status": words(
            "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
            "Married-AF-spouse"
        ),
        "occupation": words(
            "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
            "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
            "Priv-house-serv Protective-serv Armed-Forces ?"
        ),
        "relationship": words("Wife Own-child Husband Not-in-family Other-relative Unmarried"),
        "ethnicity": words("White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"),
        "gender": words("Female Male"),
        "capital-gain": Interval(0, 99999, bins=20),
        "capital-loss": Interval(0, 5000, bins=10),
        "hours-per-week": Interval(1, 99, bins=10),
    }
    frame = stripped(pd.read_csv(package_file("xai", "data/census.csv"), index_col=0))
    return classification(frame, domains, "loan", ["<=50K", ">50K"])


def marketing() -> Classification:
    """Shoppers of the San Francisco Bay: which of nine income brackets."""
    sizes = {
        "sex": 2,
        "marital": 5,
        "age": 7,
        "education": 6,
        "occupation": 9,
        "years-in-area": 5,
        "dual-income": 3,
        "persons": 9,
        "children": 10,
        "householder": 3,
        "home": 5,
        "ethnicity": 8,
        "language": 3,
    }
    domains: dict[str, Domain] = {name: numbered(1, k) for name, k in sizes.items()}
    domains["children"] = numbered(0, 9)
    return classification(keel_table("marketing", sizes), domains, "class", "123456789")


def german() -> Classification:
    """Credit in Germany: good or bad risk."""
    domains: dict[str, Domain] = {
        "account": numbered(1, 4, "A1"),
        "months": Interval(0, 72, bins=6),
        "history": numbered(0, 4, "A3"),
        "purpose": numbered(0, 10, "A4"),
        "amount": Interval(0, 20000, bins=10),
        "savings": numbered(1, 5, "A6"),
        "employed-since": numbered(1, 5, "A7"),
        "rate": numbered(1, 4),
        "status": numbered(1, 5, "A9"),
        "debtors": numbered(1, 3, "A10"),
        "residence-since": numbered(1, 4),
        "property": numbered(1, 4, "A12"),
        "age": Interval(18, 80, bins=6),
        "other-plans": numbered(1, 3, "A14"),
        "housing": numbered(1, 3, "A15"),
        "credits": numbered(1, 4),
        "job": numbered(1, 4, "A17"),
        "dependants": numbered(1, 2),
        "telephone": numbered(1, 2, "A19"),
        "foreign": numbered(1, 2, "A20"),
    }
    return classification(keel_table("german", domains), domains, "class", "12")


def contraceptive() -> Classification:
    """Married women of Indonesia in 1987: no contraception, long-term or short-term methods."""
    domains: dict[str, Domain] = {
        "age": Interval(15, 50, bins=7),
        "education": numbered(1, 4),
        "husband-education": numbered(1, 4),
        "children": Interval(0, 16, bins=8),
        "religion": numbered(0, 1),
        "not-working": numbered(0, 1),
        "husband-occupation": numbered(1, 4),
        "standard-of-living": numbered(1, 4),
        "low-media-exposure": numbered(0, 1),
    }
    return classification(keel_table("contraceptive", domains), domains, "class", "123")
