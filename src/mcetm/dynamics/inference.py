"""Manifold-guided inference: from energies to next states, with the energy each of them ends at.

Two stages (section 4.1 of the paper): K_z Langevin steps in latent space under H(z) = E(s, a, f_d(z)), then
K_s steps in state space under E. Neither has a recovery term.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Annotated, Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray
from pydantic import Field

from mcetm.dynamics.batching import batched
from mcetm.dynamics.energy import Conditional, Energy
from mcetm.dynamics.gaussian import GaussianModel
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import Autoencoder
from mcetm.dynamics.model import EnergyModel, Samples, TransitionModel
from mcetm.dynamics.sampler import PLAIN, Backend, Sampler, sampler
from mcetm.dynamics.space import Space
from mcetm.dynamics.support import Support, expected_errors, pinned
from mcetm.errors import UserError
from mcetm.nn.members import member_count, member_keys, take_members
from mcetm.nn.scaling import frozen
from mcetm.settings import Switch, Weight, settings


@settings
class InferenceSettings:
    """How next states are drawn; the steps and the noise are the paper's."""

    start: Literal["regressor", "noise", "uniform", "middle"] = "regressor"
    """Begin at a sample of the regressor (of its own anchor, for a member that has one), at Gaussian noise
    (in latent space where there is one), anywhere in the box of the data, or at the origin of the
    coordinates."""
    latent: Langevin | None = field(default_factory=lambda: Langevin(steps=30, noise=0.1))
    """Chains in latent space; None skips the latent stage."""
    ambient: Langevin = field(default_factory=lambda: Langevin(steps=30, noise=0.1))
    """Chains in state space."""
    noise_factors: Annotated[tuple[Weight, ...], Field(min_length=1)] = (1.0,)
    """Factors on the noise, dealt out to the samples in turn: several make the sampling multi-scale."""
    accept_only_lower: Switch = False
    """Where a chain ends above the energy it started from, keep its start."""


REFINE = InferenceSettings(
    latent=None,
    ambient=Langevin(
        steps=30, first=0.2, last=0.02, convention="paper", noise=1.0, gradient_clip=10.0, move_clip=2.0
    ),
)
"""For anchored energies: from a sample of the anchor, Langevin steps in units of the anchor's spread."""


