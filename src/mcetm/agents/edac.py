"""EDAC (An et al., 2021): many critics, of which the least counts, kept from agreeing in their gradients."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.algorithm import OnSAC
from mcetm.agents.critics import Critics
from mcetm.agents.learner import Minibatch
from mcetm.agents.sac import Regulariser, SACLearner
from mcetm.nn.scaling import frozen
from mcetm.settings import Weight, settings


@settings
class Diverse:
    """weight · how much the critics' gradients in the action point the same way; 0 is SAC-N."""

    weight: Weight = 1.0
    """Of this term beside the Bellman error."""

    def __call__(
        self, critics: Critics, learner: SACLearner, batch: Minibatch, *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """Weight · how alike they are / (critics − 1)."""

        def of_rows(network: Any, action: Float[Array, "rows action"]) -> Float[Array, " rows"]:
            return jax.vmap(network)(jax.vmap(critics.inputs.pair)(batch.obs, action))[:, 0]

        def slope(network: Any) -> Float[Array, "rows action"]:
            return jax.grad(lambda action: of_rows(network, action).sum())(batch.action)

        def along(network: Any, direction: Float[Array, "rows action"]) -> Float[Array, ""]:
            rise = lambda action: of_rows(network, action)  # noqa: E731
            return jax.jvp(rise, (batch.action,), (direction,))[1].sum()

        slopes = eqx.filter_vmap(slope)(frozen(critics.networks))
        alike, pull = jax.value_and_grad(_alike)(slopes)
        # d alike = pull · d slope, and pull · slope is how values change along `pull`: differentiating that
        # needs no gradient of a gradient, and weights are multiplied as in any other loss.
        change = eqx.filter_vmap(along)(critics.networks, pull).sum()
        term = alike + change - jax.lax.stop_gradient(change)
        return self.weight * term / max(1, learner.config.critics - 1)


def _alike(slopes: Float[Array, "critics rows action"]) -> Float[Array, ""]:
    """Σ over i ≠ j of the cosine between critics' slopes, averaged over rows."""
    # The square root of a sum has no slope at 0, where a gradient may vanish.
    length = jnp.sqrt((slopes**2).sum(axis=2, keepdims=True) + 1e-20)
    unit = slopes / (length + 1e-10)
    # Of all pairs, less each with itself.
    together = (unit.sum(axis=0) ** 2).sum(axis=1) - (unit**2).sum(axis=(0, 2))
    return together.mean()


@settings
class EDAC(OnSAC):
    """EDAC: SAC on the log alone, whose caution comes from many critics that are kept from agreeing."""

    label: ClassVar[str] = "EDAC"
    entropy_backup: ClassVar[bool] = True

    name: Literal["edac"] = "edac"
    """Its name in files and on the command line."""
    diversity: Weight = 1.0
    """Weight of the term that keeps critics apart; 0 is SAC-N."""

    @property
    def regulariser(self) -> Regulariser:
        """The diversity of critics."""
        return Diverse(weight=self.diversity)
