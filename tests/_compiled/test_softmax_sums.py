import numpy as np
import pytest

from calibrant._compiled.softmax_sums import NEVER, class_sums, picked_sums, value_sums

SIZES = [1, 2, 3, 16, 17, 127, 128, 129, 255, 256, 257, 300]
UNDERFLOW = 1e-304
"""Some hundred times the smallest exponential that is taken."""


def features(rng, n, d, scale=1.0):
    """Small fractions: their products are exact in any order of adding up."""
    return rng.integers(-8, 9, (n, d)) * scale / 8


def all_pairs(queries, keys, own):
    """The largest product of each query, and the weights."""
    logs = queries @ keys.T
    logs[logs <= NEVER / 10] = -np.inf
    rows = np.flatnonzero(own >= 0)
    logs[rows, own[rows]] = -np.inf
    top = logs.max(axis=1)
    return top, np.exp(logs - np.where(np.isinf(top), 0, top)[:, None])


def by_class(queries, keys, labels, n_classes, own):
    """The definition."""
    top, weights = all_pairs(queries, keys, own)
    member = labels[:, None] == np.arange(n_classes)
    return top, weights @ member, weights**2 @ member


def assert_sums(found, expected):
    assert np.array_equal(found[0], expected[0])
    for values, exact in zip(found[1:], expected[1:], strict=True):
        assert (np.abs(values - exact) <= 1e-13 * exact + UNDERFLOW).all()


class TestClassSums:
    @pytest.mark.parametrize("n_classes", [1, 2, 7, 100])
    @pytest.mark.parametrize("n", SIZES)
    def test_sums_are_those_of_all_pairs(self, n, n_classes, rng):
        x, y = features(rng, n, 3), features(rng, n, 3)
        labels, own = rng.integers(0, n_classes, n), np.arange(n)
        found = class_sums(x, y, labels, n_classes, own)
        assert_sums(found, by_class(x, y, labels, n_classes, own))

    @pytest.mark.parametrize("d", range(1, 14))
    def test_any_number_of_features(self, d, rng):
        x, y, labels = features(rng, 131, d), features(rng, 131, d), rng.integers(0, 3, 131)
        own = np.arange(131)
        assert_sums(class_sums(x, y, labels, 3, own), by_class(x, y, labels, 3, own))

    @pytest.mark.parametrize(("m", "n"), [(1, 300), (300, 1), (129, 40), (40, 129)])
    def test_queries_need_not_be_as_many_as_keys(self, m, n, rng):
        x, y, labels = features(rng, m, 2), features(rng, n, 2), rng.integers(0, 4, n)
        own = rng.integers(-1, n, m)
        assert_sums(class_sums(x, y, labels, 4, own), by_class(x, y, labels, 4, own))

    def test_minus_one_leaves_nothing_out(self, rng):
        x, y, labels = features(rng, 150, 2), features(rng, 150, 2), rng.integers(0, 2, 150)
        everything = class_sums(x, y, labels, 2, np.full(150, -1))
        assert_sums(everything, by_class(x, y, labels, 2, np.full(150, -1)))
        assert not np.array_equal(everything[1], class_sums(x, y, labels, 2, np.arange(150))[1])

    def test_classes_that_do_not_occur_have_no_weight(self, rng):
        x, labels = features(rng, 200, 2), rng.choice([2, 5], 200)
        _, sums, squares = class_sums(x, x, labels, 8, np.full(200, -1))
        for values in (sums, squares):
            assert (values.any(axis=0) == np.isin(np.arange(8), [2, 5])).all()

    @pytest.mark.parametrize("scale", [2.0**-20, 2.0**7, 2.0**14, 2.0**27])
    def test_exponents_of_any_spread(self, scale, rng):
        x, y = features(rng, 300, 3), features(rng, 300, 3, scale)
        labels, own = rng.integers(0, 5, 300), np.arange(300)
        assert_sums(class_sums(x, y, labels, 5, own), by_class(x, y, labels, 5, own))

    @pytest.mark.parametrize("step", [-500, -1.5, 0.0, 1.5, 500])
    def test_the_largest_exponent_may_come_first_or_last(self, step, rng):
        y = step * np.arange(300.0)[:, None]
        labels, own = rng.integers(0, 3, 300), np.array([-1, 0, 299])
        assert_sums(class_sums(np.ones((3, 1)), y, labels, 3, own), by_class(np.ones((3, 1)), y, labels, 3, own))

    def test_a_class_too_far_below_has_exactly_no_weight(self):
        y = np.repeat([[0.0], [-800.0]], 200, axis=0)
        top, sums, squares = class_sums(np.ones((1, 1)), y, np.repeat([1, 0], 200), 2, np.array([-1]))
        assert (top.tolist(), sums.tolist(), squares.tolist()) == ([0.0], [[0.0, 200.0]], [[0.0, 200.0]])

    def test_squares_vanish_before_weights_do(self):
        _, sums, squares = class_sums(np.ones((1, 1)), np.array([[0.0], [-500.0]]), np.array([0, 1]), 2, np.array([-1]))
        assert sums[0] == pytest.approx([1.0, np.exp(-500.0)], rel=1e-14)
        assert squares.tolist() == [[1.0, 0.0]]

    @pytest.mark.parametrize("n", [1, 128, 300])
    def test_queries_without_any_weight(self, n):
        top, sums, squares = class_sums(
            np.array([[NEVER], [0.0]]), np.ones((n, 1)), np.zeros(n, int), 2, np.full(2, -1)
        )
        assert top.tolist() == [-np.inf, 0.0]
        assert sums.tolist() == squares.tolist() == [[0.0, 0.0], [n, 0.0]]

    def test_the_only_key_may_be_left_out(self):
        top, sums, squares = class_sums(np.ones((2, 1)), np.ones((1, 1)), np.array([0]), 1, np.array([0, -1]))
        assert (top.tolist(), sums.tolist(), squares.tolist()) == ([-np.inf, 1.0], [[0.0], [1.0]], [[0.0], [1.0]])

    def test_keys_that_some_queries_never_see(self, rng):
        x = np.column_stack([features(rng, 300, 2), NEVER * rng.integers(0, 2, 300)])
        y = np.column_stack([features(rng, 300, 2), rng.integers(0, 2, 300)])
        labels, own = rng.integers(0, 3, 300), np.arange(300)
        assert_sums(class_sums(x, y, labels, 3, own), by_class(x, y, labels, 3, own))

    def test_all_exponents_may_be_far_below_zero(self, rng):
        y, labels = np.column_stack([features(rng, 200, 2), np.full(200, -1e5)]), rng.integers(0, 2, 200)
        x, own = np.column_stack([features(rng, 200, 2), np.ones(200)]), np.arange(200)
        assert_sums(class_sums(x, y, labels, 2, own), by_class(x, y, labels, 2, own))

    def test_the_digits_do_not_depend_on_the_number_of_threads(self, rng):
        x, y, labels = rng.normal(size=(700, 3)), rng.normal(size=(700, 3)), rng.integers(0, 5, 700)
        one, two, any_number = (class_sums(x, y, labels, 5, np.arange(700), threads=t) for t in (1, 2, None))
        for a, b, c in zip(one, two, any_number, strict=True):
            assert np.array_equal(a, b)
            assert np.array_equal(a, c)


