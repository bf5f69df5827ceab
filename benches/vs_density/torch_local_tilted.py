#!/usr/bin/env python3
"""An autoregressive EBM with a masked conditioner, tilted energies and local normalisation in PyTorch: the prototype whose
training step zhat's is timed against.

    python torch_local_tilted.py DIR none|tilted|free [SECONDS] [options]
    python torch_local_tilted.py --steps-per-second FEATURES [options]      # speed alone, on random rows

DIR is made by density_peers.py. One thread, processor seconds, cosine schedule over the time.
  base     q(x_d | x_<d): mixture of 10 Gaussians by a ResMADE, which also gives a context vector, for all d in one pass
  tilted   log p~(x_d | x_<d) = log q + 8 tanh(o/8), o = energy(x_d, context), last layer starts at zero, log q constant
           for the energy's loss
  free     log p~ = -softplus(o)
  loss     -log q(x_0d) - log p~(x_0d) + log sum_j p~(x_jd)/q(x_jd), with x_1..x_J ~ q(. | x_0,<d): RNCE on each conditional
Evaluation: Z_d by importance sampling from q with 500 draws.
"""
import argparse, json, math, sys, time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

MIXTURE, CONTEXT, BOUND = 10, 32, 8.0
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def small(layer):
    nn.init.uniform_(layer.weight, -1e-3, 1e-3)
    nn.init.zeros_(layer.bias)


class Masked(nn.Linear):
    def __init__(self, mask):
        super().__init__(mask.shape[1], mask.shape[0])
        self.register_buffer("mask", mask.float())

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias)


class Conditioner(nn.Module):
    """Context and mixture of every feature from the features before it."""

    def __init__(self, features, hidden, blocks):
        super().__init__()
        self.outputs = CONTEXT + 3 * MIXTURE
        units, inputs = torch.arange(hidden) % max(features - 1, 1) + 1, torch.arange(1, features + 1)
        outputs, inner = inputs.repeat_interleave(self.outputs), units[:, None] >= units[None]
        self.first, self.last = Masked(units[:, None] >= inputs[None]), Masked(outputs[:, None] > units[None])
        self.blocks = nn.ModuleList(nn.ModuleList([Masked(inner), Masked(inner)]) for _ in range(blocks))
        for _, second in self.blocks:
            small(second)

    def forward(self, x):
        h = self.first(x)
        for first, second in self.blocks:
            h = h + second(F.relu(first(F.relu(h))))
        return self.last(F.relu(h)).reshape(-1, self.outputs)


class Energy(nn.Module):
    def __init__(self, width, tilted):
        super().__init__()
        self.tilted = tilted
        self.x, self.context, self.last = nn.Linear(1, width), nn.Linear(CONTEXT, width), nn.Linear(width, 1)
        self.blocks = nn.ModuleList(nn.ModuleList([nn.Linear(width, width), nn.Linear(width, width)]) for _ in range(2))
        for _, second in self.blocks:
            small(second)
        if tilted:
            nn.init.zeros_(self.last.weight)
            nn.init.zeros_(self.last.bias)

    def forward(self, x, context):
        h = self.x(x.unsqueeze(-1)) + self.context(context).unsqueeze(1)
        for first, second in self.blocks:
            h = h + second(F.silu(first(F.silu(h))))
        o = self.last(F.silu(h)).squeeze(-1)
        return BOUND * torch.tanh(o / BOUND) if self.tilted else -F.softplus(o)


def log_q(mixture, x):
    logits, means, scales = mixture
    z = (x.unsqueeze(-1) - means.unsqueeze(1)) / scales.unsqueeze(1)
    return torch.logsumexp((logits - scales.log()).unsqueeze(1) - 0.5 * z * z, -1) - HALF_LOG_2PI


