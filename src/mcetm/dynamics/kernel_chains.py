"""Models as the plain arrays of `kernels.chains`: networks, scales and (s, a) folded together, row by row."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mcetm.dynamics.energy import Energy, PlainEnergy
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import Autoencoder
from mcetm.dynamics.space import Space
from mcetm.kernels.chains import Anchor, Chains, Moves, Recovery
from mcetm.nn.mlp import MLP


def moves(langevin: Langevin) -> Moves:
    """A sampler's settings, as the kernels take them."""
    return Moves(
        tuple(float(size) for size in langevin.step_sizes()),
        langevin.convention,
        langevin.gradient_clip,
        langevin.move_clip,
    )


def ambient_chains(
    members: Energy,
    space: Space,
    obs: Float[Array, " obs"],
    action: Float[Array, " action"],
    start: Float[Array, "members samples obs"],
    noise: Float[Array, " samples"],
) -> Chains:
    """Chains in the coordinates of `space`, one row."""
    network = network_of(members)
    dim, anchor, preconditioner = obs.shape[-1], None, None

    def first_layer_of(member: Any) -> tuple[Array, Array, Array | None]:
        """Of the first layer: the weights of x, of the residual, and what (s, a) and x = 0 bring to it."""
        first = network_of(member).layers[0]
        if member.anchor is not None:
            before, target = member.anchor.inputs.pair(obs, action), member.anchor.inputs.obs
            origin = target.normalize(space.decode(obs, jnp.zeros_like(obs)))
        else:
            before, target = _before(member, obs, action), member.space.scale
            origin = member.space.encode(obs, space.decode(obs, jnp.zeros_like(obs)))
        weight = first.weight[:, len(before) : len(before) + dim]
        context = first.weight[:, : len(before)] @ before + first.bias + weight @ origin
        rest = None if member.anchor is None else first.weight[:, len(before) + dim :]
        return weight * (space.scale.std / target.std), context, rest

    weight, context, rest = eqx.filter_vmap(first_layer_of)(members)
    if members.anchor is not None:
        assert rest is not None  # noqa: S101 (it is there for these energies)
        mean, std = eqx.filter_vmap(lambda anchor: anchor.predict(obs, action))(members.anchor)
        preconditioner = (std / space.scale.std)[:, None]
        anchor = Anchor(rest, jax.vmap(lambda s: space.encode(obs, s))(mean)[:, None], preconditioner)
    hidden = network.layers[1:-1]
    return Chains(
        start[:, None],
        (weight, *[layer.weight for layer in hidden]),
        (jnp.zeros_like(context), *[layer.bias for layer in hidden]),
        network.layers[-1].weight[:, 0],
        context[:, None],
        noise,
        preconditioner,
        (space.box.low, space.box.high),
        anchor,
        (network.activation,) * (len(network.layers) - 1),
    )


def latent_chains(
    members: PlainEnergy,
    autoencoder: Autoencoder,
    obs: Float[Array, " obs"],
    action: Float[Array, " action"],
    start: Float[Array, "members samples latent"],
    noise: Float[Array, " samples"],
    shift: Float[Array, " obs"] | None = None,
) -> Chains:
    """Chains of codes: decoder and energy as one deeper network.

    The decoder's last layer and the energy's first are both linear, and become one. `shift` is added to a
    decoded state, in raw units.
    """
    decoder, codes, states = autoencoder.decoder, autoencoder.code_scale, autoencoder.state_scale
    lowest, *middle, end = decoder.layers
    count = start.shape[0]
    shared = lambda a: jnp.broadcast_to(a, (count, *a.shape))  # noqa: E731

    def joined(member: PlainEnergy) -> tuple[Array, Array]:
        first, before = network_of(member).layers[0], _before(member, obs, action)
        weight = first.weight[:, len(before) :]
        at_zero = states.denormalize(end.bias)
        origin = member.space.encode(obs, at_zero if shift is None else at_zero + shift)
        context = first.weight[:, : len(before)] @ before + first.bias + weight @ origin
        return weight @ ((states.std / member.space.scale.std)[:, None] * end.weight), context

    weight, context = eqx.filter_vmap(joined)(members)
    network = network_of(members)
    hidden = network.layers[1:-1]
    return Chains(
        start[:, None],
        (
            shared(lowest.weight * codes.std),
            *[shared(layer.weight) for layer in middle],
            weight,
            *[layer.weight for layer in hidden],
        ),
        (
            shared(lowest.bias + lowest.weight @ codes.mean),
            *[shared(layer.bias) for layer in middle],
            jnp.zeros_like(context),
            *[layer.bias for layer in hidden],
        ),
        network.layers[-1].weight[:, 0],
        context[:, None],
        noise,
        None,
        None,
        None,
        (decoder.activation,) * (len(decoder.layers) - 1) + (network.activation,) * (len(network.layers) - 1),
        entry=len(decoder.layers) - 1,
    )


def springs(
    space: Space,
    obs: Float[Array, " obs"],
    autoencoder: Autoencoder,
    centre: Float[Array, "samples latent"],
    stiffness: Float[Array, " samples"],
) -> Recovery:
    """Springs in the codes, one member and one row; all scales are part of the first and the last layer."""
    states, codes = autoencoder.state_scale, autoencoder.code_scale
    first, *between, end = autoencoder.encoder.layers
    origin = states.normalize(space.decode(obs, jnp.zeros_like(obs)))
    weights = (
        first.weight * (space.scale.std / states.std),
        *[layer.weight for layer in between],
        end.weight / codes.std[:, None],
    )
    return Recovery(
        tuple(weight[None] for weight in weights),
        tuple(layer.bias[None] for layer in between),
        first(origin)[None, None],
        (centre - codes.normalize(end.bias))[None, None],
        stiffness[None, None],
        autoencoder.encoder.activation,
    )


def network_of(energy: Energy) -> MLP:
    """The network along which chains move."""
    assert energy.mlp is not None  # noqa: S101 (asked of energies that a kernel serves)
    return energy.mlp


def _before(energy: PlainEnergy, obs: Array, action: Array) -> Float[Array, " inputs"]:
    """What the network sees of (s, a)."""
    pair = energy.inputs.pair(obs, action)
    return pair if energy.trunk is None else energy.trunk.activate(energy.trunk(pair))
