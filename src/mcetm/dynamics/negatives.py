"""Where an energy's rivals come from: noise, the manifold around the truth, or a known proposal.

Everything here lives in standardised states x; `energy(x)` is E of one (s, a) at the state that x stands for.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.dynamics.gaussian import Gaussian
from mcetm.dynamics.langevin import Box, Langevin
from mcetm.dynamics.langevin import Energy as StateEnergy
from mcetm.dynamics.manifold import Autoencoder
from mcetm.nn.scaling import frozen


class Row(eqx.Module):
    """One transition as the negatives see it: the pair (s, a) in raw units, the truth standardised."""

    obs: Float[Array, " dim"]
    action: Float[Array, " action"]
    truth: Float[Array, " dim"]


@runtime_checkable
class Negatives(Protocol):
    """Anything that proposes rivals of a truth."""

    def __call__(
        self, energy: StateEnergy, row: Row, count: int, *, key: PRNGKeyArray
    ) -> Float[Array, "count dim"]:
        """`count` rivals, standardised."""
        ...


class NoiseNegatives(eqx.Module):
    """Standard ETM: chains that start from noise and descend the energy."""

    sampler: Langevin
    box: Box
    start: Literal["uniform", "gaussian"] = eqx.field(static=True, default="uniform")

    def __call__(
        self, energy: StateEnergy, row: Row, count: int, *, key: PRNGKeyArray
    ) -> Float[Array, "count dim"]:
        """`count` rivals, wherever the truth lies."""
        start_key, chain_key = jax.random.split(key)
        shape = (count, row.truth.shape[0])
        if self.start == "uniform":
            starts = jax.random.uniform(start_key, shape, minval=self.box.low, maxval=self.box.high)
        else:
            starts = self.box.clip(jax.random.normal(start_key, shape))
        run = lambda x, k: self.sampler(energy, x, box=self.box, key=k)  # noqa: E731
        return jax.vmap(run)(starts, jax.random.split(chain_key, count))


class ManifoldNegatives(eqx.Module):
    """Manifold projection-diffusion, Algorithm 1 of the paper.

    z̃ = f_e(s') + σ ε; then a latent chain from z̃ under H̃(z) = E(f_d(z)) + w/(2σ²) ‖z − z̃‖²; then an ambient
    chain from f_d(z⁻) under Ẽ(s') = E(s') + w/(2σ²) ‖f_e(s') − z̃‖². The paper gives neither σ nor a weight
    other than 1; MPDR, where this comes from, draws σ from [0.05, 0.3] and has w = 1e-4 or 0. σ is drawn anew
    for each rival.

    With `difference`, f_d(z⁻) − f_d(f_e(s')) is added to the truth: a move along the manifold without the
    decoder's own error, by which a decoded rival could otherwise be told from the truth.
    """

    autoencoder: Autoencoder
    latent: Langevin
    ambient: Langevin
    box: Box
    sigma: tuple[float, float] = eqx.field(static=True, default=(0.05, 0.3))
    recovery: float = eqx.field(static=True, default=1.0)
    """w, the weight of the recovery term."""
    difference: bool = eqx.field(static=True, default=False)

    def __call__(
        self, energy: StateEnergy, row: Row, count: int, *, key: PRNGKeyArray
    ) -> Float[Array, "count dim"]:
        """`count` rivals of the truth, each with a perturbation of its own."""
        autoencoder = frozen(self.autoencoder)
        code = autoencoder.encode(row.truth)
        offset = row.truth - autoencoder.decode(code) if self.difference else jnp.zeros_like(row.truth)

        def rival(key: PRNGKeyArray) -> Float[Array, " dim"]:
            sigma_key, noise_key, latent_key, ambient_key = jax.random.split(key, 4)
            sigma = jax.random.uniform(sigma_key, minval=self.sigma[0], maxval=self.sigma[1])
            perturbed = code + sigma * jax.random.normal(noise_key, code.shape)
            stiffness = self.recovery / sigma**2
            z = self.latent(
                lambda z: energy(autoencoder.decode(z) + offset),
                perturbed,
                pull=(perturbed, stiffness),
                key=latent_key,
            )
            # In state space the recovery term is not quadratic; the sampler's clips and box bound it.
            return self.ambient(
                lambda x: energy(x) + 0.5 * stiffness * ((autoencoder.encode(x) - perturbed) ** 2).sum(),
                self.box.clip(autoencoder.decode(z) + offset),
                box=self.box,
                key=ambient_key,
            )

        return jax.vmap(rival)(jax.random.split(key, count))


class ProposalNegatives(eqx.Module):
    """Draws from a known density: a trained Gaussian, widened by several factors at once.

    Its log-density is what ranking NCE needs to learn the true energy rather than its ratio to the proposal.
    """

    proposal: Gaussian
    widths: tuple[float, ...] = eqx.field(static=True, default=(1.0, 2.0, 4.0, 8.0))

    def __call__(
        self, energy: StateEnergy, row: Row, count: int, *, key: PRNGKeyArray
    ) -> Float[Array, "count dim"]:
        """`count` draws, each of a width chosen at random."""
        mean, std = self._scaled(row)
        width_key, noise_key = jax.random.split(key)
        widths = jax.random.choice(width_key, jnp.array(self.widths), (count, 1))
        return mean + widths * std * jax.random.normal(noise_key, (count, row.truth.shape[0]))

    def log_density(
        self, row: Row, candidates: Float[Array, "candidates dim"]
    ) -> Float[Array, " candidates"]:
        """Log q of each candidate, as a density over standardised states."""
        mean, std = self._scaled(row)
        scale = jnp.array(self.widths)[:, None, None] * std
        normal = -0.5 * ((candidates - mean) / scale) ** 2 - jnp.log(scale) - 0.5 * jnp.log(2 * jnp.pi)
        return jax.nn.logsumexp(normal.sum(axis=-1), axis=0) - jnp.log(len(self.widths))

    def _scaled(self, row: Row) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
        proposal = frozen(self.proposal)
        mean, std = proposal.predict(row.obs, row.action)
        return proposal.inputs.obs.normalize(mean), std / proposal.inputs.obs.std
