import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import beta, dirichlet

from calibrant._array import to_numpy
from calibrant._compiled import choice
from calibrant._softmax import Softmax
from calibrant.estimators.simplex import dirichlet as module
from calibrant.estimators.simplex.dirichlet import (
    DirichletRows,
    influences,
    log_kernel,
    log_sums,
    regression,
    smoothed,
    weight_panels,
)

FIELDS = ["log_sum", "mean", "squares", "mean_of_squares"]


def log_density(z, f, h):
    """The logarithm of the kernel of one pair, term by term."""
    total = gammaln(sum(f) / h + len(f)) - sum(gammaln(c / h + 1) for c in f)
    for at, c in zip(z, f, strict=True):
        if at == 0 < c:
            return -np.inf
        total += c / h * np.log(at) if c > 0 else 0.0
    return total


def matrix(points, h, weights=None):
    """The logarithms of weights between all pairs of different rows."""
    logs = np.array([[log_density(z, f, h) for f in points] for z in points])
    if weights is not None:
        with np.errstate(divide="ignore"):
            logs = logs + np.log(weights)
    np.fill_diagonal(logs, -np.inf)
    return logs


def by_hand(logs, labels, n_classes):
    log_sum = logsumexp(logs, axis=1)
    weights = np.exp(logs - np.where(np.isinf(log_sum), 0, log_sum)[:, None])
    observed = (labels[:, None] == np.arange(n_classes)) * 1.0
    return [log_sum, weights @ observed, (weights**2).sum(axis=1), weights**2 @ observed], weights


