"""The multi-layer perceptron everything here is made of, written for one example."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Activation = Literal["relu", "silu", "gelu", "tanh"]
NetworkFactory = Callable[..., Any]
"""Makes a network: `factory(inputs, outputs, key=key)` is a module that maps one vector to another."""
Initialisation = Literal["uniform", "truncated-normal", "orthogonal", "small-end"]

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "tanh": jnp.tanh,
}


class Linear(eqx.Module):
    """x ↦ weight · x + bias."""

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"]

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        initialisation: Initialisation = "uniform",
        last: bool = False,
        key: PRNGKeyArray,
    ) -> None:
        """`uniform`: ±1/√inputs, biases too; `truncated-normal`: spread 1/(2√inputs), no bias.

        `orthogonal`: rows or columns of length √2, no bias; `small-end`: truncated-normal with biases of 0.1,
        and ±0.003 in the last layer.
        """
        scale = 1.0 / math.sqrt(max(1, inputs))
        weight_key, bias_key = jax.random.split(key)
        shape = (outputs, inputs)
        if initialisation == "uniform" or (initialisation == "small-end" and last):
            scale = scale if initialisation == "uniform" else 3e-3
            self.weight = jax.random.uniform(weight_key, shape, minval=-scale, maxval=scale)
            self.bias = jax.random.uniform(bias_key, (outputs,), minval=-scale, maxval=scale)
        elif initialisation == "orthogonal":
            self.weight = jax.nn.initializers.orthogonal(math.sqrt(2.0))(weight_key, shape)
            self.bias = jnp.zeros(outputs)
        else:
            self.weight = 0.5 * scale * jax.random.truncated_normal(weight_key, -2.0, 2.0, shape)
            self.bias = jnp.full(outputs, 0.1 if initialisation == "small-end" else 0.0)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Apply to one example."""
        return self.weight @ x + self.bias


class MLP(eqx.Module):
    """Hidden layers of one width, then a linear one."""

    layers: tuple[Linear, ...]
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        width: int,
        depth: int,
        activation: Activation = "relu",
        initialisation: Initialisation = "uniform",
        key: PRNGKeyArray,
    ) -> None:
        widths = [inputs, *[width] * depth, outputs]
        keys = jax.random.split(key, depth + 1)
        self.layers = tuple(
            Linear(below, above, initialisation=initialisation, last=i == depth, key=keys[i])
            for i, (below, above) in enumerate(itertools.pairwise(widths))
        )
        self.activation = activation

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Apply to one example."""
        for layer in self.layers[:-1]:
            x = self.activate(layer(x))
        return self.layers[-1](x)

    def activate(self, x: Float[Array, " width"]) -> Float[Array, " width"]:
        """The activation alone."""
        return _ACTIVATIONS[self.activation](x)


class LayerNormMLP(eqx.Module):
    """The same with every hidden layer standardised before its activation (Ba et al., 2016).

    A critic of this kind cannot grow without bound along a direction that no data hold down: what reaches its
    last layer has one length, whatever goes in (Ball et al., 2023).
    """

    layers: MLP
    scales: tuple[Float[Array, " width"], ...]
    shifts: tuple[Float[Array, " width"], ...]

    def __init__(self, inputs: int, outputs: int, *, width: int, depth: int, **more: Any) -> None:
        self.layers = MLP(inputs, outputs, width=width, depth=depth, **more)
        self.scales = tuple(jnp.ones(width) for _ in range(depth))
        self.shifts = tuple(jnp.zeros(width) for _ in range(depth))

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Apply to one example."""
        *hidden, last = self.layers.layers
        for layer, scale, shift in zip(hidden, self.scales, self.shifts, strict=True):
            x = self.layers.activate(scale * jax.nn.standardize(layer(x)) + shift)
        return last(x)


def as_mlp(network: Any) -> MLP | None:
    """The network as an MLP; None for one of a user's own, of whose layers nothing is known."""
    return network if type(network) is MLP else None
