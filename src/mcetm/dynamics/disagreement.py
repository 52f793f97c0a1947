"""Disagreement of a Gaussian ensemble as its energy: MOReL's test of what is known (Kidambi et al., 2020)."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.dynamics.gaussian import Gaussian, GaussianEnsemble
from mcetm.dynamics.samples import Samples


class Disagreement(eqx.Module):
    """The ensemble's samples, all with one energy: how far apart its two most distant predictions lie."""

    regressor: GaussianEnsemble

    @property
    def members(self) -> Gaussian:
        """Those that predict, on a leading axis."""
        return self.regressor.of_elites()

    def apart(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, ""]:
        """The largest distance between two means, in units of the spread of changes."""
        means = self.regressor.predict(obs, action)[0] / self.regressor.members.change_scale.std[0]
        # The tiny constant keeps the root differentiable where a mean is compared with itself.
        return jnp.sqrt(((means[:, None] - means) ** 2).sum(axis=-1) + 1e-12).max()

    def samples(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], count: int, *, key: PRNGKeyArray
    ) -> Samples:
        """`count` next states of every member."""
        drawn = self.regressor.samples(obs, action, count, key=key).next_obs
        return Samples(drawn, jnp.broadcast_to(self.apart(obs, action), drawn.shape[:2]))

    def energy(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, " members"]:
        """The same for every member and every next state."""
        return jnp.broadcast_to(self.apart(obs, action), self.regressor.elites.shape)
