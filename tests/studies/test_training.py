"""Training of networks: the loss terms are ours, crops are crops, and a plan that breaks off goes on."""

import io
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from calibrant import KDE, SKCE  # noqa: E402
from calibrant.estimators import MMCE  # noqa: E402
from calibrant.kernels import Exponential  # noqa: E402
from calibrant.losses import CalibrationLoss, FocalLoss, LabelSmoothing  # noqa: E402
from studies.training import images, kept, measure, networks, plan, terms, train, trainer  # noqa: E402

OURS = {
    "ls": LabelSmoothing(0.3),
    "fl53": FocalLoss(),
    "kde": CalibrationLoss(KDE(p=1, bandwidth=terms.BANDWIDTH, debias=False), 0.3),
    "kde-narrow": CalibrationLoss(KDE(p=1, bandwidth=terms.BANDWIDTH / 5, debias=False), 0.3),
    "mmce": CalibrationLoss(MMCE(terms.MMCE_LENGTHSCALE), 0.3),
    "skce": CalibrationLoss(SKCE(Exponential(terms.LENGTHSCALE)), 0.3),
    "xe": torch.nn.functional.cross_entropy,
}


@pytest.mark.parametrize("name", terms.LOSSES)
def test_losses_of_the_study_are_ours(name):
    torch.manual_seed(0)
    z, y = 3 * torch.randn(60, 4, dtype=torch.float64), torch.randint(0, 4, (60,))
    values, slopes = [], []
    for loss in (lambda z: terms.LOSSES[name](z, y, torch.tensor(0.3)), lambda z: OURS[name](z, y)):
        at = z.clone().requires_grad_()
        value = loss(at)
        value.backward()
        values.append(value.item())
        slopes.append(at.grad.numpy())
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    np.testing.assert_allclose(*slopes, atol=1e-8)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A file of 200 images that are bright or dark by class."""
    image = pytest.importorskip("PIL.Image")
    rng, blobs = np.random.default_rng(0), []
    labels = np.repeat(np.arange(2, dtype=np.uint8), 100)
    for label in labels:
        pixels, out = rng.integers(60, 90, (32, 32, 3)) + 100 * int(label), io.BytesIO()
        image.fromarray(pixels.astype(np.uint8)).save(out, "JPEG", quality=95)
        blobs.append(np.frombuffer(out.getvalue(), np.uint8))
    path = tmp_path_factory.mktemp("images") / "images.npz"
    offsets = np.r_[0, np.cumsum([len(blob) for blob in blobs])]
    np.savez(path, jpeg=np.concatenate(blobs), offsets=offsets, labels=labels, is_test=np.arange(200) % 4 == 0)
    return path


@pytest.fixture
def split(monkeypatch):
    monkeypatch.setattr(images, "N_VALIDATION", 30)


def test_images_are_decoded_and_split_once(file, split):
    parts = images.read(file)
    assert [len(part) for part in parts] == [120, 30, 50]
    assert all(torch.equal(part.pixels[:, 16, 16, 0] > 125, part.labels == 1) for part in parts)
    few = images.read(file, (50, 20, 60))
    assert [len(part) for part in few] == [50, 20, 50]
    assert torch.equal(few[0].pixels, parts[0].pixels[:50])


def test_crops_move_and_mirror():
    pixels = torch.randint(0, 255, (3, 32, 32, 3), dtype=torch.uint8)
    padded = images.Images(pixels, torch.zeros(3)).padded().pixels
    moves = torch.tensor([[4, 4, 0], [4, 4, 1], [4, 6, 0]])
    found = images.crops(padded, torch.arange(3), moves, torch.tensor(0.0), torch.tensor(1.0)).permute(0, 2, 3, 1)
    assert torch.equal(found[0], pixels[0].float())
    assert torch.equal(found[1], pixels[1].flip(1).float())
    assert torch.equal(found[2, :, :30], pixels[2, :, 2:].float())
    assert (found[2, :, 30:] == 0).all()


@pytest.mark.parametrize("name", networks.ARCHITECTURES)
def test_architectures_have_ten_logits(name):
    assert networks.ARCHITECTURES[name]().eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 10)


def test_a_plan_that_breaks_off_goes_on(file, split, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "OTHERS", tuple(plan.Run("tiny", "xe", 0, seed, 4) for seed in range(3)))
    monkeypatch.setattr(train, "RUNS_PER_PACK", 1)
    given = [str(file), "--out", str(tmp_path), "--no-timing", "--networks", "tiny", "--batch", "40"]
    train.main([*given, "--name", "none", "--seconds", "0"])
    assert json.loads((tmp_path / "none.json").read_text())["runs"] == {}
    monkeypatch.setattr(trainer, "PEAK", 0.1)
    train.main([*given, "--name", "first", "--together", "2"])
    first = json.loads((tmp_path / "first.json").read_text())["runs"]
    assert [line["accuracy"] for line in first.values()] == [1.0, 1.0, 1.0]
    assert sorted(path.name for path in tmp_path.glob("*.npz")) == ["first-0.npz", "first-1.npz", "first-2.npz"]
    pack = np.load(tmp_path / "first-1.npz")
    assert pack["tiny_xe_0_1_epochs4.test"].shape == (50, 10)
    assert pack["tiny_xe_0_1_epochs4.test"].dtype == np.float16
    train.main([*given, "--name", "second", "--done", str(tmp_path / "first.json")])
    assert json.loads((tmp_path / "second.json").read_text())["runs"] == {}


@pytest.mark.parametrize(("name", "number"), [("paper", 147), ("small", 90), ("networks", 8)])
def test_runs_have_names_of_their_own(name, number):
    names = [run.name for run in plan.PLANS[name]()]
    assert len(set(names)) == len(names) == number


def test_runs_are_measured_before_and_after_scaling_and_only_once(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 3))
    y = np.array([rng.choice(3, p=p) for p in np.exp(z) / np.exp(z).sum(1, keepdims=True)])
    logits = {"a_xe_0_3.validation": 2 * z[:250], "a_xe_0_3.test": 2 * z[250:]}
    labels = {"labels_validation": y[:250], "labels_test": y[250:]}
    np.savez(tmp_path / "runs-0.npz", **labels, **{key: part.astype(np.float16) for key, part in logits.items()})
    before, after = measure.measure(measure.read_packs(tmp_path)[0])
    assert before["temperature"] == pytest.approx(2, rel=0.25)
    assert before["p_top_label"] < 0.05 < after["p_top_label"]
    assert after["canonical_variational"] < before["canonical_variational"]
    assert after["accuracy"] == before["accuracy"]
    assert np.isnan(after["resampled"])
    assert measure.read_packs(tmp_path, {"a_xe_0_3"}) == []


def test_networks_are_kept_with_labels_of_both_parts(tmp_path, rng):
    run = plan.Run("tiny", "ls", 0.1, 0, 4, augments=False)
    z = {part: rng.normal(size=(n, 10)).astype(np.float16) for part, n in (("validation", 20), ("test", 40))}
    y = {f"labels_{part}": rng.integers(10, size=len(values)) for part, values in z.items()}
    record = train.Record(tmp_path, "runs", y)
    record.add(run, {}, z)
    kept.main([str(tmp_path), "--out", str(tmp_path / "kept")])
    (path,) = (tmp_path / "kept").glob("*")
    assert path.name == "tiny_4-epochs_bare_ls.npz"
    found = np.load(path)
    assert sorted(found.files) == ["labels_test", "labels_validation", "logits_test", "logits_validation"]
    assert found["logits_test"].dtype == np.float16
    for part, values in z.items():
        np.testing.assert_array_equal(found[f"logits_{part}"], values)
        np.testing.assert_array_equal(found[f"labels_{part}"], y[f"labels_{part}"])