class TestValueSums:
    @staticmethod
    def data(rng, m, n, d, q, scale=1.0):
        own = rng.integers(-1, n, m)
        return features(rng, m, d), features(rng, n, d, scale), rng.normal(size=(n, q)), rng.uniform(0, 2, n), own

    @staticmethod
    def assert_agrees(data):
        """Against the definition; the tolerance of sums is relative to those of absolute values."""
        queries, keys, values, spread, own = data
        top, weights = all_pairs(queries, keys, own)
        columns, squared = np.column_stack([values, np.ones(len(keys))]), np.column_stack([spread, np.ones(len(keys))])
        found = value_sums(*data)
        assert np.array_equal(found[0], top)
        assert (np.abs(found[1] - weights @ columns) <= 1e-13 * (weights @ np.abs(columns)) + UNDERFLOW).all()
        assert (np.abs(found[2] - weights**2 @ squared) <= 1e-13 * (weights**2 @ squared) + UNDERFLOW).all()

    @pytest.mark.parametrize("q", [1, 2, 7, 100])
    @pytest.mark.parametrize("n", SIZES)
    def test_sums_are_those_of_all_pairs(self, n, q, rng):
        self.assert_agrees((*self.data(rng, n, n, 3, q)[:4], np.arange(n)))

    @pytest.mark.parametrize("d", range(1, 14))
    def test_any_number_of_features(self, d, rng):
        self.assert_agrees(self.data(rng, 131, 131, d, 2))

    @pytest.mark.parametrize(("m", "n"), [(1, 300), (300, 1), (129, 40), (40, 129)])
    def test_queries_need_not_be_as_many_as_keys(self, m, n, rng):
        self.assert_agrees(self.data(rng, m, n, 3, 2))

    @pytest.mark.parametrize("scale", [2.0**-20, 2.0**7, 2.0**14, 2.0**27])
    def test_exponents_of_any_spread(self, scale, rng):
        self.assert_agrees(self.data(rng, 300, 300, 3, 4, scale))

    @pytest.mark.parametrize("step", [-500, -1.5, 0.0, 1.5, 500])
    def test_the_largest_exponent_may_come_first_or_last(self, step, rng):
        data = self.data(rng, 3, 300, 1, 2)
        self.assert_agrees((np.ones((3, 1)), step * np.arange(300.0)[:, None], *data[2:]))

    @pytest.mark.parametrize("n", [1, 128, 300])
    def test_queries_without_any_weight(self, n):
        queries, own = np.array([[NEVER], [0.0]]), np.full(2, -1)
        top, sums, squares = value_sums(queries, np.ones((n, 1)), np.full((n, 1), 2.0), np.full(n, 3.0), own)
        assert top.tolist() == [-np.inf, 0.0]
        assert sums.tolist() == [[0.0, 0.0], [2 * n, n]]
        assert squares.tolist() == [[0.0, 0.0], [3 * n, n]]

    def test_the_digits_do_not_depend_on_the_number_of_threads(self, rng):
        data = self.data(rng, 700, 700, 3, 5)
        one, two, any_number = (value_sums(*data, threads=t) for t in (1, 2, None))
        for a, b, c in zip(one, two, any_number, strict=True):
            assert np.array_equal(a, b)
            assert np.array_equal(a, c)


