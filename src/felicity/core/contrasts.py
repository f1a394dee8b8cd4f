"""What a dataset predicts of its conditions, and by which number a judging rule is reported."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """One prediction over the conditions of an item.

    phenomenon: the prediction holds for items of this phenomenon only; None means for all.
    """

    name: str
    better: str
    worse: tuple[str, ...]
    phenomenon: str | None = None


PAIR = Contrast(name="pair", better="good", worse=("bad",))


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The number that a run is reported by, and every word about it, on the terminal and on pages.

    name: as in "Accuracy". kind: `accuracy` if an item passes or not, `concordance` if its value is the share
    of other items that are ordered alike. chance: what guessing would give, if that is known. ideal: the
    value to aim at: 1, or 0.5 if neither sentence should be preferred; None if there is none. margin: the
    unit of an item's margin, or empty if margins are not shown. passed: what completes "60% of 20 pairs ...".
    high: what completes "a higher value means that ...". verdicts: the words for an item that passed and for
    one that did not. sentences: what conditions are called, if not by their own names.
    """

    name: str = "Accuracy"
    kind: str = "accuracy"
    chance: float | None = 0.5
    ideal: float | None = 1.0
    margin: str = "nats"
    passed: str = "judged right"
    high: str = "more items are judged right"
    verdicts: tuple[str, str] = ("right", "wrong")
    sentences: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, fields: Mapping[str, Any], *, default: "Headline | None" = None) -> "Headline":
        """The headline of a dataset's entry or a run's manifest; what it leaves out is that of `default`.

        `ideal` and `chance` may be "none". Raises TypeError for a field that there is not.

        >>> Headline.read({"name": "Top-5 hit rate", "chance": None}).ideal
        1.0
        """
        # TOML has no null.
        given: dict[str, Any] = {key: None if value == "none" else value for key, value in fields.items()}
        if "verdicts" in given:
            passed, failed = given["verdicts"]
            given["verdicts"] = (str(passed), str(failed))
        return replace(default or cls(), **given)

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for manifests."""
        return asdict(self) | {"verdicts": list(self.verdicts), "sentences": dict(self.sentences)}

    @property
    def graded(self) -> bool:
        """Whether a higher value is a better one, so that an item that did not pass is wrong."""
        return self.ideal == 1.0

    @property
    def noun(self) -> str:
        """The name inside a sentence: without a capital, unless a digit or an abbreviation starts it."""
        return self.name[:1].lower() + self.name[1:]

    @property
    def chance_name(self) -> str:
        """What the value of guessing is called: the ideal, if it is."""
        return "ideal" if self.chance == self.ideal else "chance"

    def call(self, condition: str) -> str:
        """What the sentence of a condition is called."""
        return self.sentences.get(condition, condition)

    def describe(self, noun: str = "item") -> str:
        """What the number is, what is ideal, and what a high one means, in two sentences.

        >>> print(ACCURACY.describe("pair").replace("; ", ";\\n"))
        Accuracy: the share of pairs judged right. 100 is ideal;
        a higher value means that more items are judged right.
        """
        what = "the share of other sentences" if self.kind == "concordance" else f"the share of {noun}s"
        best = "No value is ideal" if self.ideal is None else f"{100 * self.ideal:g} is ideal"
        return f"{self.name}: {what} {self.passed}. {best}; a higher value means that {self.high}."


ACCURACY = Headline()
