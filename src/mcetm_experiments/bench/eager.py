"""The reference for speed: eager PyTorch, one member after the other, as public codebases do it.

Same sizes and as many network calls as ours: training with manifold negatives, the gradient penalty and Adam;
sampling in a latent and an ambient stage; an update of SAC. PyTorch is not a dependency of mcetm.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ClassVar

import jax

from mcetm_experiments.bench.clock import Spread, clock


def why_no_torch() -> str | None:
    """One sentence where PyTorch cannot be measured beside JAX; None where it can."""
    if find_spec("torch") is None:
        return "PyTorch is not installed, so there is no eager reference here (`pip install torch`)."
    import torch  # pyright: ignore[reportMissingImports]

    if jax.default_backend() != "cpu" and not torch.cuda.is_available():
        return "PyTorch sees no GPU here, so there is no eager reference."
    return None


class _Torch:
    """What both references need: the device, networks, and a clock that waits for the device."""

    NAME: ClassVar[str] = "eager PyTorch"

    def __init__(self) -> None:
        import torch  # pyright: ignore[reportMissingImports]

        torch.set_float32_matmul_precision("high")  # TensorFloat-32 where there is some, as JAX's default
        self.torch = torch
        self.device = "cpu" if jax.default_backend() == "cpu" else "cuda"

    def mlp(self, inputs: int, outputs: int, width: int, depth: int) -> Any:
        """Hidden layers of one width, then a linear one."""
        nn = self.torch.nn
        layers: list[Any] = []
        for below, above in itertools.pairwise([inputs, *[width] * depth]):
            layers += [nn.Linear(below, above), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(width, outputs)).to(self.device)

    def clock(self, job: Callable[[], Any], *, repeats: int = 5) -> Spread:
        """Times of a job, with what it started on the device."""

        def whole() -> None:
            job()
            if self.device == "cuda":
                self.torch.cuda.synchronize()

        return clock(whole, repeats=repeats, most=5.0)


class Eager(_Torch):
    """M energies and one autoencoder, at the paper's sizes unless told otherwise."""

    def __init__(
        self,
        *,
        members: int,
        obs: int = 17,
        action: int = 6,
        latent: int = 10,
        width: int = 200,
        depth: int = 4,
    ) -> None:
        super().__init__()
        self.obs, self.action, self.latent = obs, action, latent
        self.energies = [self.mlp(2 * obs + action, 1, width, depth) for _ in range(members)]
        self.optimisers = [self.torch.optim.Adam(e.parameters(), lr=1e-3) for e in self.energies]
        self.encoder, self.decoder = self.mlp(obs, latent, 64, 3), self.mlp(latent, obs, 64, 3)

    def chain(self, energy: Callable[[Any], Any], x: Any, steps: int, noise: float) -> Any:
        """Langevin steps of the `empo` convention, step sizes from 0.1 to 1e-3."""
        torch = self.torch
        for k in range(steps):
            size = (0.1 - 1e-3) * (1 - k / max(1, steps - 1)) ** 2 + 1e-3
            x = x.detach().requires_grad_(True)
            (g,) = torch.autograd.grad(energy(x).sum(), x)
            move = size * (0.5 * g.clamp(-10, 10) + noise * torch.randn_like(x))
            x = (x - move.clamp(-0.5, 0.5)).clamp(-5, 5)
        return x.detach()

    def train_step(self, rows: int, count: int) -> None:
        """One update of every member, each on a batch of its own, with 30 + 20 steps for its negatives."""
        torch = self.torch
        for net, optimiser in zip(self.energies, self.optimisers, strict=True):
            pair = torch.randn(rows, self.obs + self.action, device=self.device)
            ground_truth = torch.randn(rows, self.obs, device=self.device)
            many = pair[:, None].expand(-1, count, -1)
            sigma = 0.05 + 0.25 * torch.rand(rows, count, 1, device=self.device)
            with torch.no_grad():
                code = self.encoder(ground_truth)[:, None]
                centre = code + sigma * torch.randn(rows, count, self.latent, device=self.device)
            on = lambda x, net=net, many=many: net(torch.cat([many, x], dim=-1))[..., 0]  # noqa: E731
            pull = lambda z, c=centre, s=sigma: (((z - c) / s) ** 2).sum(dim=-1) / 2  # noqa: E731
            z = self.chain(lambda z, on=on, pull=pull: on(self.decoder(z)) + pull(z), centre, 30, 0.5)
            start = self.decoder(z).detach()
            baselines = self.chain(lambda x, on=on, pull=pull: on(x) + pull(self.encoder(x)), start, 20, 0.5)
            candidates = torch.cat([ground_truth[:, None], baselines], dim=1).requires_grad_(True)
            values = net(torch.cat([pair[:, None].expand(-1, count + 1, -1), candidates], dim=-1))[..., 0]
            (slopes,) = torch.autograd.grad(values.sum(), candidates, create_graph=True)
            penalty = (slopes.norm(dim=-1) - 5.0).clamp(min=0).pow(2).mean()
            loss = (values[:, 0] + torch.logsumexp(-values, dim=1)).mean() + penalty
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()

    def sample(self, states: int, count: int, *, latent: int = 30, ambient: int = 30) -> None:
        """`count` next states of every member for every state; a member's are let go before the next."""
        torch = self.torch
        for net in self.energies:
            pair = torch.randn(states, 1, self.obs + self.action, device=self.device).expand(-1, count, -1)
            on = lambda x, net=net, pair=pair: net(torch.cat([pair, x], dim=-1))[..., 0]  # noqa: E731
            z = torch.randn(states, count, self.latent, device=self.device)
            z = self.chain(lambda z, on=on: on(self.decoder(z)), z, latent, 0.1)
            self.chain(on, self.decoder(z).detach(), ambient, 0.1)


