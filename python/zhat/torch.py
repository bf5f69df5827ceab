"""Contrastive losses for any ``torch.nn.Module`` that returns ``log p~(x)``; to change the method, change its name.

>>> import torch, zhat
>>> _ = torch.manual_seed(0)
>>> data = torch.randn(200, 2)
>>> energy = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
>>> criterion = zhat.torch.criterion("cnce", data)       # or "rnce", "p-mh-cnce", "pcd", "dsm", ...
>>> loss = criterion(energy, data[:50])
>>> loss.backward()
>>> energy[0].weight.grad.shape
torch.Size([16, 2])

The weights of candidates are constants, computed by the library; the loss is ``mean(-log p~(x_0) + sum_j w_j log p~(x_j))``, whose
gradient is that of the method (its value means little; :attr:`Contrastive.value` is the criterion's own, where it has one).
"""

from __future__ import annotations

import math
from typing import Any, Callable, Optional

import torch

from zhat import _zhat

__all__ = ["Contrastive", "DenoisingScoreMatching", "Gaussian", "criterion", "log_p_of"]

_INDEPENDENT = ("ml-is", "nce", "rnce", "p-rnce", "snl")
_WALK = ("cnce", "mh-cnce", "p-cnce", "p-mh-cnce", "time-reversal")
_LANGEVIN = ("cd", "pcd")
_PERSISTENT = ("p-rnce", "p-cnce", "p-mh-cnce", "pcd")

#: What stands for ``log p~`` outside the support in a graph: a weight of zero times this is zero.
_OUTSIDE = -1e30


def criterion(method: str, data: torch.Tensor, **settings: Any) -> "torch.nn.Module":
    """The criterion of a name: ``"dsm"`` is :class:`DenoisingScoreMatching`, all others are :class:`Contrastive`."""
    if method == "dsm":
        return DenoisingScoreMatching.fitted(data, **settings)
    return Contrastive(method, data, **settings)


def log_p_of(model: Callable, x: torch.Tensor) -> torch.Tensor:
    """``log p~`` of rows: the model's output without a last dimension of one."""
    found = model(x)
    if found.dim() == 2 and found.shape[1] == 1:
        found = found.squeeze(1)
    if found.shape != (x.shape[0],):
        raise ValueError(f"the model returns {tuple(found.shape)} for {x.shape[0]} rows, but must return one log p~ for each")
    return found


class Gaussian(torch.nn.Module):
    """A Gaussian proposal with all covariances, whose parameters can be trained (``adaptive=True`` of :class:`Contrastive`)."""

    def __init__(self, mean: torch.Tensor, scale_tril: torch.Tensor):
        super().__init__()
        self.mean = torch.nn.Parameter(mean.detach().clone())
        self.scale_tril = torch.nn.Parameter(scale_tril.detach().clone())

    @classmethod
    def fitted(cls, data: torch.Tensor) -> "Gaussian":
        """Like the data: with all covariances where they can be had, else with none."""
        mean, centred = data.mean(0), data - data.mean(0)
        covariance = centred.T @ centred / len(data)
        factor, failed = torch.linalg.cholesky_ex(covariance)
        if int(failed) or not torch.isfinite(factor).all():
            factor = torch.diag(centred.pow(2).mean(0).sqrt().clamp_min(1e-6))
        return cls(mean, factor)

    def _factor(self) -> torch.Tensor:
        return self.scale_tril.tril(-1) + torch.diag(self.scale_tril.diagonal().abs().clamp_min(1e-6))

    def sample(self, number: int, generator: Optional[torch.Generator] = None) -> torch.Tensor:
        """Draws."""
        mean, factor = self.mean.detach(), self._factor().detach()
        noise = torch.randn(number, len(mean), generator=generator, dtype=mean.dtype, device=mean.device)
        return mean + noise @ factor.T

    def log_prob(self, x: torch.Tensor) -> torch.Tensor:
        """Log-densities."""
        factor = self._factor()
        z = torch.linalg.solve_triangular(factor, (x - self.mean).T, upper=False)
        constant = 0.5 * len(self.mean) * math.log(2 * math.pi) + factor.diagonal().log().sum()
        return -0.5 * z.pow(2).sum(0) - constant


