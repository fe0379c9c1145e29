import pytest

from calibrant._validate import InputError
from calibrant.engines.cluster import asking, check_versions, explained, versions_here


def workers(**changes):
    return {"tcp://a:1": versions_here(), "tcp://b:2": {**versions_here(), **changes}}


def test_the_function_that_is_sent_says_what_this_process_has():
    assert asking()() == versions_here()


def test_workers_that_are_alike_pass():
    check_versions(workers())


def test_the_last_number_of_python_and_numpy_may_differ():
    here = versions_here()
    check_versions(workers(NumPy=".".join([*here["NumPy"].split(".")[:2], "99"])))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"calibrant": None}, r"worker tcp://b:2 has no calibrant: pip install calibrant==\S+ there"),
        ({"calibrant": "0.0.9"}, "worker tcp://b:2 has calibrant 0.0.9, and .* is here: install the same on both"),
        ({"NumPy": "1.20.0"}, "worker tcp://b:2 has NumPy 1.20.0, and "),
        ({"NumPy": None}, "worker tcp://b:2 has no NumPy: pip install numpy=="),
        ({"Python": "3.9.1"}, "worker tcp://b:2 has Python 3.9.1, and "),
    ],
)
def test_others_are_refused_by_name(changes, message):
    with pytest.raises(InputError, match=message):
        check_versions(workers(**changes))


def test_others_of_the_kind_are_counted():
    with pytest.raises(InputError, match=r"\(and 1 more\)"):
        check_versions({f"tcp://{name}:1": {**versions_here(), "calibrant": "0.0.9"} for name in "ab"})


class Client:
    """One of a cluster whose workers have what is said."""

    def __init__(self, found):
        self.found, self.asked = found, 0

    def run(self, work):
        self.asked += 1
        assert work() == versions_here()
        return self.found


def test_errors_are_those_of_workers_that_came_later_and_have_nothing():
    error = ModuleNotFoundError("No module named 'calibrant'")
    with (
        pytest.raises(InputError, match="worker tcp://b:2 has no calibrant: pip install") as raised,
        explained(Client(workers(calibrant=None))),
    ):
        raise error
    assert raised.value.__context__ is error


@pytest.mark.parametrize("error", [InputError("of a task"), OSError("closed"), ZeroDivisionError("of a task")])
def test_other_errors_are_handed_on(error):
    client = Client(workers())
    with pytest.raises(type(error), match=str(error)), explained(client):
        raise error
    assert client.asked == isinstance(error, ZeroDivisionError)