class EnergyTransitionModel(EnergyModel):
    """A trained energy-based transition model: energies, and all that is needed to sample from them."""

    members: Energy
    """Leading axis: members."""
    space: Space
    regressor: GaussianModel | None = None
    autoencoder: Autoencoder | None = None
    config: InferenceSettings = eqx.field(static=True, default_factory=InferenceSettings)
    support: Support | None = None
    """Sets the level of all energies of an (s, a): high where it is unlike the log or members disagree."""
    backend: Backend = eqx.field(static=True, default="plain")
    """What runs the chains of samples."""

    def __check_init__(self) -> None:
        if self.config.start == "regressor" and self.regressor is None and self.members.anchor is None:
            raise UserError("Chains that start at a regressor's prediction need one; or start from noise.")

    @property
    def num_members(self) -> int:
        """All energies draw."""
        return member_count(self.members)

    @property
    def widths(self) -> tuple[int, int] | None:
        """How many numbers its states have, and its actions."""
        return self.members.widths

    def part(self, name: str) -> TransitionModel:
        """Its regressor, where chains begin at one."""
        return self.regressor if name == "regressor" and self.regressor is not None else self

    def energies(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, " members"]:
        """The energy of one transition under each member."""
        energies = eqx.filter_vmap(lambda member: member(obs, action, next_obs))(self.members)
        return energies + self._offset(obs, action)

    def _offset(self, obs: Array, action: Array) -> Float[Array, " members"]:
        """c(s, a), which no chain feels."""
        if self.support is None:
            return jnp.zeros(member_count(self.members))
        return pinned(frozen(self.members), obs, action) + frozen(self.support)(obs, action)

    def draw(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], count: int, *, key: PRNGKeyArray
    ) -> Samples:
        """`count` next states of every member, with independent starts and noise."""
        keys = jax.vmap(lambda k: jax.random.split(k, count))(member_keys(key, member_count(self.members)))
        factors = jnp.array(
            [self.config.noise_factors[j % len(self.config.noise_factors)] for j in range(count)]
        )
        run = sampler(self.backend)

        def of_member(member: Energy, keys: Key[Array, " samples"]) -> tuple[Array, Array]:
            return self._chains(member, obs, action, factors, keys, run)

        in_axes = (eqx.if_array(0), 0)
        states, energies = eqx.filter_vmap(of_member, in_axes=in_axes)(frozen(self.members), keys)
        return Samples(states, energies + self._offset(obs, action)[:, None])

    @batched
    def sample(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        """One next state, of a member chosen at random."""
        pick_key, draw_key = jax.random.split(key)
        chosen = jax.random.randint(pick_key, (), 0, member_count(self.members))
        member = take_members(frozen(self.members), chosen)
        return self._draw(member, obs, action, jnp.asarray(1.0), key=draw_key)[0]

    def means(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, "members obs"]:
        """Where each member's chain without noise ends."""
        return self._settle(obs, action, key=key)[0]

    def apart(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """The regressor's, where there is one: no chain is run then."""
        if self.regressor is None:
            return super().apart(obs, action, key=key)
        return self.regressor.apart(obs, action, key=key)

    def total_spread(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        """The regressor's, where there is one: the level of a plain energy is no error's."""
        if self.regressor is None:
            return super().total_spread(obs, action, key=key)
        return self.regressor.total_spread(obs, action, key=key)

    @batched
    def minimum(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " members"]:
        """How low each member's energy can be for this (s, a).

        Where a chain without noise ends, or where it began: far from the data a descent may wander off.
        """
        cautious = replace(self, config=replace(self.config, accept_only_lower=True))
        return cautious._settle(obs, action, key=key)[1] + self._offset(obs, action)

    @batched
    def terminal(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " members"]:
        """Each member's energy where its own prediction is: at the end of a chain without noise."""
        return self._settle(obs, action, key=key)[1] + self._offset(obs, action)

    @batched
    def expected_error(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """The error to expect: root mean square over components, in spreads of the changes.

        Of anchored energies: exp(E/D) at the anchors' means, without the support, which knows odd pairs and
        not sizes. The level of other energies is no error's; theirs is exp(E/D) where E is least.
        """
        if self.members.anchor is not None:
            return jnp.exp(jnp.log(expected_errors(frozen(self.members), obs, action)).mean())
        return jnp.exp(self.minimum(obs, action, key=key).mean() / obs.shape[0])

    def _settle(
        self, obs: Array, action: Array, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, "members obs"], Float[Array, " members"]]:
        def of_member(member: Energy) -> tuple[Array, Array]:
            return self._draw(member, obs, action, jnp.asarray(0.0), key=key)

        return eqx.filter_vmap(of_member)(frozen(self.members))

    @batched
    def lowest(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], count: int, *, key: PRNGKeyArray
    ) -> Float[Array, "members obs"]:
        """Each member's own point prediction: the lowest in energy of `count` samples and of its prediction.

        Samples find the other valleys; the end of a chain without noise is the bottom of one.
        """
        drawn = self.draw(obs, action, count, key=key)
        settled, ends = self._settle(obs, action, key=key)
        states = jnp.concatenate([drawn.next_obs, settled[:, None]], axis=1)
        energies = jnp.column_stack([cast(Array, drawn.energy), ends + self._offset(obs, action)])
        return jnp.take_along_axis(states, energies.argmin(axis=1)[:, None, None], axis=1)[:, 0]

    @batched
    def select(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], count: int, *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        """A point prediction: the candidate whose energy, mean over all members, is lowest.

        Candidates are `count` samples of every member, the members' own predictions, and the mean of these,
        each weighted by its precision where a member has one. Between two modes the mean is a state of high
        energy, so that one of them is predicted and not the empty middle.
        """
        members = frozen(self.members)
        drawn, settled = self.draw(obs, action, count, key=key), self._settle(obs, action, key=key)[0]
        sizes = eqx.filter_vmap(lambda member: member.preconditioner(obs, action))(members)
        weights = jnp.ones_like(settled) if sizes is None else sizes**-2
        middle = (weights * settled).sum(axis=0) / weights.sum(axis=0)
        candidates = jnp.concatenate([drawn.next_obs.reshape(-1, *obs.shape), settled, middle[None]])
        joint = lambda s: eqx.filter_vmap(lambda member: member(obs, action, s))(members).mean()  # noqa: E731
        return candidates[jax.vmap(joint)(candidates).argmin()]

    def _draw(
        self, member: Energy, obs: Array, action: Array, noise: Array, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, " obs"], Float[Array, ""]]:
        """One chain; its end, and the energy there. There is nothing to fuse."""
        states, energies = self._chains(member, obs, action, noise[None], key[None], PLAIN)
        return states[0], energies[0]

    def _chains(
        self,
        member: Energy,
        obs: Array,
        action: Array,
        noise: Float[Array, " samples"],
        keys: Key[Array, " samples"],
        run: Sampler,
    ) -> tuple[Float[Array, "samples obs"], Float[Array, " samples"]]:
        """Chains of one member through both stages; where they end, and the energies there."""
        start_keys, latent_keys, ambient_keys = jax.vmap(lambda k: jax.random.split(k, 3), out_axes=1)(keys)
        at, config, clip = Conditional(member, self.space, obs, action), self.config, self.space.box.clip
        x = start = jax.vmap(lambda n, k: self._start(member, obs, action, n, key=k))(noise, start_keys)
        if self.autoencoder is not None and config.latent is not None:
            autoencoder = frozen(self.autoencoder)
            z = jax.vmap(lambda x: at.code(autoencoder, x))(x)
            if config.start == "noise":
                z = jax.vmap(lambda k: jax.random.normal(k, z.shape[1:]))(start_keys)
                start = jax.vmap(lambda z: clip(at.decoded(autoencoder, z)))(z)
            amount = noise * config.latent.noise
            z = run.latent(config.latent, at, autoencoder, z, noise=amount, keys=latent_keys)
            x = jax.vmap(lambda z: clip(at.decoded(autoencoder, z)))(z)
        x = run.ambient(config.ambient, at, x, noise=noise * config.ambient.noise, keys=ambient_keys)
        energies = jax.vmap(at)(x)
        if config.accept_only_lower:
            before = jax.vmap(at)(start)
            x = jnp.where((energies <= before)[:, None], x, start)
            energies = jnp.minimum(energies, before)
        return jax.vmap(lambda x: self.space.decode(obs, x))(x), energies

    def _start(
        self, member: Energy, obs: Array, action: Array, noise: Array, *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        """Where a chain begins; without noise at the regressor's mean."""
        box = self.space.box
        if self.config.start == "middle":
            return jnp.zeros_like(obs)
        if self.config.start == "noise":
            return box.clip(jax.random.normal(key, obs.shape))
        if self.config.start == "uniform":
            return jax.random.uniform(key, obs.shape, minval=box.low, maxval=box.high)
        if member.anchor is not None:
            mean, std = member.anchor.predict(obs, action)
            sampled = mean + std * jax.random.normal(key, mean.shape)
        else:
            assert self.regressor is not None  # noqa: S101 (checked when the model was made)
            regressor = frozen(self.regressor)
            mean = regressor.of_members(obs, action)[0].mean(axis=0)
            sampled = regressor.sample(obs, action, key=key)
        return self.space.encode(obs, jnp.where(noise > 0.0, sampled, mean))
