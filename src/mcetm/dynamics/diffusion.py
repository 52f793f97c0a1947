"""A conditional diffusion model of the next state: the paper's third baseline.

The parametrisation and noise levels are EDM's (Karras et al., 2022); the sampler is the two-step multistep
solver of DPM-Solver++ (Lu et al., 2022), which needs one network call per step. With x the change
s' − s in units of its spread, the denoiser D(x + σ n; σ, s, a) ≈ E[x | x + σ n, s, a] is a network behind
fixed skip, in and out scales that keep its inputs and targets at spread 1 for every σ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from pydantic import Field

from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics.batching import batched
from mcetm.dynamics.model import ModelSettings, Samples, TrainingInputs, TransitionModel
from mcetm.nn.members import make_members, member_count, member_keys, take_members
from mcetm.nn.mlp import MLP, Activation, NetworkFactory
from mcetm.nn.scaling import InputScaling, Scaling
from mcetm.settings import Number, Positive, Rate, Share, settings
from mcetm.training import Callback, minimise
from mcetm.training.batches import Batch

_WAVES = 8
"""Sine and cosine features of log σ."""


@settings
class DiffusionEnsemble(ModelSettings):
    """Predicts next states by diffusion: an ensemble of denoisers; noise is in spreads of the change."""

    name: Literal["diffusion"] = "diffusion"
    """Its name in files and on the command line."""
    members: Positive = 3
    """Denoisers that are trained."""
    width: Positive = 64
    """Units of each hidden layer."""
    depth: Positive = 3
    """Hidden layers."""
    activation: Activation = "silu"
    """The activation between layers."""
    sigma_min: Rate = 0.002
    """The smallest noise level."""
    sigma_max: Rate = 10.0
    """The largest noise level, where the sampler begins."""
    rho: Rate = 7.0
    """How the sampler's levels crowd towards small noise (EDM's value)."""
    sampler_steps: Annotated[int, Field(strict=True, ge=2, le=10**9)] = 18
    """Network calls per sample. On a Gaussian law 18 err by 5 % in the spread, 10 by 11 %."""
    level_mean: Number = -1.2
    """Mean of log σ in training, whose levels are log-normal (EDM's)."""
    level_std: Rate = 1.2
    """Spread of log σ in training (EDM's)."""
    average: Share = 0.999
    """Decay of the running average of weights that is used for sampling; it warms up over the first steps."""
    batch_size: Positive = 256
    """Transitions of a minibatch."""
    learning_rate: Rate = 4e-3
    """Of Adam; it falls to 0 over the steps."""
    steps: Positive = 3000
    """Updates of each member."""

    @property
    def num_members(self) -> int:
        """How many members draw."""
        return self.members

    @property
    def parts(self) -> tuple[str, ...]:
        """The one stage of its training."""
        return ("diffusion",)

    def train(self, inputs: TrainingInputs) -> DiffusionModel:
        """Train, or read back what the folder has."""
        with inputs.stages("diffusion"):
            return fit_diffusion(
                inputs.log, self, key=inputs.keys.model, folder=inputs.place("diffusion"), **inputs.own
            )[0]


class Denoiser(eqx.Module):
    """One member: a denoiser of scaled changes, and its sampler."""

    network: Callable[[Array], Array]
    inputs: InputScaling
    change_scale: Scaling
    config: DiffusionEnsemble = eqx.field(static=True)

    def __init__(
        self,
        config: DiffusionEnsemble,
        statistics: Statistics,
        *,
        network: NetworkFactory | None = None,
        key: PRNGKeyArray,
    ) -> None:
        obs_dim, action_dim = len(statistics.obs.mean), len(statistics.action.mean)
        make = network or partial(MLP, width=config.width, depth=config.depth, activation=config.activation)
        self.network = make(2 * obs_dim + action_dim + 2 * _WAVES, obs_dim, key=key)
        self.inputs = InputScaling.of(statistics.obs, statistics.action)
        self.change_scale = Scaling.of(statistics.change)
        self.config = config

    def denoise(
        self,
        x: Float[Array, " obs"],
        sigma: Float[Array, ""],
        obs: Float[Array, " obs"],
        action: Float[Array, " action"],
    ) -> Float[Array, " obs"]:
        """D(x; σ, s, a): the mean of what x was before noise of size σ was added."""
        level = sigma**2 + 1.0  # variance of x, as the clean change has spread 1
        return x / level + sigma / jnp.sqrt(level) * self._raw(x / jnp.sqrt(level), sigma, obs, action)

    def loss(self, row: Batch, *, key: PRNGKeyArray) -> Float[Array, ""]:
        """Squared error of the network's own target at a random noise level: every level counts alike."""
        level_key, noise_key = jax.random.split(key)
        clean = self.change_scale.normalize(row.next_obs - row.obs)
        log_sigma = self.config.level_mean + self.config.level_std * jax.random.normal(level_key)
        sigma = jnp.exp(log_sigma)
        noisy = clean + sigma * jax.random.normal(noise_key, clean.shape)
        level = sigma**2 + 1.0
        target = (clean - noisy / level) * jnp.sqrt(level) / sigma
        raw = self._raw(noisy / jnp.sqrt(level), sigma, row.obs, row.action)
        return ((raw - target) ** 2).mean()

    def sample(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        """One next state."""
        return self._integrate(jax.random.normal(key, obs.shape), obs, action)

    def predict(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, " obs"]:
        """A point prediction: where the sampler leads from the middle of its noise."""
        return self._integrate(jnp.zeros_like(obs), obs, action)

    def levels(self) -> Float[Array, " levels"]:
        """The sampler's noise levels, from σ_max to σ_min and then 0."""
        config = self.config
        share = np.arange(config.sampler_steps) / max(1, config.sampler_steps - 1)
        ends = config.sigma_max ** (1 / config.rho), config.sigma_min ** (1 / config.rho)
        sigmas = (ends[0] + share * (ends[1] - ends[0])) ** config.rho
        return jnp.asarray(np.append(sigmas, 0.0), jnp.float32)

    def _integrate(self, noise: Array, obs: Array, action: Array) -> Float[Array, " obs"]:
        """From σ_max to 0: exact in the noise, second order in the denoiser by means of its last value."""
        levels = self.levels()
        logs = jnp.log(levels[:-1])

        def step(carry: tuple[Array, Array], i: Array) -> tuple[tuple[Array, Array], None]:
            x, before = carry
            here = self.denoise(x, levels[i], obs, action)
            ahead, behind = logs[i] - logs[i + 1], logs[jnp.maximum(i, 1) - 1] - logs[jnp.maximum(i, 1)]
            slope = jnp.where(i == 0, 0.0, 0.5 * ahead / behind)
            guess = here + slope * (here - before)
            keep = levels[i + 1] / levels[i]
            return (keep * x + (1.0 - keep) * guess, here), None

        start = jnp.sqrt(levels[0] ** 2 + 1.0) * noise  # the spread that a noised change has
        (x, _), _ = jax.lax.scan(step, (start, start), jnp.arange(len(levels) - 2))
        x = self.denoise(x, levels[-2], obs, action)
        return obs + self.change_scale.denormalize(x)

    def _raw(self, x: Array, sigma: Array, obs: Array, action: Array) -> Float[Array, " obs"]:
        phases = jnp.log(sigma) / 4.0 * 2.0 ** jnp.arange(-1.0, _WAVES - 1.0)
        waves = jnp.concatenate([jnp.sin(phases), jnp.cos(phases)])
        return self.network(jnp.concatenate([self.inputs.pair(obs, action), x, waves]))


class DiffusionModel(TransitionModel):
    """Members side by side."""

    members: Denoiser

    @property
    def num_members(self) -> int:
        """All of them draw."""
        return member_count(self.members)

    @property
    def widths(self) -> tuple[int, int]:
        """How many numbers its states have, and its actions."""
        return self.members.inputs.widths

    @batched
    def sample(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        """One next state, of a member chosen at random."""
        pick_key, draw_key = jax.random.split(key)
        chosen = jax.random.randint(pick_key, (), 0, member_count(self.members))
        return take_members(self.members, chosen).sample(obs, action, key=draw_key)

    def draw(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], count: int, *, key: PRNGKeyArray
    ) -> Samples:
        """`count` next states of every member."""

        def of_member(member: Denoiser, key: PRNGKeyArray) -> Array:
            return jax.vmap(lambda k: member.sample(obs, action, key=k))(jax.random.split(key, count))

        keys = member_keys(key, self.num_members)
        return Samples(eqx.filter_vmap(of_member, in_axes=(eqx.if_array(0), 0))(self.members, keys))

    def means(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, "members obs"]:
        """Where each member's sampler leads from the middle of its noise."""
        return eqx.filter_vmap(lambda member: member.predict(obs, action))(self.members)


def fit_diffusion(
    train: Transitions,
    config: DiffusionEnsemble | None = None,
    *,
    key: PRNGKeyArray,
    folder: Path | None = None,
    callbacks: Sequence[Callback] = (),
    network: NetworkFactory | None = None,
    chunk: int = 1000,
) -> tuple[DiffusionModel, list[dict[str, Any]]]:
    """Train; the model of averaged weights, and the metrics of its training."""
    config = config or DiffusionEnsemble()
    statistics = Statistics.of(train)
    init_key, fit_key = jax.random.split(key)
    make = lambda member_key: Denoiser(config, statistics, network=network, key=member_key)  # noqa: E731

    def loss(member: Denoiser, data: Batch, key: PRNGKeyArray) -> tuple[Array, dict[str, Array]]:
        draw_key, noise_key = jax.random.split(key)
        batch = data.draw(config.batch_size, key=draw_key)
        keys = jax.random.split(noise_key, config.batch_size)
        return jax.vmap(lambda row, k: member.loss(row, key=k))(batch, keys).mean(), {}

    members, history = minimise(
        loss,
        make_members(make, jax.random.split(init_key, config.members), network=network),
        train,
        config,
        key=fit_key,
        schedule="cosine",
        members=True,
        average=config.average,
        chunk=chunk,
        folder=folder,
        callbacks=callbacks,
        label="diffusion model",
    )
    return DiffusionModel(members), history
