"""The reference for speed: energies in eager PyTorch, one member after the other, as public codebases do it.

Same sizes, same number of network calls as ours: training with manifold negatives (30 + 20 steps), the
gradient penalty and Adam; sampling with 30 latent and 30 ambient steps. PyTorch is not a dependency of mcetm.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any


def have_torch() -> bool:
    """Whether PyTorch can be imported."""
    return find_spec("torch") is not None


class Eager:
    """M energies and one autoencoder, at the paper's sizes unless told otherwise."""

    def __init__(
        self, *, members: int, device: str, obs: int = 17, action: int = 6, latent: int = 10, width: int = 200
    ) -> None:
        import torch  # pyright: ignore[reportMissingImports]
        from torch import nn  # pyright: ignore[reportMissingImports]

        torch.set_float32_matmul_precision("high")  # TensorFloat-32, as JAX's default on this hardware
        self.torch, self.device, self.obs, self.action, self.latent = torch, device, obs, action, latent

        def mlp(inputs: int, outputs: int, width: int, depth: int) -> Any:
            sizes = [inputs, *[width] * depth]
            layers: list[Any] = []
            for below, above in itertools.pairwise(sizes):
                layers += [nn.Linear(below, above), nn.ReLU()]
            return nn.Sequential(*layers, nn.Linear(width, outputs)).to(device)

        self.energies = [mlp(2 * obs + action, 1, width, 4) for _ in range(members)]
        self.optimisers = [torch.optim.Adam(e.parameters(), lr=1e-3) for e in self.energies]
        self.encoder, self.decoder = mlp(obs, latent, 64, 3), mlp(latent, obs, 64, 3)

    def chain(self, energy: Callable[[Any], Any], x: Any, steps: int, noise: float) -> Any:
        """Langevin steps of the `empo` convention, step sizes from 0.1 to 1e-3."""
        torch = self.torch
        for k in range(steps):
            size = (0.1 - 1e-3) * (1 - k / (steps - 1)) ** 2 + 1e-3
            x = x.detach().requires_grad_(True)
            (g,) = torch.autograd.grad(energy(x).sum(), x)
            move = size * (0.5 * g.clamp(-10, 10) + noise * torch.randn_like(x))
            x = (x - move.clamp(-0.5, 0.5)).clamp(-5, 5)
        return x.detach()

    def train_step(self, rows: int, count: int) -> None:
        """One update of every member, each on a batch of its own."""
        torch = self.torch
        for net, optimiser in zip(self.energies, self.optimisers, strict=True):
            pair = torch.randn(rows, self.obs + self.action, device=self.device)
            truth = torch.randn(rows, self.obs, device=self.device)
            many = pair[:, None].expand(-1, count, -1)
            sigma = 0.05 + 0.25 * torch.rand(rows, count, 1, device=self.device)
            with torch.no_grad():
                code = self.encoder(truth)[:, None]
                centre = code + sigma * torch.randn(rows, count, self.latent, device=self.device)
            on = lambda x, net=net, many=many: net(torch.cat([many, x], dim=-1))[..., 0]  # noqa: E731
            pull = lambda z, c=centre, s=sigma: (((z - c) / s) ** 2).sum(dim=-1) / 2  # noqa: E731
            z = self.chain(lambda z, on=on, pull=pull: on(self.decoder(z)) + pull(z), centre, 30, 0.5)
            start = self.decoder(z).detach()
            rivals = self.chain(lambda x, on=on, pull=pull: on(x) + pull(self.encoder(x)), start, 20, 0.5)
            candidates = torch.cat([truth[:, None], rivals], dim=1).requires_grad_(True)
            values = net(torch.cat([pair[:, None].expand(-1, count + 1, -1), candidates], dim=-1))[..., 0]
            (slopes,) = torch.autograd.grad(values.sum(), candidates, create_graph=True)
            penalty = (slopes.norm(dim=-1) - 5.0).clamp(min=0).pow(2).mean()
            loss = (values[:, 0] + torch.logsumexp(-values, dim=1)).mean() + penalty
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()

    def sample(self, states: int, count: int) -> list[Any]:
        """`count` next states of every member for every state."""
        torch = self.torch
        found = []
        for net in self.energies:
            pair = torch.randn(states, 1, self.obs + self.action, device=self.device).expand(-1, count, -1)
            on = lambda x, net=net, pair=pair: net(torch.cat([pair, x], dim=-1))[..., 0]  # noqa: E731
            z = torch.randn(states, count, self.latent, device=self.device)
            z = self.chain(lambda z, on=on: on(self.decoder(z)), z, 30, 0.1)
            found.append(self.chain(on, self.decoder(z).detach(), 30, 0.1))
        return found

    def milliseconds(self, job: Callable[[], Any], repeats: int) -> float:
        """The median time of a job, after a warm-up."""

        def clock() -> float:
            began = time.perf_counter()
            job()
            if self.device == "cuda":
                self.torch.cuda.synchronize()
            return time.perf_counter() - began

        clock()
        return 1e3 * sorted(clock() for _ in range(repeats))[repeats // 2]
