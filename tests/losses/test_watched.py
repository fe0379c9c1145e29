import copy
import pickle

import pytest

from calibrant._validate import InputError

torch = pytest.importorskip("torch")

from calibrant.losses.watched import WatchedLoss  # noqa: E402


class Broken(Exception):
    """What is wrong with this batch."""


def explain():
    raise Broken


def test_the_host_looks_at_once():
    loss = WatchedLoss()
    loss.watch(torch.tensor(1.0), explain)
    for number in (float("nan"), float("inf")):
        with pytest.raises(Broken):
            loss.watch(torch.tensor(number), explain)


class Copied:
    """A copy that is under way until it is asked for the second time."""

    def __init__(self):
        self.asked = 0

    def query(self):
        self.asked += 1
        return self.asked > 1


def test_a_copy_is_looked_at_when_it_is_there():
    loss = WatchedLoss()
    loss._mark(torch.tensor(float("nan")))
    loss._mark(torch.tensor(1.0))
    loss._copy, loss._copied = loss._seen.clone(), Copied()
    loss._poll()
    with pytest.raises(InputError, match="the loss of an earlier batch was no finite number.*check=True, which names"):
        loss._poll()
    loss.check()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_check_raises_once(number):
    loss = WatchedLoss()
    loss._mark(torch.tensor(number, dtype=torch.float64))
    loss._mark(torch.tensor(1.0))
    with pytest.raises(InputError, match="an earlier batch"):
        loss.check()
    loss.check()


def test_it_has_no_state_and_can_be_copied():
    loss = WatchedLoss(check=True)
    loss._copied = Copied()
    for copied in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert copied._copied is None
        assert copied.checks_at_once
        copied.check()
    assert not loss.state_dict()
