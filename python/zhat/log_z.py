"""Estimates of ``log Z`` for any function that returns ``log p~`` of rows: numpy, PyTorch or JAX.

>>> import numpy as np, zhat
>>> log_p = lambda x: np.log(7.0) - 0.5 * ((x - 1.0) ** 2).sum(1)     # Z = 7 * 2 pi
>>> proposal = zhat.log_z.Gaussian(np.zeros(2), 2 * np.eye(2))
>>> found = zhat.log_z.smc(log_p, proposal, random_state=0)
>>> bool(abs(found.log_z - np.log(14 * np.pi)) < 4 * found.standard_error + 0.02)
True

A proposal has ``sample(number, rng)`` and a normalised ``log_prob(x)``; :class:`Gaussian` is one. An array of rows in its place is
fitted by one.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, NamedTuple

import numpy as np

from zhat import _zhat

__all__ = ["Gaussian", "LogZ", "ais", "bridge", "importance", "smc"]


class LogZ(NamedTuple):
    """``log Z`` and its standard error, as the independent estimates behind it have it."""

    log_z: float
    standard_error: float
    #: As many equal estimates tell as much; far fewer than there are where one dominates.
    effective_estimates: float
    #: Whether so few dominate that ``log_z`` is too low by an amount that nobody knows.
    is_collapsed: bool
    log_z_hats: np.ndarray


class Gaussian:
    """A Gaussian proposal."""

    def __init__(self, mean: Any, covariance: Any):
        self.mean = np.asarray(mean, dtype=np.float64)
        self.factor = np.linalg.cholesky(np.asarray(covariance, dtype=np.float64))
        self._constant = -0.5 * len(self.mean) * np.log(2 * np.pi) - np.log(np.diag(self.factor)).sum()

    @classmethod
    def fitted(cls, data: Any, scale: float = 1.0) -> "Gaussian":
        """Like the rows of data, ``scale`` times as wide."""
        data = np.asarray(_to_numpy(data), dtype=np.float64)
        covariance = np.cov(data, rowvar=False).reshape(data.shape[1], -1)
        return cls(data.mean(0), scale**2 * covariance + 1e-12 * np.eye(data.shape[1]))

    def sample(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Draws."""
        return self.mean + rng.standard_normal((number, len(self.mean))) @ self.factor.T

    def log_prob(self, x: np.ndarray) -> np.ndarray:
        """Log-densities."""
        z = np.linalg.solve(self.factor, (x - self.mean).T)
        return self._constant - 0.5 * (z**2).sum(0)


def importance(log_p: Callable, proposal: Any, *, num_samples: int = 10_000, random_state: Any = 0) -> LogZ:
    """Importance sampling: each draw of the proposal is an unbiased estimate ``p~ / q`` of ``Z``."""
    proposal, rng = _proposal(proposal), _generator(random_state)
    x = proposal.sample(num_samples, rng)
    return _of_estimates(_call(log_p, x) - _log_q(proposal, x))


def ais(
    log_p: Callable,
    proposal: Any,
    *,
    num_chains: int = 1000,
    num_temperatures: int = 100,
    num_steps: int = 2,
    step_size: float | None = None,
    random_state: Any = 0,
) -> LogZ:
    """Annealed importance sampling (Neal, 2001): chains from the proposal to the model, each an unbiased estimate of ``Z``."""
    path = _Path(log_p, proposal, step_size, random_state)
    state = path.start(num_chains)
    log_w = np.zeros(num_chains)
    for before, beta in path.temperatures(num_temperatures):
        log_w += (beta - before) * state.log_ratio
        if beta < 1:
            path.move(state, beta, num_steps)
    return _of_estimates(log_w)


def smc(
    log_p: Callable,
    proposal: Any,
    *,
    num_particles: int = 500,
    num_estimates: int = 20,
    num_temperatures: int = 100,
    num_steps: int = 2,
    step_size: float | None = None,
    random_state: Any = 0,
) -> LogZ:
    """Sequential Monte Carlo along the same path, resampled where few particles carry the weight; every run is an unbiased estimate."""
    path = _Path(log_p, proposal, step_size, random_state)
    return _of_estimates(_smc(path, num_particles, num_estimates, num_temperatures, num_steps)[0])


def bridge(
    log_p: Callable,
    proposal: Any,
    draws: Any = None,
    *,
    num_particles: int = 500,
    num_estimates: int = 20,
    num_temperatures: int = 100,
    num_steps: int = 2,
    step_size: float | None = None,
    random_state: Any = 0,
) -> LogZ:
    """Bridge sampling (Meng and Wong, 1996) between draws of the proposal and ``draws`` of the model, in ``num_estimates`` parts.

    Draws of the model are made by :func:`smc` where there are none. Consistent, and not unbiased.
    """
    path = _Path(log_p, proposal, step_size, random_state)
    if draws is None:
        _, state = _smc(path, num_particles, num_estimates, num_temperatures, num_steps)
        of_model = state.log_ratio.reshape(num_estimates, num_particles)
    else:
        x = np.asarray(_to_numpy(draws), dtype=np.float64)
        of_model = np.array_split(_call(log_p, x) - _log_q(path.proposal, x), num_estimates)
    found = []
    for part in of_model:
        of_proposal = path.start(len(part)).log_ratio
        found.append(_zhat.bridge_sampling(np.ascontiguousarray(of_proposal), np.ascontiguousarray(part)))
    return _of_estimates(np.array(found))


