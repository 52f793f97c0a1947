"""Where an energy's negatives come from: noise, the manifold around the truth, a known proposal, other rows.

Everything here lives in the coordinates x of a `Space`; `energy(x)` is E of one (s, a) at the state that x
stands for. A `Sampler` runs the chains.
"""

from __future__ import annotations

import abc
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mcetm.dynamics.contrastive import info_nce, ranking_nce
from mcetm.dynamics.energy import Conditional
from mcetm.dynamics.gaussian import Gaussian
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import Autoencoder
from mcetm.dynamics.sampler import PLAIN, Sampler, Spring
from mcetm.dynamics.space import Space
from mcetm.nn.scaling import frozen


class Row(eqx.Module):
    """One transition as the negatives see it: (s, a) in raw units, the truth in x."""

    obs: Float[Array, " dim"]
    action: Float[Array, " action"]
    positive: Float[Array, " dim"]


class Negatives(eqx.Module):
    """Anything that proposes negatives of a truth, and says how the truth is told from them."""

    @abc.abstractmethod
    def __call__(
        self, energy: Conditional, row: Row, count: int, *, key: PRNGKeyArray
    ) -> Float[Array, "count dim"]:
        """`count` negatives."""

    def contrast(
        self, energies: Float[Array, " candidates"], row: Row, candidates: Float[Array, "candidates dim"]
    ) -> Float[Array, ""]:
        """The loss of one transition, whose truth is candidate 0."""
        return info_nce(energies)


class NoiseNegatives(Negatives):
    """Standard ETM: chains that start from noise and go down the energy."""

    space: Space
    ambient: Langevin = eqx.field(static=True)
    start: Literal["uniform", "gaussian"] = eqx.field(static=True, default="uniform")
    sampler: Sampler = eqx.field(static=True, default=PLAIN)

    def __call__(
        self, energy: Conditional, row: Row, count: int, *, key: PRNGKeyArray
    ) -> Float[Array, "count dim"]:
        """`count` negatives, wherever the truth lies."""
        start_key, chain_key = jax.random.split(key)
        shape, box = (count, row.positive.shape[0]), self.space.box
        if self.start == "uniform":
            starts = jax.random.uniform(start_key, shape, minval=box.low, maxval=box.high)
        else:
            starts = jax.vmap(box.clip)(jax.random.normal(start_key, shape))
        keys = jax.random.split(chain_key, count)
        return self.sampler.ambient(self.ambient, energy, starts, keys=keys)