class Model(nn.Module):
    def __init__(self, a, features):
        super().__init__()
        self.features, self.kind = features, a.energy
        self.conditioner, self.energy = Conditioner(features, a.hidden, a.blocks), Energy(a.width, a.energy == "tilted")

    def parts(self, x, negatives):
        """For every row and feature: log q, log w~ of the data and the negatives, log p~ of the data."""
        context, logits, means, scales = self.conditioner(x).split([CONTEXT, MIXTURE, MIXTURE, MIXTURE], -1)
        mixture, y = (F.log_softmax(logits, -1), means, F.softplus(scales) + 1e-3), x.reshape(-1, 1)
        base = log_q(mixture, y)[:, 0]
        if negatives == 0 or self.kind == "none":
            return base, None, None
        with torch.no_grad():
            k = torch.multinomial(mixture[0].exp(), negatives, replacement=True)
            draws = means.gather(1, k) + mixture[2].gather(1, k) * torch.randn(k.shape)
            candidates = torch.cat([y, draws], 1)
        f = self.energy(candidates, context)
        if self.kind == "tilted":
            return base, f, f[:, 0] + base.detach()
        with torch.no_grad():
            log_proposal = log_q(mixture, candidates)
        return base, f - log_proposal, f[:, 0]

    @torch.no_grad()
    def score(self, x, draws):
        """Log-densities of rows under the model and under its base."""
        model, base = [], []
        for rows in x.split(200):
            log_base, log_w, log_p = self.parts(rows, draws)
            base.append(log_base.reshape(-1, self.features).sum(1))
            if log_w is None:
                model.append(base[-1])
            else:
                local = log_p - torch.logsumexp(log_w[:, 1:], 1) + math.log(draws)
                model.append(local.reshape(-1, self.features).sum(1))
        return torch.cat(model), torch.cat(base)


def train_step(model, optimiser, rows, negatives):
    base, log_w, log_p = model.parts(rows, negatives)
    loss = -base.mean() if log_w is None else (-base - log_p + torch.logsumexp(log_w, 1)).mean()
    optimiser.zero_grad()
    (loss * model.features).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimiser.step()


def measure(a):
    data = torch.randn(20000, a.features)
    model = Model(a, a.features)
    optimiser, seconds = torch.optim.Adam(model.parameters(), a.rate), []
    for index in range(a.steps + 3):
        start = time.perf_counter()
        train_step(model, optimiser, data[torch.randint(len(data), (a.batch,))], a.negatives)
        if index >= 3:
            seconds.append(time.perf_counter() - start)
    return dict(features=a.features, batch=a.batch, median_seconds=float(np.median(seconds)), best_seconds=min(seconds))


def fit(a):
    train, validation, test = (torch.from_numpy(np.load(f"{a.directory}/{name}.npy")) for name in ("train", "validation", "test"))
    model = Model(a, train.shape[1])
    optimiser, clock = torch.optim.Adam(model.parameters(), a.rate), time.process_time
    started, paused, last, steps, best = clock(), 0.0, 0.0, 0, (-math.inf, None)
    while True:
        elapsed = clock() - started - paused
        if elapsed - last > a.seconds / 20 or elapsed > a.seconds:
            pause, last = clock(), elapsed
            value = model.score(validation[:2000], 50)[0].mean().item()
            if value > best[0]:
                best = (value, {name: w.clone() for name, w in model.state_dict().items()})
            paused += clock() - pause
            print(f"{elapsed:.0f} s, {steps} steps, validation {value:.3f}", file=sys.stderr)
        if elapsed > a.seconds:
            break
        for group in optimiser.param_groups:
            group["lr"] = a.rate * 0.5 * (1 + math.cos(math.pi * elapsed / a.seconds))
        rows = train[torch.randint(len(train), (a.batch,))]
        train_step(model, optimiser, rows, a.negatives if elapsed > 0.03 * a.seconds else 0)
        steps += 1
    model.load_state_dict(best[1])
    scores, base = model.score(test, 500)
    gain = scores - base
    return dict(energy=a.energy, steps=steps, validation=best[0], test=scores.mean().item(), base=base.mean().item(),
                gain=gain.mean().item(), gain_se=(gain.std() / len(gain) ** 0.5).item())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory", nargs="?")
    p.add_argument("energy", nargs="?", default="tilted", choices=["none", "tilted", "free"])
    p.add_argument("seconds", nargs="?", type=float, default=150.0)
    for name, default in [("negatives", 10), ("hidden", 256), ("width", 64), ("blocks", 2), ("batch", 256), ("seed", 0), ("threads", 1)]:
        p.add_argument(f"--{name}", type=int, default=default)
    p.add_argument("--rate", type=float, default=1e-3)
    p.add_argument("--steps", type=int, default=15, help="timed steps, after three others")
    p.add_argument("--steps-per-second", type=int, dest="features", metavar="FEATURES")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    print(json.dumps(measure(a) if a.features else fit(a)))


if __name__ == "__main__":
    main()
