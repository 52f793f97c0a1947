"""The multi-layer perceptron everything here is made of, written for one example."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Activation = Literal["relu", "silu", "gelu", "tanh"]
Initialisation = Literal["uniform", "truncated-normal"]

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
        self, inputs: int, outputs: int, *, initialisation: Initialisation = "uniform", key: PRNGKeyArray
    ) -> None:
        """`uniform`: ±1/√inputs, biases too; `truncated-normal`: spread 1/(2√inputs), no bias."""
        scale = 1.0 / math.sqrt(max(1, inputs))
        weight_key, bias_key = jax.random.split(key)
        if initialisation == "uniform":
            self.weight = jax.random.uniform(weight_key, (outputs, inputs), minval=-scale, maxval=scale)
            self.bias = jax.random.uniform(bias_key, (outputs,), minval=-scale, maxval=scale)
        else:
            self.weight = 0.5 * scale * jax.random.truncated_normal(weight_key, -2.0, 2.0, (outputs, inputs))
            self.bias = jnp.zeros(outputs)

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
            Linear(below, above, initialisation=initialisation, key=k)
            for below, above, k in zip(widths[:-1], widths[1:], keys, strict=True)
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