class ManifoldNegatives(Negatives):
    """Manifold projection-diffusion, Algorithm 1 of the paper.

    z̃ = f_e(s') + σ ε; then a latent chain from z̃ under H̃(z) = E(f_d(z)) + w/(2σ²) ‖z − z̃‖²; then an ambient
    chain from f_d(z⁻) under Ẽ(s') = E(s') + w/(2σ²) ‖f_e(s') − z̃‖². The paper gives neither σ nor a weight
    other than 1; MPDR, where this comes from, draws σ from [0.05, 0.3] and has w = 1e-4 or 0. σ is drawn anew
    for each negative: uniformly, or (`log-uniform`) at every scale alike.

    With `difference`, f_d(z⁻) − f_d(f_e(s')) is added to the truth: a move along the manifold without the
    decoder's own error, by which a decoded negative could otherwise be told from the truth.
    """

    autoencoder: Autoencoder
    space: Space
    latent: Langevin = eqx.field(static=True)
    ambient: Langevin = eqx.field(static=True)
    sigma: tuple[float, float] = eqx.field(static=True, default=(0.05, 0.3))
    sigma_law: Literal["uniform", "log-uniform"] = eqx.field(static=True, default="uniform")
    recovery: float = eqx.field(static=True, default=1.0)
    """w, the weight of the recovery term."""
    difference: bool = eqx.field(static=True, default=False)
    sampler: Sampler = eqx.field(static=True, default=PLAIN)

    def __call__(
        self, energy: Conditional, row: Row, count: int, *, key: PRNGKeyArray
    ) -> Float[Array, "count dim"]:
        """`count` negatives of the truth, each with a perturbation of its own."""
        autoencoder = frozen(self.autoencoder)
        decode = lambda z: energy.decoded(autoencoder, z)  # noqa: E731
        code = energy.code(autoencoder, row.positive)
        offset = row.positive - decode(code) if self.difference else jnp.zeros_like(row.positive)

        keys = jax.vmap(lambda k: jax.random.split(k, 4))(jax.random.split(key, count))
        sigma_keys, noise_keys, latent_keys, ambient_keys = (keys[:, i] for i in range(4))
        sigma = jax.vmap(self._draw_sigma)(sigma_keys)
        noise = jax.vmap(lambda k: jax.random.normal(k, code.shape))(noise_keys)
        perturbed = code + sigma[:, None] * noise
        spring = Spring(perturbed, self.recovery / sigma**2)
        z = self.sampler.latent(
            self.latent, energy, autoencoder, perturbed, pull=spring, offset=offset, keys=latent_keys
        )
        x = jax.vmap(lambda z: self.space.box.clip(decode(z) + offset))(z)
        recovery = (autoencoder, spring) if self.recovery else None
        return self.sampler.ambient(self.ambient, energy, x, recovery=recovery, keys=ambient_keys)

    def _draw_sigma(self, key: PRNGKeyArray) -> Float[Array, ""]:
        low, high = jnp.asarray(self.sigma)
        if self.sigma_law == "uniform":
            return jax.random.uniform(key, minval=low, maxval=high)
        return jnp.exp(jax.random.uniform(key, minval=jnp.log(low), maxval=jnp.log(high)))


class ProposalNegatives(Negatives):
    """Draws from a known density: a trained Gaussian, widened by several factors at once.

    Its log-density is what ranking NCE needs to learn the true energy rather than its ratio to the proposal.
    """

    proposal: Gaussian
    space: Space
    widths: tuple[float, ...] = eqx.field(static=True, default=(1.0, 2.0, 4.0, 8.0))

    def __call__(
        self, energy: Conditional, row: Row, count: int, *, key: PRNGKeyArray
    ) -> Float[Array, "count dim"]:
        """`count` draws, each of a width chosen at random."""
        mean, std = self.mean_and_std(row)
        width_key, noise_key = jax.random.split(key)
        widths = jax.random.choice(width_key, jnp.array(self.widths), (count, 1))
        return mean + widths * std * jax.random.normal(noise_key, (count, row.positive.shape[0]))

    def contrast(
        self, energies: Float[Array, " candidates"], row: Row, candidates: Float[Array, "candidates dim"]
    ) -> Float[Array, ""]:
        """Ranking NCE, which knows the density that candidates were drawn with."""
        return ranking_nce(energies, self.log_density(row, candidates))

    def log_density(
        self, row: Row, candidates: Float[Array, "candidates dim"]
    ) -> Float[Array, " candidates"]:
        """Log q of each candidate, as a density over x."""
        mean, std = self.mean_and_std(row)
        scale = jnp.array(self.widths)[:, None, None] * std
        normal = -0.5 * ((candidates - mean) / scale) ** 2 - jnp.log(scale) - 0.5 * jnp.log(2 * jnp.pi)
        return jax.nn.logsumexp(normal.sum(axis=-1), axis=0) - jnp.log(float(len(self.widths)))

    def mean_and_std(self, row: Row) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
        """Mean and spread of the proposal at width 1."""
        mean, std = frozen(self.proposal).predict(row.obs, row.action)
        return self.space.encode(row.obs, mean), std / self.space.scale.std


def other_rows(
    positives: Float[Array, "rows dim"], index: Int[Array, ""], count: int, *, key: PRNGKeyArray
) -> Float[Array, "count dim"]:
    """The positives of other rows of a minibatch as negatives of row `index`: true somewhere, hardly here."""
    away = jax.random.randint(key, (count,), 1, positives.shape[0])
    return positives[(index + away) % positives.shape[0]]
