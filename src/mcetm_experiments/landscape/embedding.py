"""A curve in many dimensions: how one number becomes a high-dimensional state, and back.

    φ(x) = Q · (x, h(x)) / c,      h_k(x) = √(2/(d − 1)) · sin(ω_k x + β_k)

Q is a random rotation, ω_k is drawn from [1, 3], β_k from [0, 2π], and c makes the mean of ‖φ'‖² equal to 1
where the numbers are standard normal, so that distances in the embedding are distances of numbers. φ is
injective, as the first coordinate of Qᵀφ(x) is x/c itself.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm import UserError

_FREQUENCIES = (1.0, 3.0)


class Embedding(eqx.Module):
    """A smooth, injective map from numbers to points of a curve."""

    rotation: Float[Array, "dim dim"]
    frequency: Float[Array, " waves"]
    phase: Float[Array, " waves"]
    scale: Float[Array, ""]

    @classmethod
    def draw(cls, dim: int, *, seed: int) -> Embedding:
        """The embedding of this seed."""
        if dim < 2:
            raise UserError(f"An embedding needs at least 2 dimensions, not {dim}.")
        rng = np.random.default_rng(seed)
        rotation = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
        frequency = rng.uniform(*_FREQUENCIES, dim - 1)
        phase = rng.uniform(0.0, 2.0 * np.pi, dim - 1)
        # E cos²(ωx + β) over x ~ N(0, 1) is (1 + cos 2β · exp(−2ω²)) / 2.
        speed = 1.0 + (frequency**2 * (1.0 + np.cos(2 * phase) * np.exp(-2 * frequency**2))).mean()
        parts = (rotation, frequency, phase, np.sqrt(speed))
        return cls(*(jnp.asarray(part, jnp.float32) for part in parts))

    def __call__(self, x: Float[Array, ""]) -> Float[Array, " dim"]:
        """φ(x)."""
        waves = jnp.sqrt(2.0 / len(self.phase)) * jnp.sin(self.frequency * x + self.phase)
        return self.rotation @ jnp.concatenate([x[None], waves]) / self.scale

    def inverse(self, point: Float[Array, " dim"]) -> Float[Array, ""]:
        """The number at a point of the curve."""
        return (self.rotation[:, 0] @ point) * self.scale

    def tangent(self, x: Float[Array, ""]) -> Float[Array, " dim"]:
        """The unit vector along the curve."""
        return _unit(jax.jvp(self, (x,), (jnp.ones_like(x),))[1])

    def normal(self, x: Float[Array, ""], *, key: PRNGKeyArray) -> Float[Array, " dim"]:
        """A unit vector at right angles to the curve, every one alike."""
        along, any_way = self.tangent(x), jax.random.normal(key, self.rotation.shape[:1])
        return _unit(any_way - (along @ any_way) * along)

    def distance(
        self, points: Float[Array, "*points dim"], low: float, high: float, count: int = 4001
    ) -> Float[Array, "*points"]:
        """How far points lie from the curve between two numbers, from the nearest of its `count` chords."""
        curve = jax.vmap(self)(jnp.linspace(low, high, count))
        start, step = curve[:-1], curve[1:] - curve[:-1]

        def one(point: Float[Array, " dim"]) -> Float[Array, ""]:
            nearest = jnp.argmin(((point - curve) ** 2).sum(axis=-1))
            # The two chords that meet at the nearest point of the curve.
            chords = jnp.clip(jnp.array([nearest - 1, nearest]), 0, count - 2)
            share = ((point - start[chords]) * step[chords]).sum(axis=-1) / (step[chords] ** 2).sum(axis=-1)
            foot = start[chords] + jnp.clip(share, 0.0, 1.0)[:, None] * step[chords]
            return jnp.sqrt(((point - foot) ** 2).sum(axis=-1).min())

        rows = points.reshape(-1, points.shape[-1])
        return jax.lax.map(one, rows, batch_size=64).reshape(points.shape[:-1])


def _unit(vector: Float[Array, " dim"]) -> Float[Array, " dim"]:
    return vector / jnp.linalg.norm(vector)
