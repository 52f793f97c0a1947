"""Holding imagined states near the manifold of a log: a tube around it, as wide as the log itself.

Models are exact near the data and anything elsewhere, so an imagined state that has left the data is soon
lost. Inside the tube nothing is changed, so that nothing of a model's accuracy is lost where it has any.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mcetm.data.transitions import Transitions
from mcetm.dynamics.manifold import Autoencoder
from mcetm.errors import UserError
from mcetm.nn.scaling import frozen
from mcetm.training.batches import Batch


class Tube(eqx.Module):
    """States that encoding and decoding changes by no more than `radius`; others are drawn towards it."""

    autoencoder: Autoencoder
    radius: Float[Array, ""]
    """Root mean square over components, in spreads of the states."""

    @classmethod
    def of(cls, autoencoder: Autoencoder, holdout: Transitions, *, quantile: float = 0.999) -> Tube:
        """As wide as it must be to hold this share of held-out states."""
        if not 0.0 < quantile <= 1.0:
            raise UserError(f"A tube holds a share of the states between 0 and 1, not {quantile}.")
        found = jax.vmap(lambda state: _length(autoencoder.residual(state)))(
            Batch.of(holdout.with_next).next_obs
        )
        return cls(autoencoder, jnp.quantile(found, quantile))

    def distance(self, state: Float[Array, " dim"]) -> Float[Array, ""]:
        """What encoding and decoding changes."""
        return _length(frozen(self.autoencoder).residual(state))

    def __call__(self, state: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """The state, or the nearest to it on the way to its decoded self that is within a radius of that."""
        autoencoder = frozen(self.autoencoder)
        residual = autoencoder.residual(state)
        # Only the excess is taken away: decoding itself forgets more than a model errs by.
        excess = jnp.maximum(0.0, 1.0 - self.radius / jnp.maximum(_length(residual), 1e-12))
        return state + excess * residual * autoencoder.state_scale.std


def _length(residual: Float[Array, " dim"]) -> Float[Array, ""]:
    return jnp.sqrt((residual**2).mean())
