"""What a verdict may find."""

from enum import StrEnum


class Finding(StrEnum):
    """What is wrong with predictions, or that nothing is: the one word of a verdict, for programs.

    Members are texts, too, so that they compare with plain ones and go into JSON as they are.

    >>> Finding.TOO_HIGH == "too high", f"they are {Finding.TOO_HIGH}", Finding("local")
    (True, 'they are too high', 'local')
    """

    NONE = "none"
    TOO_FEW_ROWS = "too few rows"
    OVER_CONFIDENT = "over-confident"
    UNDER_CONFIDENT = "under-confident"
    TOO_HIGH = "too high"
    TOO_LOW = "too low"
    TOO_NARROW = "too narrow"
    TOO_WIDE = "too wide"
    CLASS = "class"
    LABEL = "label"
    LOCAL = "local"
    SLICE = "slice"
    MIXED = "mixed"

    def __repr__(self) -> str:
        return repr(self.value)

    @property
    def is_alarm(self) -> bool:
        """Whether something is wrong."""
        return self not in (Finding.NONE, Finding.TOO_FEW_ROWS)

    @property
    def is_of_confidence(self) -> bool:
        """Whether predictions are too sure or too timid."""
        return self in (Finding.OVER_CONFIDENT, Finding.UNDER_CONFIDENT)

    @property
    def is_of_height(self) -> bool:
        """Whether predictions are too high or too low."""
        return self in (Finding.TOO_HIGH, Finding.TOO_LOW)