class Contrastive(torch.nn.Module):
    """A loss by the name of a method (:func:`zhat.methods`), for models that map rows to ``log p~``.

    Parameters
    ----------
    method : such as ``"rnce"``, ``"cnce"``, ``"p-mh-cnce"``, ``"cd"``, ``"pcd"``, ``"nce"``, ``"snl"`` (the last two for models with a free constant).
    data : rows that the proposal, or the step size, is fitted to.
    num_negatives : ``J``: candidates beside the data point, pairs, or persistent chains for each row of a batch.
    num_steps : ``k``: steps of the kernel, over which the gradient is averaged.
    step_size : of random walk, Langevin and Hamiltonian steps; by default a share of the data's standard deviation.
    proposal : with ``sample(number, generator)`` and ``log_prob(x)``, for the methods that draw from one; a :class:`Gaussian` like the
        data where there is none.
    adaptive : trains the proposal beside the model: the loss gets ``-sum_j w_j log q(x_j)``, so give ``criterion.parameters()`` to
        the optimiser too.
    generator : of random numbers.

    Attributes
    ----------
    value : float, the criterion's own value of the last call, where the method has one.
    effective_sample_size : float, that of the weights of the last call, on average over rows.
    move_probability : float, how probable it was to leave the starting point.
    chains : tensor, the persistent chains, part of ``state_dict()``.
    """

    def __init__(
        self,
        method: str,
        data: torch.Tensor,
        *,
        num_negatives: int = 10,
        num_steps: int = 1,
        step_size: Optional[float] = None,
        proposal: Any = None,
        adaptive: bool = False,
        generator: Optional[torch.Generator] = None,
    ):
        super().__init__()
        if method not in _zhat.methods():
            raise ValueError(f"there is no method {method!r}; one of {', '.join(_zhat.methods())}, or dsm")
        if num_negatives < 1 or num_steps < 1:
            raise ValueError("num_negatives and num_steps must be at least 1")
        if adaptive and method not in _INDEPENDENT:
            raise ValueError(f"{method} has a proposal without parameters; adaptive is for {', '.join(_INDEPENDENT)}")
        self.method, self.num_negatives, self.num_steps = method, int(num_negatives), int(num_steps)
        self.generator, self.adaptive = generator, adaptive
        self.proposal = None
        if method in _INDEPENDENT:
            self.proposal = Gaussian.fitted(data) if proposal is None else proposal
            if isinstance(self.proposal, torch.nn.Module) and not adaptive:
                self.proposal.requires_grad_(False)
        share = 1.0 if method in _WALK else 0.5 if method in _LANGEVIN else 0.2
        self.step_size = float(step_size) if step_size is not None else share * float(data.std(0, unbiased=False).mean())
        self.register_buffer("chains", torch.empty(0, dtype=data.dtype))
        self.value = self.effective_sample_size = self.move_probability = None

    def forward(self, model: Callable, x0: torch.Tensor) -> torch.Tensor:
        """The loss of a batch; its gradient is the method's."""
        x0 = x0.detach()
        if self.method not in _PERSISTENT:
            return self._surrogate(model, x0, share_of_data=1.0)
        positive = log_p_of(model, x0)
        if not torch.isfinite(positive).all():
            row = int((~torch.isfinite(positive)).nonzero()[0])
            raise ValueError(f"log p~ of row {row} of the batch is {float(positive[row])}, but must be finite at the data")
        per_slot = 1 if self.method == "p-rnce" else self.num_negatives
        known = len(self.chains) // per_slot if self.chains.dim() == 2 else 0
        if known < len(x0):
            opened = x0[known:].repeat_interleave(per_slot, dim=0)
            self.chains = opened if known == 0 else torch.cat([self.chains, opened])
        number = len(x0) * per_slot
        loss = self._surrogate(model, self.chains[:number], share_of_data=0.0)
        return loss - positive.mean()

    def extra_repr(self) -> str:
        return f"{self.method}, num_negatives={self.num_negatives}, num_steps={self.num_steps}"

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
        # Chains are as many as the batches of the run that they come from had.
        chains = state_dict.get(prefix + "chains")
        if chains is not None:
            self.chains = torch.empty_like(chains)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def _surrogate(self, model: Callable, start: torch.Tensor, share_of_data: float) -> torch.Tensor:
        """``k`` steps, each from a candidate drawn by its weight; the mean over rows, and over steps of the weighted sums."""
        state, first, total, adaptation = start, None, 0.0, 0.0
        steps = 1 if self.method == "time-reversal" else self.num_steps
        for step in range(steps):
            x, log_q = self._propose(model, state)
            rows, candidates = x.shape[:2]
            log_p = log_p_of(model, x.flatten(0, 1)).view(rows, candidates)
            found = _zhat.weights(self.method, _numbers(log_p), _numbers(log_q))
            weights = torch.as_tensor(found, dtype=log_p.dtype, device=log_p.device)
            if (log_p == -math.inf).any():
                log_p = log_p.masked_fill(log_p == -math.inf, _OUTSIDE)
            if step == 0:
                first = log_p[:, 0]
                self._describe(log_p.detach(), log_q, weights)
            total = total + (weights * log_p).sum(1).mean() / steps
            if self.adaptive and step == steps - 1:
                log_prob = self.proposal.log_prob(x.flatten(0, 1)).view(rows, candidates)
                adaptation = -(weights * log_prob).sum(1).mean()
            if step < steps - 1 or share_of_data == 0.0:
                # Weights of binary NCE need not sum to one, but it has one step and no chain.
                chosen = torch.multinomial(weights.clamp_min(0), 1, generator=self.generator)
                state = x[torch.arange(rows, device=x.device), chosen.squeeze(1)].detach()
        if share_of_data == 0.0:
            moved = self.chains.clone()
            moved[:rows] = state
            self.chains = moved
        return total - share_of_data * first.mean() + adaptation

    def _describe(self, log_p: torch.Tensor, log_q: torch.Tensor, weights: torch.Tensor) -> None:
        log_w, negatives = log_p - log_q, log_p.shape[1] - 1
        self.effective_sample_size = float((weights.sum(1) ** 2 / weights.pow(2).sum(1)).mean())
        self.move_probability = float(1 - weights[:, 0].mean())
        softplus = torch.nn.functional.softplus
        self.value = None
        if self.num_steps > 1 or self.method in _PERSISTENT:
            return
        if self.method == "rnce":
            self.value = float(-torch.log_softmax(log_w, 1)[:, 0].mean())
        elif self.method == "ml-is":
            log_z = torch.logsumexp(log_w[:, 1:], 1) - math.log(negatives)
            self.value = float((log_z - log_p[:, 0]).mean())
        elif self.method == "nce":
            logits = log_w - math.log(negatives)
            self.value = float(softplus(-logits[:, 0]).mean() + softplus(logits[:, 1:]).sum(1).mean())
        elif self.method == "snl":
            self.value = float((log_w[:, 1:].exp().mean(1) - 1 - log_p[:, 0]).mean())
        elif self.method in ("cnce", "time-reversal"):
            self.value = float(softplus(log_w[:, 1:] - log_w[:, :1]).mean())

    def _propose(self, model: Callable, x0: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The state with its candidates, and what is subtracted from ``log p~`` to give ``log w~``."""
        rows, shape = len(x0), x0.shape[1:]
        pairs = 1 if self.method in ("p-cnce", "p-mh-cnce", "pcd") else self.num_negatives
        if self.proposal is not None:
            negatives = self.proposal.sample(rows * pairs, self.generator).to(x0)
            x = torch.cat([x0.unsqueeze(1), negatives.view(rows, pairs, *shape)], 1)
            with torch.no_grad():
                log_q = self.proposal.log_prob(x.flatten(0, 1)).view(rows, pairs + 1)
            return x, log_q
        here = x0.repeat_interleave(pairs, dim=0)
        if self.method in _LANGEVIN:
            negatives, log_ratio = self._langevin(model, here)
        elif self.method == "hmc-cd":
            negatives, log_ratio = self._hamiltonian(model, here)
        else:
            steps = self.num_steps if self.method == "time-reversal" else 1
            negatives = here
            for _ in range(steps):
                negatives = negatives + self.step_size * self._normals(here)
            log_ratio = torch.zeros(len(here), dtype=x0.dtype, device=x0.device)
        x = torch.cat([x0.unsqueeze(1), negatives.view(rows, pairs, *shape)], 1)
        first = torch.zeros(rows, 1, dtype=x0.dtype, device=x0.device)
        return x.detach(), torch.cat([first, log_ratio.view(rows, pairs)], 1)

    def _normals(self, like: torch.Tensor) -> torch.Tensor:
        return torch.randn(like.shape, generator=self.generator, dtype=like.dtype, device=like.device)

    def _langevin(self, model: Callable, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        step, drift = self.step_size, 0.5 * self.step_size**2
        forward_mean = x + drift * score(model, x)
        moved = forward_mean + step * self._normals(x)
        backward_mean = moved + drift * score(model, moved)
        squares = ((x - backward_mean) ** 2 - (moved - forward_mean) ** 2).flatten(1).sum(1)
        return moved, squares / (2 * step * step)

    def _hamiltonian(self, model: Callable, x: torch.Tensor, leapfrog: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
        velocity, step = self._normals(x), self.step_size
        before = 0.5 * velocity.flatten(1).pow(2).sum(1)
        velocity = velocity + 0.5 * step * score(model, x)
        for at in range(leapfrog):
            x = x + step * velocity
            velocity = velocity + (step if at < leapfrog - 1 else 0.5 * step) * score(model, x)
        return x, 0.5 * velocity.flatten(1).pow(2).sum(1) - before


class DenoisingScoreMatching(torch.nn.Module):
    """Denoising score matching (Vincent, 2011): the score of the model at noisy data points back at the data.

    It learns the density of the data with Gaussian noise of standard deviation ``sigma``, and needs no candidates.
    """

    def __init__(self, sigma: float, generator: Optional[torch.Generator] = None):
        super().__init__()
        if not sigma > 0:
            raise ValueError(f"sigma is {sigma}, but must be above 0")
        self.sigma, self.generator = float(sigma), generator
        self.value = None

    @classmethod
    def fitted(cls, data: torch.Tensor, *, sigma: Optional[float] = None, generator: Optional[torch.Generator] = None, **_: Any):
        """With a tenth of the data's standard deviation, where nothing else is said."""
        return cls(0.1 * float(data.std(0, unbiased=False).mean()) if sigma is None else sigma, generator)

    def forward(self, model: Callable, x0: torch.Tensor) -> torch.Tensor:
        """``mean(|sigma grad_x log p~(x0 + sigma e) + e|^2) / 2``."""
        noise = torch.randn(x0.shape, generator=self.generator, dtype=x0.dtype, device=x0.device)
        noisy = (x0.detach() + self.sigma * noise).requires_grad_(True)
        with torch.enable_grad():
            found = torch.autograd.grad(log_p_of(model, noisy).sum(), noisy, create_graph=True)[0]
        loss = 0.5 * (self.sigma * found + noise).flatten(1).pow(2).sum(1).mean()
        self.value = float(loss.detach())
        return loss


def score(model: Callable, x: torch.Tensor) -> torch.Tensor:
    """``grad_x log p~(x)``, without a graph."""
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        return torch.autograd.grad(log_p_of(model, x).sum(), x)[0].detach()


def _numbers(values: torch.Tensor) -> Any:
    return values.detach().to("cpu", torch.float64).numpy()
