"""Langevin chains under the energy of a network, as plain arrays: what every sampler here takes and returns.

`Chains` is the problem, `Moves` how chains move, and `sample` the reference: the same signature as the fused
samplers, one example at a time, with `jax.grad`.

The energy of a point x is E(x) = last · h(x), with h the hidden layers of a network. Whatever does not change
along a chain is worked out before it begins: (s, a) enters as `context`, the pre-activation it adds to one of
the layers. Constants of the energy do not move a chain and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

Activation = Literal["relu", "silu", "gelu", "tanh"]
_ACTIVATIONS = {"relu": jax.nn.relu, "silu": jax.nn.silu, "gelu": jax.nn.gelu, "tanh": jnp.tanh}


class Anchor(eqx.Module):
    """A Gaussian around which the energy is built: ½‖ρ‖² + network, ρ = (x − mean) / spread.

    arcsinh(ρ) is one more input of the first layer.
    """

    weight: Float[Array, "members _ dim"]
    mean: Float[Array, "members rows dim"]
    spread: Float[Array, "members rows dim"]


class Pull(eqx.Module):
    """A spring for each chain, integrated implicitly: its energy has stiffness/2 · ‖x − centre‖² more."""

    centre: Float[Array, "members rows samples dim"]
    stiffness: Float[Array, "members rows samples"]


class Recovery(eqx.Module):
    """A spring in the codes of an encoder f: the energy has stiffness/2 · ‖f(x) − centre‖² more.

    It is not quadratic in x, so its gradient is added to that of the energy before the clip.
    """

    weights: tuple[Float[Array, "members _ _"], ...]
    """Of all layers, from x upwards, as (above, below); the last one is linear."""
    biases: tuple[Float[Array, "members _"], ...]
    """Of the layers between the first and the last."""
    context: Float[Array, "members rows _"]
    """What a row adds to the first layer's pre-activation, its bias with it."""
    centre: Float[Array, "members rows samples codes"]
    """Less the last layer's bias."""
    stiffness: Float[Array, "members rows samples"]
    activation: Activation = eqx.field(static=True)


class Chains(eqx.Module):
    """Where chains start, and the energies they run under; one network per member, one context per row."""

    start: Float[Array, "members rows samples dim"]
    weights: tuple[Float[Array, "members _ _"], ...]
    """Of the hidden layers, from x upwards, as (above, below)."""
    biases: tuple[Float[Array, "members _"], ...]
    """Of the hidden layers; where the context enters, it holds the bias already."""
    last: Float[Array, "members _"]
    context: Float[Array, "members rows _"]
    noise: Float[Array, " samples"]
    """Factor on the noise of each sample."""
    preconditioner: Float[Array, "members rows dim"] | None
    """Steps, noise and clips are in these units."""
    box: tuple[Float[Array, " dim"], Float[Array, " dim"]] | None
    anchor: Anchor | None
    activations: tuple[Activation, ...] = eqx.field(static=True)
    """Of the hidden layers."""
    entry: int = eqx.field(static=True, default=0)
    """The layer at which the context enters: 0, or the one above a decoder's layers."""
    pull: Pull | None = None
    recovery: Recovery | None = None


@dataclass(frozen=True)
class Moves:
    """How chains move; `mcetm.dynamics.langevin` has the equations."""

    sizes: tuple[float, ...]
    convention: Literal["paper", "empo"]
    gradient_clip: float | None
    move_clip: float | None

    def factors(self) -> Float[np.ndarray, "steps 2"]:
        """Of the gradient and of the noise in each move."""
        sizes = np.array(self.sizes)
        if self.convention == "paper":
            return np.stack([-sizes, np.sqrt(2.0 * sizes)], axis=1)
        return np.stack([-0.5 * sizes, -sizes], axis=1)


def sample(chains: Chains, moves: Moves, *, key: PRNGKeyArray) -> Float[Array, "members rows samples dim"]:
    """The last points of all chains: the reference that the fused samplers are held against."""
    members, rows, _, dim = chains.start.shape
    preconditioner = (
        jnp.ones((members, rows, dim), chains.start.dtype)
        if chains.preconditioner is None
        else chains.preconditioner
    )
    anchor, recovery = chains.anchor, chains.recovery
    of_chain = recovery and (recovery.centre, recovery.stiffness)
    of_row = (chains.context, anchor and (anchor.mean, anchor.spread), recovery and recovery.context)
    of_member = (
        (chains.weights, chains.biases, chains.last),
        anchor and anchor.weight,
        recovery and (recovery.weights, recovery.biases),
    )

    def energy(x: Array, of_chain: Any, of_row: Any, of_member: Any) -> Array:
        context, gaussian, encoder_context = of_row
        (weights, biases, last), residual_weight, encoder = of_member
        h, total = x, jnp.zeros((), x.dtype)
        for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            z = weight @ h + (context if layer == chains.entry else bias)
            if gaussian is not None and layer == 0:
                mean, spread = gaussian
                residual = (x - mean) / spread
                z = z + residual_weight @ jnp.arcsinh(residual)
                total = 0.5 * (residual**2).sum()
            h = _ACTIVATIONS[chains.activations[layer]](z)
        if recovery is not None:
            (first, *between, end), biases = encoder
            activate = _ACTIVATIONS[recovery.activation]
            code = activate(first @ x + encoder_context)
            for weight, bias in zip(between, biases, strict=True):
                code = activate(weight @ code + bias)
            centre, stiffness = of_chain
            total = total + 0.5 * stiffness * ((end @ code - centre) ** 2).sum()
        return total + last @ h

    over_samples = jax.vmap(jax.grad(energy), (0, 0, None, None))
    over_rows = jax.vmap(over_samples, (0, 0, 0, None))
    gradient = jax.vmap(over_rows)

    def move(x: Array, inputs: tuple[Array, Array]) -> tuple[Array, None]:
        (of_gradient, of_noise), step_key = inputs
        g = preconditioner[:, :, None] * gradient(x, of_chain, of_row, of_member)
        w = jax.random.normal(step_key, x.shape, x.dtype)
        if moves.gradient_clip is not None:
            g = jnp.clip(g, -moves.gradient_clip, moves.gradient_clip)
        delta = of_gradient * g + of_noise * chains.noise[:, None] * w
        if chains.pull is not None:
            # Backward Euler, as in `mcetm.dynamics.langevin`: the gradient's factor is minus the drift.
            strength = -of_gradient * chains.pull.stiffness[..., None] * preconditioner[:, :, None]
            delta = (delta + strength * (chains.pull.centre - x)) / (
                1.0 + strength * preconditioner[:, :, None]
            )
        if moves.move_clip is not None:
            delta = jnp.clip(delta, -moves.move_clip, moves.move_clip)
        x = x + preconditioner[:, :, None] * delta
        return (x if chains.box is None else jnp.clip(x, *chains.box)), None

    factors = jnp.asarray(moves.factors(), chains.start.dtype)
    return jax.lax.scan(move, chains.start, (factors, jax.random.split(key, len(factors))))[0]
