"""What a transition model draws for one (s, a)."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float


class Samples(eqx.Module):
    """N next states of each of M members for one (s, a), and the member's energy at each."""

    next_obs: Float[Array, "members samples obs"]
    energy: Float[Array, "members samples"]

    @property
    def aleatoric(self) -> Float[Array, " obs"]:
        """Variance within a member, averaged over members: what noise the world has."""
        return self.next_obs.var(axis=1).mean(axis=0)

    @property
    def epistemic(self) -> Float[Array, " obs"]:
        """Variance between the members' means: what the models do not agree on."""
        return self.next_obs.mean(axis=1).var(axis=0)
