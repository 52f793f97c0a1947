"""The tanh-Gaussian actor: a Gaussian squashed into the action bounds, with its log-probability."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.nn.mlp import MLP, Initialisation, NetworkFactory
from mcetm.nn.scaling import Scaling

LOG_STD_RANGE = (-5.0, 2.0)


class Actor(eqx.Module):
    """a = centre + half · tanh(mean(s) + std(s) · noise), one observation at a time.

    Log-probabilities are densities over tanh's range (−1, 1), so that the usual target entropy, −|A|, means
    the same whatever the bounds are.
    """

    network: Any
    obs_scale: Scaling
    action_scale: Scaling
    """Centre and half the width of the action bounds."""

    def __init__(
        self,
        obs_scale: Scaling,
        low: Float[Array, " action"],
        high: Float[Array, " action"],
        *,
        width: int = 256,
        depth: int = 2,
        initialisation: Initialisation = "uniform",
        network: NetworkFactory | None = None,
        key: PRNGKeyArray,
    ) -> None:
        make = network or partial(MLP, width=width, depth=depth, initialisation=initialisation)
        self.network = make(obs_scale.mean.shape[-1], 2 * low.shape[0], key=key)
        self.obs_scale = obs_scale
        self.action_scale = Scaling(0.5 * (high + low), 0.5 * (high - low))

    def distribution(
        self, obs: Float[Array, " obs"]
    ) -> tuple[Float[Array, " action"], Float[Array, " action"]]:
        """Mean and log standard deviation before the tanh."""
        mean, log_std = jnp.split(self.network(self.obs_scale.normalize(obs)), 2)
        return mean, jnp.clip(log_std, *LOG_STD_RANGE)

    def sample(
        self, obs: Float[Array, " obs"], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, " action"], Float[Array, ""]]:
        """An action and its log-probability."""
        mean, log_std = self.distribution(obs)
        noise = jax.random.normal(key, mean.shape)
        raw = mean + jnp.exp(log_std) * noise
        normal = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2.0 * jnp.pi)
        # log(1 − tanh²) in a form that does not lose its digits for large actions.
        squash = 2.0 * (jnp.log(2.0) - raw - jax.nn.softplus(-2.0 * raw))
        return self.bounded(jnp.tanh(raw)), (normal - squash).sum()

    def mode(self, obs: Float[Array, " obs"]) -> Float[Array, " action"]:
        """The action without noise."""
        return self.bounded(jnp.tanh(self.distribution(obs)[0]))

    def bounded(self, unit: Float[Array, " action"]) -> Float[Array, " action"]:
        """From (−1, 1) to the action bounds."""
        return self.action_scale.denormalize(unit)

    def unit(self, action: Float[Array, " action"]) -> Float[Array, " action"]:
        """From the action bounds to [−1, 1]."""
        return self.action_scale.normalize(action)
