"""Calls from Python, and whether they ended in a result or in the library's own error."""

import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calibrant import InputError
from tests.hostile.commands import HINT, TooSlow, limited


@dataclass(frozen=True)
class Outcome:
    """``result``, ``refused``, or what went wrong and where."""

    word: str
    detail: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether it should not have ended so."""
        return self.word not in ("result", "refused")


def called(work: Callable[[], Any]) -> Outcome:
    """Do it, with warnings as errors, and no longer than it may take."""
    try:
        with limited(), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", HINT)
            work()
    except InputError as error:
        return Outcome("refused", str(error))
    except TooSlow:
        return Outcome("too slow")
    except MemoryError:
        return Outcome("refused", "memory")
    except Exception as error:  # any other is a fault
        last = traceback.extract_tb(error.__traceback__)
        place = next((f for f in reversed(last) if "calibrant" in f.filename and "tests" not in f.filename), last[-1])
        inside = place.filename.rpartition("calibrant/")[2]
        return Outcome(type(error).__name__, f"{inside}:{place.lineno} {str(error).splitlines()[:1]}"[:200])
    return Outcome("result")