class _State:
    """Particles with ``log p~`` and ``log q``."""

    def __init__(self, x: np.ndarray, log_p: np.ndarray, log_q: np.ndarray):
        self.x, self.log_p, self.log_q = x, log_p, log_q

    @property
    def log_ratio(self) -> np.ndarray:
        return self.log_p - self.log_q

    def take(self, chosen: np.ndarray) -> None:
        self.x, self.log_p, self.log_q = self.x[chosen], self.log_p[chosen], self.log_q[chosen]


class _Path:
    """``q^(1 - beta) p~^beta``, and random-walk Metropolis steps that leave it invariant."""

    #: Steps of several sizes, one drawn for each move, do for models that are narrower than the proposal by some orders.
    SCALES = (0.05, 0.2, 0.6, 1.5)

    def __init__(self, log_p: Callable, proposal: Any, step_size: float | None, random_state: Any):
        self.log_p, self.proposal, self.rng = log_p, _proposal(proposal), _generator(random_state)
        spread = self.proposal.sample(1000, self.rng).std(0)
        self.step = spread if step_size is None else np.full_like(spread, step_size)
        self.scales = self.SCALES if step_size is None else (1.0,)

    def start(self, number: int) -> _State:
        x = self.proposal.sample(number, self.rng)
        return _State(x, _call(self.log_p, x), _log_q(self.proposal, x))

    @staticmethod
    def temperatures(number: int) -> list[tuple[float, float]]:
        """From 0 to 1, closer together at the beginning, where a wide proposal changes fastest."""
        betas = np.linspace(0, 1, number + 1) ** 2
        return list(zip(betas[:-1], betas[1:]))

    def move(self, state: _State, beta: float, num_steps: int) -> None:
        for _ in range(num_steps):
            scale = self.rng.choice(self.scales) * self.step / np.sqrt(state.x.shape[1])
            x = state.x + scale * self.rng.standard_normal(state.x.shape)
            log_p, log_q = _call(self.log_p, x), _log_q(self.proposal, x)
            with np.errstate(invalid="ignore"):
                ratio = beta * (log_p - state.log_p) + (1 - beta) * (log_q - state.log_q)
            # What is outside the support cannot be left by a ratio of nothing to nothing.
            accepted = np.log(self.rng.random(len(x))) < np.where(np.isnan(ratio), -np.inf, ratio)
            state.x = np.where(accepted[:, None], x, state.x)
            state.log_p = np.where(accepted, log_p, state.log_p)
            state.log_q = np.where(accepted, log_q, state.log_q)


def _smc(path: _Path, particles: int, estimates: int, temperatures: int, steps: int) -> tuple[np.ndarray, _State]:
    """``log Z-hat`` of independent runs side by side, and their last particles with equal weights."""
    state = path.start(particles * estimates)
    log_w, log_z = np.zeros((estimates, particles)), np.zeros(estimates)
    for before, beta in path.temperatures(temperatures):
        log_w = log_w + (beta - before) * state.log_ratio.reshape(estimates, particles)
        chosen = np.arange(particles * estimates).reshape(estimates, particles)
        for run in range(estimates):
            largest = log_w[run].max()
            if largest == -np.inf:
                continue
            weights = np.exp(log_w[run] - largest)
            if beta == 1 or weights.sum() ** 2 / (weights**2).sum() < particles / 2:
                log_z[run] += largest + np.log(weights.mean())
                seed = int(path.rng.integers(2**63))
                chosen[run] = run * particles + _zhat.systematic(weights, seed)
                log_w[run] = 0.0
        state.take(chosen.ravel())
        path.move(state, beta, steps)
    dead = np.isneginf(log_w).all(1)
    return np.where(dead, -np.inf, log_z), state


def _of_estimates(log_z_hats: np.ndarray) -> LogZ:
    log_z_hats = np.ascontiguousarray(log_z_hats, dtype=np.float64)
    return LogZ(*_zhat.log_z_of_estimates(log_z_hats), log_z_hats)


def _proposal(proposal: Any) -> Any:
    return proposal if hasattr(proposal, "log_prob") else Gaussian.fitted(proposal)


def _generator(random_state: Any) -> np.random.Generator:
    return random_state if isinstance(random_state, np.random.Generator) else np.random.default_rng(random_state)


def _log_q(proposal: Any, x: np.ndarray) -> np.ndarray:
    return np.asarray(proposal.log_prob(x), dtype=np.float64)


def _call(log_p: Callable, x: np.ndarray) -> np.ndarray:
    """``log p~`` of rows by a function of arrays or a module of PyTorch; finite, or minus infinity outside the support."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(log_p, torch.nn.Module):
        like = next(iter(log_p.parameters()), torch.zeros(()))
        with torch.no_grad():
            found = log_p(torch.as_tensor(x, dtype=like.dtype, device=like.device))
    else:
        found = log_p(x)
    found = np.asarray(_to_numpy(found), dtype=np.float64)
    found = found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
    if found.shape != (len(x),):
        raise ValueError(f"log_p returns {found.shape} for {len(x)} rows, but must return one number for each")
    bad = np.isnan(found) | (found == np.inf)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"log_p is {found[row]} at x = {x[row]}, but must be finite, or minus infinity outside the support")
    return found


def _to_numpy(values: Any) -> Any:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values