class EagerSAC(_Torch):
    """An actor, two critics and their targets; `candidates` next states of each row for the targets."""

    def __init__(self, *, width: int = 256, obs: int = 17, action: int = 6, candidates: int = 0) -> None:
        super().__init__()
        self.obs, self.action, self.candidates = obs, action, candidates
        self.actor = self.mlp(obs, 2 * action, width, 2)
        self.critics = [self.mlp(obs + action, 1, width, 2) for _ in range(2)]
        self.targets = [self.mlp(obs + action, 1, width, 2) for _ in range(2)]
        self.temperature = self.torch.zeros((), device=self.device, requires_grad=True)
        make = self.torch.optim.Adam
        self.actor_optimiser = make(self.actor.parameters(), lr=1e-4)
        weights = [weight for critic in self.critics for weight in critic.parameters()]
        self.critic_optimiser = make(weights, lr=3e-4)
        self.temperature_optimiser = make([self.temperature], lr=1e-4)

    def act(self, obs: Any) -> tuple[Any, Any]:
        """An action and its log-probability."""
        torch = self.torch
        mean, log_std = self.actor(obs).chunk(2, dim=-1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = normal.rsample()
        squash = torch.log(1 - raw.tanh() ** 2 + 1e-6)
        return raw.tanh(), (normal.log_prob(raw) - squash).sum(dim=-1)

    def update(self, rows: int) -> None:
        """Critics, actor, temperature, target critics."""
        torch = self.torch
        obs, action = self._rows(rows, self.obs), self._rows(rows, self.action)
        shape = (rows, self.candidates, self.obs) if self.candidates else (rows, self.obs)
        with torch.no_grad():
            following = torch.randn(*shape, device=self.device)
            chosen, _ = self.act(following)
            pair = torch.cat([following, chosen], dim=-1)
            value = torch.min(*(target(pair)[..., 0] for target in self.targets))
            aim = 0.99 * (value.mean(dim=-1) - value.std(dim=-1) if self.candidates else value)
        pair = torch.cat([obs, action], dim=-1)
        loss = sum(((critic(pair)[:, 0] - aim) ** 2).mean() for critic in self.critics)
        self._descend(self.critic_optimiser, loss)
        chosen, log_probability = self.act(obs)
        pair = torch.cat([obs, chosen], dim=-1)
        worth = torch.min(*(critic(pair)[:, 0] for critic in self.critics))
        self._descend(
            self.actor_optimiser, (self.temperature.detach().exp() * log_probability - worth).mean()
        )
        self._descend(
            self.temperature_optimiser, -self.temperature * (log_probability.detach().mean() - self.action)
        )
        with torch.no_grad():
            for critic, target in zip(self.critics, self.targets, strict=True):
                for new, old in zip(critic.parameters(), target.parameters(), strict=True):
                    old.mul_(0.995).add_(new, alpha=0.005)

    def _rows(self, rows: int, columns: int) -> Any:
        return self.torch.randn(rows, columns, device=self.device)

    def _descend(self, optimiser: Any, loss: Any) -> None:
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
