"""Weights, estimates of log Z, and gradients that agree with the library's own on the same numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

import zhat

#: Written by `cargo run --release --example gradient_of_every_method`.
PINNED = json.loads((Path(__file__).parent / "gradient_of_every_method.json").read_text())


def candidates():
    x = np.array(PINNED["x"]).reshape(PINNED["rows"], PINNED["candidates"], 2)
    log_q = np.array(PINNED["log_q"]).reshape(PINNED["rows"], PINNED["candidates"])
    log_p = -0.5 * (((x - PINNED["mean"]) / PINNED["std_dev"]) ** 2).sum(-1)
    return x, log_p, log_q


def test_every_method_is_pinned():
    assert list(PINNED["methods"]) == zhat.methods()


@pytest.mark.parametrize("method", list(PINNED["methods"]))
def test_weights_are_those_of_the_criteria(method):
    _, log_p, log_q = candidates()
    found = zhat.contrast(method, log_p=log_p, log_q=log_q)
    # The criteria evaluate log p~ in 32 bits.
    assert np.allclose(found.ravel(), PINNED["methods"][method]["weights"], atol=1e-6)


@pytest.mark.parametrize("method", list(PINNED["methods"]))
def test_gradients_are_those_of_the_criteria(method):
    torch = pytest.importorskip("torch")
    x, _, log_q = candidates()
    mean = torch.tensor(PINNED["mean"], dtype=torch.float64, requires_grad=True)
    std_dev = torch.tensor(PINNED["std_dev"], dtype=torch.float64, requires_grad=True)

    def model(rows):
        return -0.5 * (((rows - mean) / std_dev) ** 2).sum(-1)

    class Fixed(zhat.torch.Contrastive):
        """The same candidates instead of draws."""

        def _propose(self, model, state):
            return torch.tensor(x), torch.tensor(log_q)

    criterion = Fixed(method, torch.randn(20, 2, dtype=torch.float64), num_negatives=3)
    # A chain that is the data point makes the loss of a persistent method the one from data.
    criterion.chains = torch.tensor(x[:, 0])
    if method in ("p-cnce", "p-mh-cnce", "pcd"):
        criterion.num_negatives = 1
    criterion(model, torch.tensor(x[:, 0])).backward()
    found = np.concatenate([mean.grad.numpy(), std_dev.grad.numpy()])
    assert np.allclose(found, PINNED["methods"][method]["gradient"], atol=2e-5)


def test_what_is_no_number_is_refused_by_its_place():
    with pytest.raises(ValueError, match=r"log_p\[0, 1\] is NaN"):
        zhat.contrast("rnce", log_p=[[0.0, np.nan]], log_q=[[0.0, 0.0]])
    with pytest.raises(ValueError, match="log_q"):
        zhat.contrast("rnce", log_p=[[0.0, 1.0]])
    with pytest.raises(ValueError, match="nonsense"):
        zhat.contrast("nonsense", log_p=[[0.0, 1.0]])
    with pytest.raises(ValueError, match="no weights of its own"):
        zhat.contrast("q-only", log_p=[[0.0, 1.0]])


LOG_Z = np.log(7.0) + np.log(2 * np.pi) + np.log(0.5)


def two_bumps(x):
    """A mixture of two Gaussians, times 7: log Z is log(7 * 2 pi * 0.25 * 2)."""
    first = -0.5 * (((x - [2.0, 0.0]) / 0.5) ** 2).sum(1)
    second = -0.5 * (((x + [2.0, 0.0]) / 0.5) ** 2).sum(1)
    return np.log(7.0) + np.logaddexp(first, second)


PROPOSAL = zhat.log_z.Gaussian(np.zeros(2), 4 * np.eye(2))


@pytest.mark.parametrize("estimate", [zhat.log_z.importance, zhat.log_z.ais, zhat.log_z.smc, zhat.log_z.bridge])
def test_log_z_is_found_within_its_error(estimate):
    found = estimate(two_bumps, PROPOSAL, random_state=3)
    # Two-sided level 0.001 is 3.3 standard errors.
    assert abs(found.log_z - LOG_Z) < 3.3 * found.standard_error + 1e-3
    assert found.standard_error < 0.1 and not found.is_collapsed
    wrong = estimate(lambda x: two_bumps(x) + 1.0, PROPOSAL, random_state=3)
    assert abs(wrong.log_z - LOG_Z) > 3.3 * wrong.standard_error


@pytest.mark.parametrize("estimate", [zhat.log_z.ais, zhat.log_z.smc])
def test_z_hat_is_unbiased(estimate):
    """The mean of 40 short runs' Z-hat / Z is 1 within 3.3 standard errors, level 0.001."""
    ratios = []
    for seed in range(40):
        few = {"num_temperatures": 5, "random_state": seed}
        few.update({"num_chains": 50} if estimate is zhat.log_z.ais else {"num_particles": 50, "num_estimates": 2})
        ratios.extend(np.exp(estimate(two_bumps, PROPOSAL, **few).log_z_hats - LOG_Z))
    error = np.std(ratios) / np.sqrt(len(ratios))
    assert abs(np.mean(ratios) - 1) < 3.3 * error and error < 0.2


def test_a_hard_support_is_no_trouble():
    def quarter(x):
        return np.where((x > 0).all(1), -0.5 * (x**2).sum(1), -np.inf)

    found = zhat.log_z.smc(quarter, PROPOSAL)
    assert abs(found.log_z - np.log(2 * np.pi / 4)) < 3.3 * found.standard_error + 0.02
    with pytest.raises(ValueError, match="must be finite"):
        zhat.log_z.ais(lambda x: x[:, 0] * np.nan, PROPOSAL)
