from concurrent.futures import ThreadPoolExecutor

from calibrant import ECE, ExactTest
from calibrant.typing import Engine, Estimator, HypothesisTest


def test_our_objects_meet_the_protocols():
    assert isinstance(ECE(), Estimator)
    assert isinstance(ExactTest(ECE()), HypothesisTest)


def test_an_executor_is_an_engine():
    with ThreadPoolExecutor(1) as pool:
        assert isinstance(pool, Engine)