def on_faces(rng, n, k):
    """Points inside the simplex, on its faces and on corners, the last alone there."""
    points = rng.dirichlet(np.ones(k), n)
    points[: n // 3, 0] = 0
    points[n // 4 : n // 2, 1] = 0
    points[n - 3 :] = np.eye(k)[[0, 0, 1]]
    points[: n // 2] /= points[: n // 2].sum(axis=1, keepdims=True)
    return points


@pytest.fixture(params=["tiles", "compiled"])
def route(request, monkeypatch):
    """The same data by both routes."""
    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 0 if request.param == "compiled" else 10**6)
    return request.param


class TestKernel:
    @pytest.mark.parametrize("h", [1e-3, 0.05, 1.0, 30.0])
    @pytest.mark.parametrize("k", [2, 3, 10])
    def test_it_is_the_dirichlet_density(self, k, h, rng):
        points = rng.dirichlet(np.ones(k), 8)
        rows = DirichletRows.of(points, h)
        expected = [[dirichlet.logpdf(z, f / h + 1) for f in points] for z in points]
        assert log_kernel(rows, rows) == pytest.approx(np.array(expected), rel=1e-11, abs=1e-10)

    def test_with_two_classes_it_is_the_beta_density(self, rng):
        p = rng.random(20)
        rows = DirichletRows.of(np.column_stack([1 - p, p]), 0.1)
        expected = beta.logpdf(p[:, None], p / 0.1 + 1, (1 - p) / 0.1 + 1)
        assert log_kernel(rows, rows) == pytest.approx(expected, rel=1e-11, abs=1e-11)

    def test_on_the_boundary_by_hand(self):
        corner, edge, inside = [1.0, 0, 0], [0.5, 0.5, 0], [0.5, 0.25, 0.25]
        rows = DirichletRows.of(np.array([corner, edge, inside]), 1.0)
        # Gamma(4) / (Gamma(3/2)^2 Gamma(1)) and Gamma(4) / (Gamma(3/2) Gamma(5/4)^2), at powers of the coordinates.
        a, b = 6 / (np.pi / 4), 6 / (np.pi**0.5 / 2) / np.exp(2 * gammaln(1.25))
        expected = [[6, 0, 0], [3, a / 2, 0], [3, a * 0.125**0.5, b * 0.5**0.5 * 0.25**0.5]]
        assert np.exp(log_kernel(rows, rows)) == pytest.approx(np.array(expected), rel=1e-13)

    def test_a_point_on_a_face_sees_points_of_that_face_only(self, rng):
        points = on_faces(rng, 24, 4)
        rows = DirichletRows.of(points, 0.2)
        outside = ((points[:, None] == 0) & (points > 0)).any(axis=2)
        assert outside.any()
        assert np.array_equal(np.isinf(log_kernel(rows, rows)), outside)

    @pytest.mark.parametrize("h", [1e-4, 0.1, 1.0])
    def test_everywhere_against_one_pair_at_a_time(self, h, rng):
        points = on_faces(rng, 20, 4)
        expected = [[log_density(z, f, h) for f in points] for z in points]
        rows = DirichletRows.of(points, h)
        assert log_kernel(rows, rows) == pytest.approx(np.array(expected), rel=1e-11, abs=1e-9)

    def test_rows_need_not_sum_to_one_exactly(self, rng):
        points = rng.dirichlet(np.ones(3), 10) * rng.uniform(0.999, 1.001, (10, 1))
        expected = [[log_density(z, f, 0.05) for f in points] for z in points]
        rows = DirichletRows.of(points, 0.05)
        assert log_kernel(rows, rows) == pytest.approx(np.array(expected), rel=1e-11)

    def test_weights_multiply_the_kernel(self, rng):
        points, w = rng.dirichlet(np.ones(3), 10), rng.uniform(0.1, 3, 10)
        plain, weighted = DirichletRows.of(points, 0.1), DirichletRows.of(points, 0.1, w)
        assert log_kernel(weighted, weighted) == pytest.approx(log_kernel(plain, plain) + np.log(w), rel=1e-12)

    def test_a_weight_of_zero_is_a_kernel_of_zero(self, rng):
        rows = DirichletRows.of(rng.dirichlet(np.ones(3), 4), 0.1, np.array([1.0, 0.0, 2.0, 0.0]))
        assert np.isinf(log_kernel(rows, rows)).tolist() == [[False, True, False, True]] * 4

    def test_kernels_vanish_only_by_zeros(self, rng):
        inside, faces = rng.dirichlet(np.ones(3), 12), on_faces(rng, 12, 3)
        assert not DirichletRows.of(inside, 0.1).may_vanish
        assert not DirichletRows.of(inside, 0.1, np.ones(12)).may_vanish
        assert DirichletRows.of(faces, 0.1)[:2].may_vanish
        assert DirichletRows.of(inside, 0.1, np.append(np.ones(11), 0))[:2].may_vanish

    def test_zeros_take_columns_only_where_there_are_any(self, rng):
        inside, faces = rng.dirichlet(np.ones(3), 10), on_faces(rng, 12, 3)
        assert DirichletRows.of(inside, 0.1).queries.shape == (10, 4)
        assert DirichletRows.of(faces, 0.1).queries.shape == (12, 7)

    def test_every_library_gives_the_same_numbers(self, xp, rng):
        points, w = on_faces(rng, 12, 3), rng.uniform(0, 2, 12)
        rows = DirichletRows.of(points, 0.1, w)
        other = DirichletRows.of(xp.asarray(points), 0.1, w)
        assert to_numpy(log_kernel(other[3:9], other)) == pytest.approx(log_kernel(rows, rows)[3:9], rel=1e-12)

    def test_single_precision_is_computed_in_double(self, rng):
        points = rng.dirichlet(np.ones(3), 10).astype(np.float32)
        rows, double = DirichletRows.of(points, 1e-3), DirichletRows.of(points.astype(np.float64), 1e-3)
        assert rows.keys.dtype == np.float64
        assert np.array_equal(log_kernel(rows, rows), log_kernel(double, double))


class TestRegression:
    @pytest.mark.parametrize("h", [1e-3, 0.1, 1.0])
    @pytest.mark.parametrize(("n", "k"), [(2, 3), (30, 3), (40, 5), (140, 2)])
    def test_frequencies_are_those_of_all_pairs(self, n, k, h, route, rng):
        points, labels = rng.dirichlet(np.ones(k), n), rng.integers(0, k, n)
        found = regression(DirichletRows.of(points, h), labels, k)
        expected, _ = by_hand(matrix(points, h), labels, k)
        for name, values in zip(FIELDS, expected, strict=True):
            # At h = 0.001 the logarithms of kernels are near 1,000: eleven digits of their differences are left.
            assert getattr(found, name) == pytest.approx(values, rel=1e-10, abs=1e-11)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_frequencies_on_faces(self, weighted, route, rng):
        points, labels = on_faces(rng, 40, 4), rng.integers(0, 4, 40)
        weights = np.where(rng.random(40) < 0.3, 0.0, rng.uniform(0.2, 3, 40)) if weighted else None
        found = regression(DirichletRows.of(points, 0.1, weights), labels, 4)
        expected, _ = by_hand(matrix(points, 0.1, weights), labels, 4)
        assert found.is_empty[-1]
        for name, values in zip(FIELDS, expected, strict=True):
            assert getattr(found, name) == pytest.approx(values, rel=1e-11, abs=1e-13)

    @pytest.mark.parametrize("points", [lambda rng: rng.dirichlet(np.ones(4), 400), lambda rng: on_faces(rng, 400, 4)])
    def test_both_routes_agree(self, points, monkeypatch, rng):
        rows, labels = DirichletRows.of(points(rng), 0.05, rng.uniform(0.5, 2, 400)), rng.integers(0, 4, 400)
        found = []
        for few in (0, 400):
            monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", few)
            found.append(regression(rows, labels, 4))
        for name in FIELDS:
            assert getattr(found[0], name) == pytest.approx(getattr(found[1], name), rel=1e-12, abs=1e-12)

    def test_rows_without_weight_are_as_good_as_left_out(self, route, rng):
        points, labels, w = on_faces(rng, 40, 3), rng.integers(0, 3, 40), rng.uniform(0.2, 3, 40)
        absent = rng.random(40) < 0.4
        w[absent] = 0
        found = regression(DirichletRows.of(points, 0.1, w), labels, 3)
        dropped = regression(DirichletRows.of(points[~absent], 0.1, w[~absent]), labels[~absent], 3)
        for name in FIELDS:
            assert getattr(found, name)[~absent] == pytest.approx(getattr(dropped, name), rel=1e-12, abs=1e-15)

    def test_equal_weights_change_only_the_sum(self, route, rng):
        points, labels = rng.dirichlet(np.ones(3), 30), rng.integers(0, 3, 30)
        plain = regression(DirichletRows.of(points, 0.1), labels, 3)
        found = regression(DirichletRows.of(points, 0.1, np.full(30, 3.5)), labels, 3)
        assert found.log_sum == pytest.approx(plain.log_sum + np.log(3.5), rel=1e-12)
        for name in FIELDS[1:]:
            assert getattr(found, name) == pytest.approx(getattr(plain, name), rel=1e-11)

    def test_classes_may_be_more_than_those_that_occurred(self, route, rng):
        found = regression(DirichletRows.of(rng.dirichlet(np.ones(5), 20), 0.1), np.zeros(20, dtype=np.uint8), 5)
        assert found.mean == pytest.approx(np.eye(5)[np.zeros(20, dtype=int)], rel=1e-14)

    def test_every_library_gives_the_same_numbers(self, xp, rng):
        points, labels = on_faces(rng, 12, 3), rng.integers(0, 3, 12)
        host = regression(DirichletRows.of(points, 0.1), labels, 3)
        for given in (labels, xp.asarray(labels)):
            found = regression(DirichletRows.of(xp.asarray(points), 0.1), given, 3)
            for name in FIELDS:
                values = to_numpy(getattr(found, name))
                assert values == pytest.approx(getattr(host, name), rel=1e-11, abs=1e-14)

    @pytest.mark.parametrize("faces", [False, True])
    def test_gradients_are_finite_differences(self, faces, rng):
        torch = pytest.importorskip("torch")
        points, labels = rng.dirichlet(np.ones(3), 6), torch.tensor([0, 1, 2, 0, 1, 1])
        points[:3, 2] *= not faces
        inside = torch.tensor((points > 0) * 1.0)

        def frequencies(p):
            found = regression(DirichletRows.of(p * inside, 0.2), labels, 3)
            return tuple(getattr(found, name) for name in FIELDS)

        assert torch.autograd.gradcheck(frequencies, (torch.tensor(points, requires_grad=True),))

    def test_everything_stays_on_the_device_of_the_rows(self):
        torch = pytest.importorskip("torch")
        x = torch.zeros((6, 4), device="meta", dtype=torch.float64)
        found = regression(DirichletRows(x, x, True), torch.zeros(6, device="meta", dtype=torch.int64), 3)
        assert {getattr(found, name).device.type for name in FIELDS} == {"meta"}


class TestSmoothed:
    @staticmethod
    def expected(points, weights, values, spread):
        logs = matrix(points, 0.1, weights)
        (log_sum, _, squares, _), w = by_hand(logs, np.zeros(len(points), dtype=int), 1)
        return [log_sum, w @ values, squares, w**2 @ spread]

    @pytest.mark.parametrize("q", [1, 3])
    def test_averages_are_those_of_all_pairs(self, q, route, rng):
        points, w, values, spread = on_faces(rng, 40, 4), rng.uniform(0.2, 3, 40), *_values(rng, 40, q)
        found = smoothed(DirichletRows.of(points, 0.1, w), values, spread)
        for name, exact in zip(FIELDS, self.expected(points, w, values, spread), strict=True):
            assert getattr(found, name) == pytest.approx(exact, rel=1e-11, abs=1e-13)

    def test_some_rows(self, rng):
        points, chosen = on_faces(rng, 40, 4), np.append(rng.permutation(39)[:20], 39)
        values, spread = _values(rng, 40, 2)
        found = smoothed(DirichletRows.of(points, 0.1), values, spread, chosen)
        assert found.is_empty.tolist() == [False] * 20 + [True]
        for name, exact in zip(FIELDS, self.expected(points, None, values, spread), strict=True):
            assert getattr(found, name) == pytest.approx(exact[chosen], rel=1e-11, abs=1e-13)

    def test_labels_as_values_are_the_regression(self, route, rng):
        rows, labels = DirichletRows.of(on_faces(rng, 40, 3), 0.1), rng.integers(0, 2, 40)
        observed = (labels == 1)[:, None] * 1.0
        found, local = smoothed(rows, observed, observed), regression(rows, labels, 2)
        assert found.mean[:, 0] == pytest.approx(local.mean[:, 1], rel=1e-12, abs=1e-15)
        assert found.mean_of_squares[:, 0] == pytest.approx(local.mean_of_squares[:, 1], rel=1e-12, abs=1e-15)

    def test_every_library_gives_the_same_numbers(self, xp, rng):
        points, (values, spread) = on_faces(rng, 12, 3), _values(rng, 12, 2)
        host = smoothed(DirichletRows.of(points, 0.1), values, spread)
        found = smoothed(DirichletRows.of(xp.asarray(points), 0.1), xp.asarray(values), xp.asarray(spread))
        for name in FIELDS:
            assert to_numpy(getattr(found, name)) == pytest.approx(getattr(host, name), rel=1e-11, abs=1e-14)


def _values(rng, n, q):
    return rng.normal(size=(n, q)), rng.uniform(0, 2, (n, 1))


class TestSumsAndWeights:
    @pytest.mark.parametrize("panel", [7, 256])
    def test_log_sums_of_some_rows(self, panel, route, monkeypatch, rng):
        monkeypatch.setattr(module, "PANEL", panel)
        points, w, chosen = on_faces(rng, 40, 4), rng.uniform(0.2, 3, 40), np.append(rng.permutation(39)[:20], 39)
        found = log_sums(DirichletRows.of(points, 0.1, w), chosen)
        assert found == pytest.approx(logsumexp(matrix(points, 0.1, w), axis=1)[chosen], rel=1e-11)
        assert found[-1] == -np.inf
        tensors = DirichletRows.of(pytest.importorskip("torch").from_numpy(points), 0.1, w)
        assert log_sums(tensors, chosen) == pytest.approx(found, rel=1e-12)

    @pytest.mark.parametrize("panel", [7, 40, 256])
    def test_panels_of_weights_are_those_of_all_pairs(self, panel, monkeypatch, rng):
        monkeypatch.setattr(module, "PANEL", panel)
        points, w = on_faces(rng, 40, 4), rng.uniform(0, 3, 40)
        w[::5] = 0
        panels = list(weight_panels(DirichletRows.of(points, 0.1, w)))
        assert np.concatenate([index for index, _ in panels]).tolist() == list(range(40))
        _, expected = by_hand(matrix(points, 0.1, w), np.zeros(40, dtype=int), 1)
        found = np.concatenate([weights for _, weights in panels])
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-14)
        assert found.sum(axis=1) == pytest.approx(np.append(np.ones(39), 0), rel=1e-14)

    @pytest.mark.parametrize("h", [1e-3, 0.1, 1.0])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_influences_are_those_of_all_pairs(self, h, weighted, route, rng):
        points, labels, values = on_faces(rng, 40, 4), rng.integers(0, 4, 40), rng.normal(size=(40, 4))
        w = np.where(rng.random(40) < 0.3, 0.0, rng.uniform(0.2, 3, 40)) if weighted else None
        rows = DirichletRows.of(points, h, w)
        _, weights = by_hand(matrix(points, h, w), labels, 4)
        expected = np.einsum("ji,ji->i", weights, values[:, labels])
        found = influences(rows, regression(rows, labels, 4), values, labels)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-10)

    def test_influences_agree_by_both_routes(self, monkeypatch, rng):
        rows, labels = DirichletRows.of(on_faces(rng, 400, 3), 0.05), rng.integers(0, 3, 400)
        local, values = regression(rows, labels, 3), rng.normal(size=(400, 3))
        found = []
        for few in (0, 400):
            monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", few)
            found.append(influences(rows, local, values, labels))
        assert found[0] == pytest.approx(found[1], rel=1e-12, abs=1e-12)

    def test_what_rows_add_sums_to_what_is_around_them(self, route, rng):
        """With ``values[j, c] = v_j`` for every class, the sum over i is that of v over rows with neighbours."""
        rows, labels, v = DirichletRows.of(on_faces(rng, 40, 4), 0.1), rng.integers(0, 4, 40), rng.normal(size=40)
        local = regression(rows, labels, 4)
        found = influences(rows, local, np.tile(v[:, None], 4), labels)
        assert found.sum() == pytest.approx(v[~local.is_empty].sum(), rel=1e-11)

    def test_rows_that_see_no_other_are_empty_by_both_routes(self, route):
        rows = DirichletRows.of(np.eye(3), 0.1)
        found = regression(rows, np.arange(3), 3)
        assert isinstance(found, Softmax)
        assert found.is_empty.all()
        assert log_sums(rows, np.arange(3)).tolist() == [-np.inf] * 3
        assert influences(rows, found, np.ones((3, 3)), np.arange(3)).tolist() == [0.0] * 3
        assert not np.concatenate([weights for _, weights in weight_panels(rows)]).any()


