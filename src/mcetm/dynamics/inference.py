"""Manifold-guided inference: from energies to next states, with the energy each of them ends at.

Two stages (section 4.1 of the paper): K_z Langevin steps in latent space under H(z) = E(s, a, f_d(z)), then
K_s steps in state space under E. Neither has a recovery term.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from mcetm.dynamics.energy import Energy
from mcetm.dynamics.etm import SamplerConfig
from mcetm.dynamics.gaussian import GaussianEnsemble
from mcetm.dynamics.langevin import Box
from mcetm.dynamics.manifold import Autoencoder
from mcetm.errors import UserError
from mcetm.nn.scaling import Scaling, frozen


@dataclass(frozen=True)
class InferenceConfig:
    """How next states are drawn; the steps and the noise are the paper's."""

    start: Literal["regressor", "noise"] = "regressor"
    """Begin at a sample of the regressor, or at Gaussian noise (in latent space where there is one)."""
    latent: SamplerConfig | None = field(default_factory=lambda: SamplerConfig(steps=30, noise=0.1))
    """None skips the latent stage."""
    ambient: SamplerConfig = field(default_factory=lambda: SamplerConfig(steps=30, noise=0.1))
    noise_factors: tuple[float, ...] = (1.0,)
    """Factors on the noise, dealt out to the samples in turn: several make the sampling multi-scale."""
    descend: bool = False
    """Where a chain ends above the energy it started from, keep its start."""


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


class EnergyEnsemble(eqx.Module):
    """A trained energy-based transition model: energies, and all that is needed to sample from them."""

    members: Energy
    """Leading axis: members."""
    scale: Scaling
    box: Box
    regressor: GaussianEnsemble | None = None
    autoencoder: Autoencoder | None = None
    config: InferenceConfig = eqx.field(static=True, default_factory=InferenceConfig)

    def __check_init__(self) -> None:
        if self.config.start == "regressor" and self.regressor is None:
            raise UserError("Chains that start at a regressor's prediction need one; or start from noise.")

    def energy(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, " members"]:
        """The energy of one transition under each member."""
        return eqx.filter_vmap(lambda member: member(obs, action, next_obs))(self.members)

    def samples(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], count: int, *, key: PRNGKeyArray
    ) -> Samples:
        """`count` next states of every member, with independent starts and noise."""
        members = self.member_count()
        keys = jax.vmap(lambda i: jax.random.split(jax.random.fold_in(key, i), count))(jnp.arange(members))
        factors = jnp.array(
            [self.config.noise_factors[j % len(self.config.noise_factors)] for j in range(count)]
        )

        def of_member(member: Energy, keys: Key[Array, " samples"]) -> tuple[Array, Array]:
            draw = lambda k, factor: self._draw(member, obs, action, factor, key=k)  # noqa: E731
            return jax.vmap(draw)(keys, factors)

        states, energies = eqx.filter_vmap(of_member, in_axes=(eqx.if_array(0), 0))(
            frozen(self.members), keys
        )
        return Samples(states, energies)

    def member_count(self) -> int:
        """How many members there are."""
        leaves = jax.tree_util.tree_leaves(eqx.filter(self.members, eqx.is_array))
        return leaves[0].shape[0]

    def sample(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        """One next state, of a member chosen at random."""
        pick_key, draw_key = jax.random.split(key)
        chosen = jax.random.randint(pick_key, (), 0, self.member_count())
        member = jax.tree_util.tree_map(
            lambda leaf: leaf[chosen] if eqx.is_array(leaf) else leaf, frozen(self.members)
        )
        return self._draw(member, obs, action, jnp.asarray(1.0), key=draw_key)[0]

    def predict(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        """A point prediction: the mean over members of chains without noise."""

        def of_member(member: Energy) -> Array:
            return self._draw(member, obs, action, jnp.asarray(0.0), key=key)[0]

        return eqx.filter_vmap(of_member)(frozen(self.members)).mean(axis=0)

    def _draw(
        self, member: Energy, obs: Array, action: Array, noise: Array, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, " obs"], Float[Array, ""]]:
        """One chain through both stages; its end, and the energy there."""
        start_key, latent_key, ambient_key = jax.random.split(key, 3)
        at = lambda x: member(obs, action, self.scale.denormalize(x))  # noqa: E731
        x = start = self._start(obs, action, noise, key=start_key)
        if self.autoencoder is not None and self.config.latent is not None:
            autoencoder = frozen(self.autoencoder)
            z = autoencoder.encode(x)
            if self.config.start == "noise":
                z = jax.random.normal(start_key, z.shape)
                start = self.box.clip(autoencoder.decode(z))
            z = self.config.latent.build()(
                lambda z: at(autoencoder.decode(z)), z, noise=noise * self.config.latent.noise, key=latent_key
            )
            x = self.box.clip(autoencoder.decode(z))
        x = self.config.ambient.build()(
            at, x, box=self.box, noise=noise * self.config.ambient.noise, key=ambient_key
        )
        energy = at(x)
        if self.config.descend:
            before = at(start)
            x, energy = jnp.where(energy <= before, x, start), jnp.minimum(energy, before)
        return self.scale.denormalize(x), energy

    def _start(self, obs: Array, action: Array, noise: Array, *, key: PRNGKeyArray) -> Float[Array, " obs"]:
        """Where a chain begins, standardised; without noise at the regressor's mean."""
        if self.regressor is None or self.config.start == "noise":
            return self.box.clip(jax.random.normal(key, obs.shape))
        regressor = frozen(self.regressor)
        sampled = regressor.sample(obs, action, key=key)
        mean = regressor.predict(obs, action)[0].mean(axis=0)
        return self.scale.normalize(jnp.where(noise > 0.0, sampled, mean))
