"""Losses for models of PyTorch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: its losses are not tested")

import zhat  # noqa: E402

# Models of two numbers are not worth a second thread.
torch.set_num_threads(1)


class Gaussian(torch.nn.Module):
    """An unnormalised Gaussian with a learnt mean, and a learnt constant for binary NCE."""

    def __init__(self):
        super().__init__()
        self.mean = torch.nn.Parameter(torch.zeros(2))
        self.log_z = torch.nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return -0.5 * ((x - self.mean) ** 2).sum(1, keepdim=True) - self.log_z


MEAN = torch.tensor([1.0, -0.5])


def data(rows=2000):
    return MEAN + torch.randn(rows, 2, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("method", [*zhat.methods(), "dsm"])
def test_every_method_finds_the_mean(method):
    torch.manual_seed(1)
    x, model = data(), Gaussian()
    criterion = zhat.torch.criterion(method, x, generator=torch.Generator().manual_seed(2))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.04)
    for _ in range(200):
        rows = x[torch.randint(len(x), (128,))]
        optimiser.zero_grad()
        criterion(model, rows).backward()
        optimiser.step()
    # The error of the mean of 2,000 rows is 0.02; stochastic steps of 0.04 leave some more.
    assert torch.allclose(model.mean.detach(), x.mean(0), atol=0.25), (method, model.mean)
    if method in ("nce", "snl"):
        assert float(model.log_z.detach()) == pytest.approx(np.log(2 * np.pi), abs=0.2)


@pytest.mark.parametrize("method", ["ml-is", "nce", "rnce", "cnce", "snl"])
def test_the_gradient_is_that_of_the_value(method):
    """The surrogate's gradient against central differences of the criterion's own value, with the same draws."""
    x = data(40).double()
    model = Gaussian().double()

    def criterion():
        return zhat.torch.Contrastive(method, x, generator=torch.Generator().manual_seed(3))

    loss = criterion()(model, x)
    found = torch.autograd.grad(loss, model.mean)[0]

    def value(shift):
        moved = Gaussian().double()
        with torch.no_grad():
            moved.mean += shift
        made = criterion()
        made(moved, x)
        return made.value

    for at in range(2):
        shift = torch.zeros(2, dtype=torch.float64)
        shift[at] = 1e-4
        assert float(found[at]) == pytest.approx((value(shift) - value(-shift)) / 2e-4, abs=1e-6)


def test_denoising_score_matching_has_the_gradient_of_a_gaussian():
    """For a Gaussian the minimiser is the mean of the data, and the gradient in closed form is sigma^2 (mean - noisy mean) + sigma e."""
    x, model = data(50), Gaussian()
    criterion = zhat.torch.DenoisingScoreMatching(0.3, torch.Generator().manual_seed(4))
    criterion(model, x).backward()
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(4))
    # loss = |sigma (mean - x - sigma e) + e|^2 / 2
    expected = (0.3 * (0.3 * (model.mean.detach() - x - 0.3 * noise) + noise)).mean(0)
    assert torch.allclose(model.mean.grad, expected, atol=1e-6)


def test_persistent_chains_go_on_and_are_saved():
    x, model = data(), Gaussian()
    criterion = zhat.torch.criterion("p-mh-cnce", x, num_negatives=3)
    criterion(model, x[:10])
    first = criterion.chains.clone()
    assert first.shape == (30, 2)
    criterion(model, x[10:20])
    assert not torch.equal(first, criterion.chains)
    again = zhat.torch.criterion("p-mh-cnce", x, num_negatives=3)
    again.load_state_dict(criterion.state_dict())
    assert torch.equal(again.chains, criterion.chains)


def test_an_adaptive_proposal_moves_towards_the_model():
    x = data()
    model = Gaussian()
    proposal = zhat.torch.Gaussian(torch.tensor([4.0, 4.0]), 2 * torch.eye(2))
    criterion = zhat.torch.criterion("rnce", x, proposal=proposal, adaptive=True, num_negatives=50)
    optimiser = torch.optim.Adam(criterion.parameters(), lr=0.05)
    for _ in range(150):
        optimiser.zero_grad()
        # The model stays, so that the proposal goes to it: KL[p || q].
        criterion(lambda rows: model(rows).detach(), model.mean.detach() + torch.randn(64, 2)).backward()
        optimiser.step()
    assert proposal.mean.detach().norm() < 1.0
    with pytest.raises(ValueError, match="adaptive"):
        zhat.torch.criterion("cnce", x, adaptive=True)


def test_a_module_has_a_log_z():
    model = Gaussian()
    found = zhat.log_z.smc(model, data(), num_particles=200, num_estimates=10)
    assert found.log_z == pytest.approx(np.log(2 * np.pi) - 1.0, abs=4 * found.standard_error + 0.02)


def test_names_and_shapes_are_checked():
    with pytest.raises(ValueError, match="no method 'nonsense'"):
        zhat.torch.criterion("nonsense", data())
    with pytest.raises(ValueError, match="one log p~ for each"):
        zhat.torch.criterion("rnce", data())(lambda x: x, data(10))
