"""The sampler: many chains of one (s, a) at once, in state space or in the codes of an autoencoder.

What runs them is a `backend`. `plain` is `vmap` over `Langevin`, on every device and for every energy.
`fused` is one GPU kernel for all chains of a training step or of a rollout, where one serves
(docs/research/kernels.md); where none does, it is the plain one.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
from jaxtyping import Array, Float, Key, PRNGKeyArray

from mcetm.dynamics.energy import Conditional
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import Autoencoder

Backend = Literal["plain", "fused"]
"""What runs the chains; see above."""


class Spring(NamedTuple):
    """What draws codes to a centre: adds stiffness/2 · ‖z − centre‖² to the energy, for each chain."""

    centre: Float[Array, "samples latent"]
    stiffness: Float[Array, " samples"]


class Sampler:
    """Runs the chains of one (s, a), and of many under `vmap`: the plain backend, which others extend.

    Each chain has a key, and a factor on its noise where it is not the settings' own.
    """

    def ambient(
        self,
        langevin: Langevin,
        energy: Conditional,
        start: Float[Array, "samples dim"],
        *,
        noise: Float[Array, " samples"] | None = None,
        recovery: tuple[Autoencoder, Spring] | None = None,
        keys: Key[Array, " samples"],
    ) -> Float[Array, "samples dim"]:
        """Where chains of states end, kept in the box of the energy's space. `recovery` holds their codes."""
        autoencoder, springs = (None, None) if recovery is None else recovery
        options: dict[str, Any] = {"box": energy.space.box, "preconditioner": energy.preconditioner}

        def run(x: Array, noise: Array | None, spring: Spring | None, key: PRNGKeyArray) -> Array:
            def felt(x: Array) -> Array:
                if autoencoder is None or spring is None:
                    return energy(x)
                # In state space this term is not quadratic; the clips and the box bound its steps.
                return (
                    energy(x)
                    + 0.5 * spring.stiffness * ((energy.code(autoencoder, x) - spring.centre) ** 2).sum()
                )

            return langevin(felt, x, noise=noise, key=key, **options)

        return jax.vmap(run)(start, noise, springs, keys)

    def latent(
        self,
        langevin: Langevin,
        energy: Conditional,
        autoencoder: Autoencoder,
        start: Float[Array, "samples latent"],
        *,
        noise: Float[Array, " samples"] | None = None,
        pull: Spring | None = None,
        offset: Float[Array, " dim"] | None = None,
        keys: Key[Array, " samples"],
    ) -> Float[Array, "samples latent"]:
        """Where chains of codes end, under the energy of what they decode to.

        `offset` is added to a decoded state, in the coordinates of the energy's space.
        """

        def felt(z: Array) -> Array:
            x = energy.decoded(autoencoder, z)
            return energy(x if offset is None else x + offset)

        def run(z: Array, noise: Array | None, pull: Spring | None, key: PRNGKeyArray) -> Array:
            return langevin(felt, z, pull=pull, noise=noise, key=key)

        return jax.vmap(run)(start, noise, pull, keys)


PLAIN = Sampler()


def sampler(backend: Backend) -> Sampler:
    """The sampler of a backend."""
    if backend == "plain":
        return PLAIN
    from mcetm.dynamics.fused import FUSED  # imports the kernels, and this module

    return FUSED
