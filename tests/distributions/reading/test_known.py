"""Families of other libraries say the same as ours."""

import numpy as np
import pytest
from scipy import stats

from calibrant import Bernoulli, Categorical, Gamma, Mixture, MultivariateNormal, NegativeBinomial, Normal, Poisson
from calibrant.distributions.reading.conversion import adapted
from calibrant.distributions.reading.known import Parameters, Unlike

A, B = np.array([0.5, 1.0, 2.5]), np.array([1.5, 0.7, 2.0])
FROZEN = {
    "norm": stats.norm(A, B),
    "laplace": stats.laplace(A, scale=2.0),
    "logistic": stats.logistic(loc=A, scale=B),
    "t": stats.t(4.0, A, B),
    "t with names": stats.t(df=B + 2, loc=A),
    "uniform": stats.uniform(A, B),
    "expon": stats.expon(scale=B),
    "gamma": stats.gamma(A, scale=B),
    "lognorm": stats.lognorm(B, scale=A),
    "beta": stats.beta(A, B),
    "truncnorm": stats.truncnorm(-A, B, A, B),
    "poisson": stats.poisson(4 * A),
    "nbinom": stats.nbinom(A, 0.3),
}


@pytest.mark.parametrize("name", FROZEN)
def test_frozen_distributions_of_scipy(name):
    law = FROZEN[name]
    ours = adapted(law)
    assert ours.__class__.__module__.rpartition(".")[2] not in ("foreign", "normal") or name == "norm"
    for u in (0.1, 0.5, 0.9):
        y = law.ppf(u)
        assert ours.cdf(y) == pytest.approx(law.cdf(y), rel=1e-9)
        exact = law.logpmf(y) if hasattr(law.dist, "pmf") else law.logpdf(y)
        assert ours.log_prob(y) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    "law", [stats.gamma(A, loc=1.0), stats.beta(A, B, scale=2.0), stats.poisson(A, loc=1), stats.lognorm(A, loc=1.0)]
)
def test_shifted_distributions_are_no_members_of_the_family(law):
    assert repr(adapted(law)).startswith(f"<Foreign: 3 predictions of scipy, {law.dist.name}>")


def test_new_distributions_of_scipy():
    ours = adapted(stats.Normal(mu=A, sigma=2.0))
    assert isinstance(ours, Normal)
    assert ours.scale.tolist() == [2.0] * 3
    assert adapted(stats.Uniform(a=A, b=A + B)).coords == pytest.approx(adapted(stats.uniform(A, B)).coords)
    assert len(adapted(stats.Normal())) == 1


def test_classes_of_scipy():
    ours = adapted(stats.bernoulli([0.1, 0.7]))
    assert isinstance(ours, Categorical)
    assert ours.probs.tolist() == [0.1, 0.7]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def laws_of_torch(torch):
    a, b, d = torch.tensor(A), torch.tensor(B), torch.distributions
    return {
        "Normal": d.Normal(a, b),
        "one scale": d.Normal(a, 2.0),
        "Laplace": d.Laplace(a, b),
        "StudentT": d.StudentT(b + 2, a, b),
        "LogNormal": d.LogNormal(a, b),
        "Gamma": d.Gamma(a, b),
        "Exponential": d.Exponential(b),
        "Beta": d.Beta(a, b),
        "Uniform": d.Uniform(a, a + b),
        "Poisson": d.Poisson(4 * a),
        "NegativeBinomial": d.NegativeBinomial(a, 0.3),
        "Categorical": d.Categorical(logits=torch.stack([a, b], dim=1)),
        "Bernoulli": d.Bernoulli(logits=a),
        "labels": d.Independent(d.Bernoulli(logits=torch.stack([a, b], dim=1)), 1),
        "MultivariateNormal": d.MultivariateNormal(torch.stack([a, b], dim=1), torch.eye(2, dtype=torch.float64) + 0.5),
        "vectors": d.Independent(d.Normal(torch.stack([a, b], dim=1), 2.0), 1),
        "one coordinate": d.Independent(d.Normal(a[:, None], b[:, None]), 1),
        "mixture": d.MixtureSameFamily(d.Categorical(logits=torch.stack([a, b], dim=1)), d.Normal(torch.stack([a, b], dim=1), 2.0)),
    }  # fmt: skip


@pytest.mark.parametrize("name", laws_of_torch(pytest.importorskip("torch")))
def test_distributions_of_torch(name, torch):
    law = laws_of_torch(torch)[name]
    ours = adapted(law)
    assert not repr(ours).startswith("<Foreign")
    drawn = ours.sample(np.random.default_rng(0), 5)
    given = torch.tensor(drawn.astype(float))
    exact = law.log_prob(given[..., None] if name == "one coordinate" else given)
    assert np.asarray(ours.log_prob(drawn[0])) == pytest.approx(exact.numpy()[0], rel=1e-6)


def test_families_of_several_numbers_a_row(torch):
    laws = laws_of_torch(torch)
    assert isinstance(adapted(laws["labels"]), Bernoulli)
    assert isinstance(adapted(laws["vectors"]), MultivariateNormal)
    assert isinstance(adapted(laws["one coordinate"]), Normal)
    assert isinstance(adapted(laws["mixture"]), Mixture)
    assert isinstance(adapted(torch.distributions.Bernoulli(torch.full((3, 2), 0.5))), Bernoulli)
    assert isinstance(adapted(laws["Exponential"]), Gamma)
    assert isinstance(adapted(laws["NegativeBinomial"]), NegativeBinomial)


def test_parameters_keep_their_library_and_gradients(torch):
    loc = torch.tensor(A, requires_grad=True)
    ours = adapted(torch.distributions.Normal(loc, 1.0))
    assert ours.loc.requires_grad
    assert ours.loc.grad_fn is not None


def test_lists_of_single_distributions():
    ours = adapted([stats.norm(0, 1), stats.norm(1, 2)])
    assert (ours.loc.tolist(), ours.scale.tolist()) == ([0, 1], [1, 2])
    vectors = adapted([stats.multivariate_normal([0, k], np.eye(2)) for k in range(3)])
    assert isinstance(vectors, MultivariateNormal)
    assert vectors.loc.tolist() == [[0, 0], [0, 1], [0, 2]]
    assert isinstance(adapted([stats.poisson(1.0), stats.poisson(2.0)]), Poisson)


def test_lists_of_torch(torch):
    d = torch.distributions
    assert adapted([d.Normal(0.0, 1.0), d.Normal(torch.tensor([1.0]), 2.0)]).loc.tolist() == [0, 1]
    assert adapted([d.Categorical(torch.tensor([0.2, 0.8])), d.Categorical(torch.tensor([0.6, 0.4]))]).probs.shape == (
        2,
        2,
    )


def test_names_are_tried_one_after_the_other():
    p = Parameters([{"loc": np.arange(3.0), "scale": None, "mean": len}.get], (3,), (3,))
    assert p("mu", "loc").tolist() == [0, 1, 2]
    for name in ("scale", "mean", "other"):
        with pytest.raises(Unlike):
            p(name)
    columns = Parameters([{"loc": np.arange(6.0).reshape(3, 2)}.get], (3, 2), (3, 2))
    assert columns.of_column(1)("loc").tolist() == [1, 3, 5]
