"""Tables of categories that are not about people; domains are those of the codebooks."""

from __future__ import annotations

from benchmarks.data.classification import Classification, classification, letters
from benchmarks.data.packages import keel_table


def mushroom() -> Classification:
    """North American mushrooms: edible or poisonous."""
    values = {
        "cap-shape": "bcxfks",
        "cap-surface": "fgys",
        "cap-colour": "nbcgrpuewy",
        "bruises": "tf",
        "odour": "alcyfmnps",
        "gill-attachment": "adfn",
        "gill-spacing": "cwd",
        "gill-size": "bn",
        "gill-colour": "knbhgropuewy",
        "stalk-shape": "et",
        "stalk-root": "bcuerz?",
        "stalk-surface-above": "fyks",
        "stalk-surface-below": "fyks",
        "stalk-colour-above": "nbcgopewy",
        "stalk-colour-below": "nbcgopewy",
        "veil-type": "pu",
        "veil-colour": "nowy",
        "ring-number": "not",
        "ring-type": "ceflnpsz",
        "spore-colour": "knbhrouwy",
        "population": "acnsvy",
        "habitat": "glmpuwd",
    }
    domains = {name: letters(signs) for name, signs in values.items()}
    return classification(keel_table("mushroom", values), domains, "class", "ep")


def spambase() -> Classification:
    """Mail: spam or not, from which of 54 words and signs occur and runs of capitals."""
    names = [f"word{i}" for i in range(54)] + ["mean-run", "longest-run", "capitals"]
    frame = keel_table("spambase", names)
    above = dict.fromkeys(names, 0.0) | {"mean-run": 5.0, "longest-run": 20.0, "capitals": 200.0}
    for name, threshold in above.items():
        frame[name] = (frame[name] > threshold).astype(int)
    return classification(frame, {name: letters("01") for name in names}, "class", "01")


def splice() -> Classification:
    """DNA around splice junctions: exon-intron, intron-exon or neither."""
    names = [f"base{i}" for i in range(60)]
    frame = keel_table("splice", names)
    classes = ["EI", "IE", "N"]
    return classification(frame, {name: letters("ACGTDNSR") for name in names}, "class", classes)


def chess() -> Classification:
    """End games of king and rook against king and pawn: won for White or not.

    The records are positions that were enumerated, not a sample of games.
    """
    names = [f"position{i}" for i in range(36)]
    values = dict.fromkeys(names, "ft") | {
        "position12": "gl",
        "position14": "bnw",
        "position35": "nt",
    }
    domains = {name: letters(signs) for name, signs in values.items()}
    return classification(keel_table("chess", names), domains, "class", ["won", "nowin"])