def picked(queries, keys, values, labels):
    """The definition, all pairs, and the same with absolute values."""
    weights = np.exp(queries @ keys[:, :-1].T + keys[:, -1])
    np.fill_diagonal(weights, 0)
    chosen = values.T[labels]
    return (weights * chosen).sum(axis=1), (weights * np.abs(chosen)).sum(axis=1)


def assert_picked(found, expected):
    exact, size = expected
    assert (np.abs(found - exact) <= 1e-13 * size + UNDERFLOW).all()


class TestPickedSums:
    @staticmethod
    def data(rng, n, d, n_classes, scale=1.0):
        """Exponents of at most zero."""
        queries, keys = np.abs(features(rng, n, d)), -np.abs(features(rng, n, d + 1, scale))
        return queries, keys, rng.normal(size=(n, n_classes)), rng.integers(0, n_classes, n)

    @pytest.mark.parametrize("n_classes", [1, 2, 7, 100])
    @pytest.mark.parametrize("n", SIZES)
    def test_sums_are_those_of_all_pairs(self, n, n_classes, rng):
        data = self.data(rng, n, 3, n_classes)
        assert_picked(picked_sums(*data), picked(*data))

    @pytest.mark.parametrize("d", range(1, 14))
    def test_any_number_of_features(self, d, rng):
        data = self.data(rng, 131, d, 3)
        assert_picked(picked_sums(*data), picked(*data))

    @pytest.mark.parametrize("scale", [2.0**-20, 2.0**7, 2.0**14, 2.0**27])
    def test_exponents_of_any_spread(self, scale, rng):
        data = self.data(rng, 300, 3, 4, scale)
        assert_picked(picked_sums(*data), picked(*data))

    def test_keys_that_are_shifted_out_of_sight_add_nothing(self, rng):
        queries, keys, values, labels = self.data(rng, 200, 2, 3)
        keys[::3, -1] = NEVER
        expected = picked(queries, keys, values, labels)
        values[::3] = 1e200
        assert_picked(picked_sums(queries, keys, values, labels), expected)

    def test_a_row_does_not_see_itself(self):
        assert picked_sums(np.zeros((1, 1)), np.zeros((1, 2)), np.ones((1, 1)), np.zeros(1, int)).tolist() == [0.0]

    @pytest.mark.parametrize("n", [300, 384, 1000])
    def test_pieces_of_whole_blocks_have_the_same_digits(self, n, rng):
        queries, keys, values, labels = self.data(rng, n, 3, 4)
        parts = [
            picked_sums(queries[i : i + 256], keys, values, labels[i : i + 256], before=i // 128, threads=1)
            for i in range(0, n, 256)
        ]
        assert np.array_equal(np.concatenate(parts), picked_sums(queries, keys, values, labels))

    def test_the_digits_do_not_depend_on_the_number_of_threads(self, rng):
        data = self.data(rng, 700, 3, 5)
        one, two, any_number = (picked_sums(*data, threads=t) for t in (1, 2, None))
        assert np.array_equal(one, two)
        assert np.array_equal(one, any_number)
