import io
import time

import pytest

progress = pytest.importorskip("calibrant.cli.display")

from calibrant.cli.console import Stream  # noqa: E402
from calibrant.reports.core.model import Step  # noqa: E402


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal would be sent."""
    file = Terminal()
    stream = Stream(file=file, force_terminal=True, width=100, _environ={"TERM": "xterm"})
    monkeypatch.setattr(progress, "err", stream)
    return file


def test_steps_show_their_name_and_the_time_left(terminal, monkeypatch):
    with progress.steps() as advance:
        advance("First", 0, 10)
        time.sleep(0.06)
        advance("[b]Second[/b]", 1, 10)
        time.sleep(0.15)  # ten pictures a second
    assert "[b]Second[/b]" in terminal.getvalue()
    assert "about 1 s left" in terminal.getvalue()


def test_engines_show_how_far_they_are(terminal):
    engine = progress.ProgressEngine(name="Simulating")
    assert list(engine.map(lambda x: time.sleep(0.06) or x + 1, range(5))) == [1, 2, 3, 4, 5]
    assert "Simulating" in terminal.getvalue()
    assert "left" in terminal.getvalue()


def test_nothing_is_shown_where_nobody_looks_on(capsys, monkeypatch):
    monkeypatch.setattr(progress, "err", Stream(stderr=True, force_terminal=True))  # as FORCE_COLOR does in a pipe
    with progress.steps() as advance:
        advance("Reading", 0, 2)
    assert list(progress.ProgressEngine().map(pow, [2, 3], [3, 4])) == [8, 81]
    assert capsys.readouterr() == ("", "")


def test_time_left_is_work_left_at_the_speed_so_far(monkeypatch):
    monkeypatch.setattr(progress.time, "monotonic", lambda: 112.0)
    # Three of ten parts took 6 s; the fourth began 2 s ago.
    assert progress.seconds_left(8.0, 3.0, 10.0, 110.0) == pytest.approx(7 * 2.0 - 2.0)
    assert progress.seconds_left(60.0, 3.0, 10.0, 60.0) == 0.0  # longer than expected, and not less than nothing
    assert progress.seconds_left(8.0, 3.0, None, 110.0) is None
    assert progress.seconds_left(8.0, 0.0, 10.0, 110.0) is None


def test_a_step_moves_on_with_its_tasks(terminal):
    with progress.steps() as advance:
        advance(Step("999 resamples", 50.0), 0, 60)
        places = [advance.bar.tasks[0].completed for _ in advance.map(abs, range(5))]
        assert places == pytest.approx([9, 18, 27, 36, 45])
        assert list(advance.map(abs, [-1])) == [1]
        assert advance.bar.tasks[0].completed == pytest.approx(45)  # never back, and never beyond the step
        advance("Brier score", 50, 60)
        assert advance.bar.tasks[0].completed == 50
        advance("Done", 60, 60)
        assert list(advance.map(abs, [-1])) == [1]
        assert advance.bar.tasks[0].completed == 60
