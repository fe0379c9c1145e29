"""What is left out where torch is not installed: modules and guides that import it at their top."""

from importlib.util import find_spec

HAS_TORCH = find_spec("torch") is not None

collect_ignore_glob = [] if HAS_TORCH else ["src/calibrant/losses/*", "docs/guide/training.md"]


def pytest_report_header() -> str:
    """Say what is left out."""
    return "losses: tested" if HAS_TORCH else "losses: left out, as torch is not installed"
