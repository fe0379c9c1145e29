import numpy as np
import pytest

from calibrant import Monitor
from calibrant._validate import InputError
from calibrant.plots import EvidenceDisplay, evidence


def watched(n=600, power=1.0, alpha=0.05):
    rng = np.random.default_rng(1)
    p = rng.random(n)
    return Monitor(alpha).update((rng.random(n) < p**power) * 1, p)


def test_the_line_is_the_evidence_and_ends_where_it_ends():
    monitor = watched()
    tables = EvidenceDisplay.from_monitor(monitor).tables
    assert tables["evidence"]["log_evalue"].max() == pytest.approx(monitor.peak)
    assert tables["evidence"]["last"][-1] == 600
    assert tables["marks"].n_rows == 0
    axes = evidence(monitor).ax_
    assert axes.lines[0].get_ydata()[0] == pytest.approx(np.log10(20))
    drawn = axes.lines[1].get_ydata()
    assert drawn[0] == 0
    np.testing.assert_allclose(drawn[1:], tables["evidence"]["log_evalue"] / np.log(10))


def test_an_alarm_is_marked_where_the_line_crosses():
    monitor = watched(power=2.0, alpha=0.01)
    display = evidence(monitor)
    assert display.tables["settings"]["alpha"][0] == 0.01
    assert [words for _, words in display.drawing.marks(display.tables)] == [
        "evidence",
        "enough for an alarm, 100",
        "alarm",
    ]
    diamond = display.ax_.collections[-1].get_offsets()[0]
    assert diamond.tolist() == [monitor.alarm.row, 2.0]


def test_evidence_without_end_leaves_the_picture():
    monitor = Monitor().update([0, 1, 0, 1], [0.5, 0.0, 0.5, 0.5])
    display = evidence(monitor)
    assert np.isinf(display.tables["evidence"]["log_evalue"]).any()
    low, high = display.ax_.get_ylim()
    assert np.isfinite([low, high]).all()
    assert np.isfinite(display.ax_.lines[1].get_ydata()).all()
    assert "inf" not in display.to_svg()
    assert evidence(Monitor().update([1], [0.5])).ax_.get_xlim() == (0, 1)


def test_refusals():
    with pytest.raises(InputError, match="no rows"):
        EvidenceDisplay.from_monitor(Monitor())
    with pytest.raises(InputError, match="monitor must be a Monitor"):
        EvidenceDisplay.from_monitor([1, 0])
