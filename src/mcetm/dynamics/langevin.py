"""The Langevin sampler: one kernel, two conventions, used in state space and in latent space alike.

With g the energy's gradient, w standard normal and ε the step size of the moment:

- `paper`:  x ← x − ε g + √(2ε) · noise · w. With noise 1 its stationary law is exp(−E), up to a bias of
  order ε.
- `empo`:   x ← x − clip(ε (g/2 + noise · w)). As in EMPO's and IBC's code: the noise vanishes with the step,
  so this is noisy descent towards low energy, not a sampler of exp(−E).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.settings import NonNegative, Rate, Weight, settings

Convention = Literal["paper", "empo"]
Energy = Callable[[Float[Array, " dim"]], Float[Array, ""]]


class Box(eqx.Module):
    """Where samples are kept."""

    low: Float[Array, " dim"]
    high: Float[Array, " dim"]

    def clip(self, x: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """The nearest point inside."""
        return jnp.clip(x, jax.lax.stop_gradient(self.low), jax.lax.stop_gradient(self.high))


@settings
class Langevin:
    """How a chain moves, as plain settings; the energy and the starting point are given when it runs."""

    steps: NonNegative = 20
    """Length of a chain."""
    first: Rate = 0.1
    """The first step size; sizes go polynomially to the last one and are constant where both are equal."""
    last: Rate = 1e-3
    """The last step size."""
    power: Weight = 2.0
    """Of the polynomial."""
    convention: Convention = "empo"
    """How noise and step size belong together; see above."""
    noise: Weight = 0.5
    """Factor on the noise; 0 makes it plain descent."""
    gradient_clip: Rate | None = 10.0
    """Largest absolute component of a gradient."""
    move_clip: Rate | None = 0.5
    """Largest absolute component of a move (the paper's "delta clip")."""

    def step_sizes(self) -> Float[np.ndarray, " steps"]:
        """All step sizes; a single step has size `first`."""
        # In double precision on the host: a device may divide so that the last share is not quite 1.
        share = np.arange(self.steps) / max(1, self.steps - 1)
        return (self.first - self.last) * (1.0 - share) ** self.power + self.last

    def sizes(self) -> Float[Array, " steps"]:
        """The same, on the device."""
        return jnp.asarray(self.step_sizes(), jnp.float32)

    def __call__(
        self,
        energy: Energy,
        start: Float[Array, " dim"],
        *,
        box: Box | None = None,
        pull: tuple[Float[Array, " dim"], Float[Array, ""]] | None = None,
        preconditioner: Float[Array, " dim"] | None = None,
        noise: Float[Array, ""] | float | None = None,
        key: PRNGKeyArray,
    ) -> Float[Array, " dim"]:
        """Run one chain and return its last point; nothing is differentiated through it.

        `pull = (centre, stiffness)` adds stiffness/2 · ‖x − centre‖² to the energy. It is integrated
        implicitly, so that chains stay bounded however stiff it is: an explicit step diverges once
        ε · stiffness exceeds 2. With a `preconditioner` p the chain runs in x / p: steps, noise and
        clips are in these units. `noise` overrides the sampler's own factor.
        """
        scale = jnp.ones_like(start) if preconditioner is None else jax.lax.stop_gradient(preconditioner)
        gradient = jax.grad(energy)
        amount = self.noise if noise is None else noise

        def move(x: Array, inputs: tuple[Array, Array]) -> tuple[Array, None]:
            size, step_key = inputs
            g = scale * gradient(x)
            if self.gradient_clip is not None:
                g = jnp.clip(g, -self.gradient_clip, self.gradient_clip)
            w = jax.random.normal(step_key, x.shape)
            if self.convention == "paper":
                drift = size
                delta = -drift * g + jnp.sqrt(2.0 * size) * amount * w
            else:
                drift = 0.5 * size
                delta = -drift * g - size * amount * w
            if pull is not None:
                centre, stiffness = pull
                # Backward Euler for the quadratic term: (x + delta + h · centre) / (1 + h).
                h = drift * stiffness * scale**2
                delta = (delta + h * (centre - x) / scale) / (1.0 + h)
            if self.move_clip is not None:
                delta = jnp.clip(delta, -self.move_clip, self.move_clip)
            x = x + scale * delta
            return (x if box is None else box.clip(x)), None

        keys = jax.random.split(key, self.steps)
        end, _ = jax.lax.scan(move, jax.lax.stop_gradient(start), (self.sizes(), keys))
        return jax.lax.stop_gradient(end)