def test_regression_on_a_gpu_is_that_of_tiles(rng, gpu, monkeypatch):
    torch = pytest.importorskip("torch")
    p, labels = rng.dirichlet(np.ones(3), 140), torch.tensor(rng.integers(0, 3, 140), device=gpu)
    found = []
    for few in (10**6, 100):
        monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", few)
        points = torch.tensor(p, device=gpu, requires_grad=True)
        local = regression(DirichletRows.of(points, 0.05), labels, 3)
        slope = torch.autograd.grad((local.mean**2).sum() + local.squares.sum(), points)[0]
        found.append([*(getattr(local, field).detach() for field in FIELDS), slope])
    for tiles, fused in zip(*found, strict=True):
        assert 0 < float((fused - tiles).abs().max()) <= 1e-5 * max(1.0, float(tiles.abs().max()))


def test_regression_that_a_gpu_has_no_memory_for_is_done_in_tiles(rng, gpu, monkeypatch):
    torch = pytest.importorskip("torch")

    def full(*_):
        raise torch.cuda.OutOfMemoryError

    labels = torch.tensor(rng.integers(0, 3, 140), device=gpu)
    rows = DirichletRows.of(torch.tensor(rng.dirichlet(np.ones(3), 140), device=gpu), 0.1)
    right = regression(rows, labels, 3)
    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 100)
    monkeypatch.setattr("calibrant._compiled.cuda_softmax.class_averages", full)
    with pytest.warns(RuntimeWarning, match="the GPU has no memory for 140 rows at once: in tiles now"):
        found = regression(rows, labels, 3)
    assert torch.equal(found.mean, right.mean)


@pytest.mark.parametrize("n", [130, 2000])
def test_engines_change_no_digit(n, rng, travelling, monkeypatch):
    """Of frequencies, smoothed values and influences; rows that see no other included."""
    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 0)
    rows, labels = DirichletRows.of(on_faces(rng, n, 3), 0.05), rng.integers(0, 3, n)
    values, spread = rng.normal(size=(n, 3)), rng.random((n, 1))
    alone, there = (regression(rows, labels, 3, engine) for engine in (None, travelling))
    parts = [(alone, there), *[tuple(smoothed(rows, values, spread, engine=engine) for engine in (None, travelling))]]
    for here, elsewhere in parts:
        for name in FIELDS:
            assert np.array_equal(getattr(here, name), getattr(elsewhere, name))
    both = [influences(rows, alone, values, labels, engine) for engine in (None, travelling)]
    assert np.array_equal(*both)
    assert travelling.maps == 3
    assert len(travelling.sizes) == 3 * -(-n // 128)
