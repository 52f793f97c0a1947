"""The one place where models meet the fused sampler, with all rows at once.

`draw` does for one (s, a) what `EnergyTransitionModel.draw` does member by member and sample by sample.
`ambient` and `latent` run the chains of an energy in training, which make its negatives. Under `vmap` rows
and members are gathered, so that one kernel runs them all. Where no kernel serves (another device, another
network), they say so, and the plain path runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from mcetm.dynamics.energy import AnchoredEnergy, Conditional, PlainEnergy
from mcetm.dynamics.kernel_chains import ambient_chains, latent_chains, moves, network_of, springs
from mcetm.dynamics.langevin import Energy as StateEnergy
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import Autoencoder
from mcetm.kernels.chains import Anchor, Chains, Moves, Pull, Recovery
from mcetm.kernels.hopper_plan import serves
from mcetm.nn.mlp import MLP
from mcetm.nn.scaling import frozen

if TYPE_CHECKING:
    from mcetm.dynamics.inference import EnergyTransitionModel

Sampler = Callable[..., Float[Array, "members rows samples dim"]]


def kernel(
    widths: Sequence[int],
    dim: int,
    below: Sequence[int] = (),
    encoder: Sequence[int] = (),
    *,
    anchored: bool = False,
) -> Sampler | None:
    """The kernel that serves such a network on this machine, if there is one and it is asked for.

    `widths` are the energy's hidden layers, `dim` what chains move, `below` a decoder's hidden layers,
    `encoder` those of a recovery term and its codes. `MCETM_FUSED=on` asks (docs/kernels.md).
    """
    if os.environ.get("MCETM_FUSED") != "on" or jax.default_backend() != "gpu":
        return None
    device = jax.devices()[0]
    if not str(getattr(device, "compute_capability", "")).startswith("9."):
        return None
    try:
        from mcetm.kernels import hopper
    except ImportError:  # this version of JAX has no such backend
        return None
    return hopper.sample if serves(widths, dim, below, encoder, anchored=anchored) else None


def sampler(model: EnergyTransitionModel) -> Sampler | None:
    """The kernel that serves all stages of this model, if there is one and it is asked for."""
    if not expressible(model):
        return None
    run = _ambient_kernel(model.members, model.space.box.low.shape[-1])
    below = _below(model)
    return run if run is None or below is None else _latent_kernel(model.members, below)


def expressible(model: EnergyTransitionModel) -> bool:
    """Whether this model's chains are those of a network that `kernels.chains` knows."""
    below = _below(model)
    return _in_states(model.members) and (below is None or _in_codes(model.members, below))


def ambient(
    langevin: Langevin,
    energy: StateEnergy,
    start: Float[Array, "samples dim"],
    *,
    unit: Float[Array, " dim"] | None,
    recovery: tuple[Autoencoder, Float[Array, "samples latent"], Float[Array, " samples"]] | None = None,
    key: PRNGKeyArray,
) -> Float[Array, "samples dim"] | None:
    """Where chains in the box of the energy's space end; None where no kernel serves.

    `recovery` is an autoencoder and, for each chain, a code and how strongly the state's own is drawn to it.
    """
    if not isinstance(energy, Conditional):
        return None
    run = _ambient_kernel(energy.energy, start.shape[-1], recovery and recovery[0].encoder)
    if run is None:
        return None
    noise = jnp.full(len(start), langevin.noise)
    chains = ambient_chains(
        _alone(energy.energy), energy.space, energy.obs, energy.action, start[None], noise
    )
    chains = replace(
        chains,
        unit=None if unit is None else unit[None, None],
        recovery=recovery and springs(energy.space, energy.obs, *recovery),
    )
    return _run(run, chains, moves(langevin), key)[0]


def latent(
    langevin: Langevin,
    energy: StateEnergy,
    autoencoder: Autoencoder,
    start: Float[Array, "samples latent"],
    pull: tuple[Float[Array, "samples latent"], Float[Array, " samples"]],
    offset: Float[Array, " dim"],
    *,
    key: PRNGKeyArray,
) -> Float[Array, "samples latent"] | None:
    """Where chains of codes end that are pulled; None where no kernel serves.

    `offset` is what is added to a decoded state, in the coordinates of the energy's space.
    """
    if not isinstance(energy, Conditional):
        return None
    run = _latent_kernel(energy.energy, autoencoder)
    if run is None:
        return None
    member, noise = _alone(energy.energy), jnp.full(len(start), langevin.noise)
    shift = offset * energy.space.scale.std
    chains = latent_chains(member, autoencoder, energy.obs, energy.action, start[None], noise, shift)
    centre, stiffness = pull
    chains = replace(chains, pull=Pull(centre[None, None], stiffness[None, None]))
    return _run(run, chains, moves(langevin), key)[0]


def draw(
    model: EnergyTransitionModel,
    obs: Float[Array, " obs"],
    action: Float[Array, " action"],
    noise: Float[Array, " samples"],
    keys: Key[Array, "members samples"],
    run: Sampler,
) -> tuple[Float[Array, "members samples obs"], Float[Array, "members samples"]]:
    """Next states of one row, a key each, and the energies they end at; `noise` is a factor per sample."""
    config, space = model.config, model.space
    members: Any = frozen(model.members)
    over_members = lambda f, *axes: eqx.filter_vmap(f, in_axes=(eqx.if_array(0), *axes))  # noqa: E731

    def starts(member: Any, keys: Key[Array, " samples"]) -> Array:
        one = lambda k, n: model._start(member, obs, action, n, key=jax.random.split(k, 3)[0])  # noqa: E731
        return jax.vmap(one)(keys, noise)

    def energies(member: Any, x: Float[Array, "samples obs"]) -> Array:
        return jax.vmap(lambda x: member(obs, action, space.decode(obs, x)))(x)

    x = start = over_members(starts, 0)(members, keys)
    latent_key, ambient_key = jax.random.split(jax.random.fold_in(keys[0, 0], 1))
    if model.autoencoder is not None and config.latent is not None:
        autoencoder = frozen(model.autoencoder)
        each = lambda f: jax.vmap(jax.vmap(f))  # noqa: E731
        decode = each(lambda z: space.box.clip(space.encode(obs, autoencoder.decode(z))))
        z = each(lambda x: autoencoder.encode(space.decode(obs, x)))(x)
        if config.start == "noise":
            z = jax.random.normal(jax.random.fold_in(latent_key, 1), z.shape)
            start = decode(z)
        chains = latent_chains(members, autoencoder, obs, action, z, noise * config.latent.noise)
        x = decode(_run(run, chains, moves(config.latent), latent_key))
    chains = ambient_chains(members, space, obs, action, x, noise * config.ambient.noise)
    x = _run(run, chains, moves(config.ambient), ambient_key)
    energy = over_members(energies, 0)(members, x)
    if config.accept_only_lower:
        before = over_members(energies, 0)(members, start)
        x = jnp.where((energy <= before)[..., None], x, start)
        energy = jnp.minimum(energy, before)
    return jax.vmap(jax.vmap(lambda x: space.decode(obs, x)))(x), energy


def _run(run: Sampler, chains: Chains, how: Moves, key: PRNGKeyArray) -> Float[Array, "members samples dim"]:
    """Run the chains of one row; under `vmap`, of all rows and of all networks together."""
    anchor, recovery = chains.anchor, chains.recovery
    rows = (
        (chains.start, chains.context, chains.unit, chains.pull),
        anchor and (anchor.mean, anchor.spread),
        recovery and (recovery.context, recovery.centre, recovery.stiffness),
    )
    network = (
        (chains.weights, chains.biases, chains.last),
        anchor and anchor.weight,
        recovery and (recovery.weights, recovery.biases),
    )
    alike = (chains.noise, chains.box)

    @jax.custom_batching.custom_vmap
    def together(rows: Any, network: Any, alike: Any, key: Array) -> Array:
        (start, context, unit, pull), gaussian, held = rows
        (weights, biases, last), residual, encoder = network
        noise, box = alike
        whole = replace(
            chains,
            start=start,
            weights=weights,
            biases=biases,
            last=last,
            context=context,
            noise=noise,
            unit=unit,
            box=box,
            pull=pull,
            anchor=None if gaussian is None else Anchor(residual, *gaussian),
            recovery=recovery and Recovery(*encoder, *held, activation=recovery.activation),
        )
        return run(whole, how, key=jax.random.wrap_key_data(key))

    @together.def_vmap
    def _gathered(size: int, batched: Any, *arguments: Any) -> tuple[Array, bool]:
        rows, network, alike, key = arguments
        of_rows, of_network, of_alike, of_key = batched
        if any(jax.tree.leaves(of_alike)):  # what all chains of a call share differs: one after the other
            take = lambda tree, which, i: jax.tree.map(lambda a, b: a[i] if b else a, tree, which)  # noqa: E731
            one = lambda i: together(*(take(t, b, i) for t, b in zip(arguments, batched, strict=True)))  # noqa: E731
            return jax.lax.map(one, jnp.arange(size)), True
        key = key[0] if of_key else key
        if any(jax.tree.leaves(of_network)):  # several networks: more members

            def side_by_side(leaf: Array, is_batched: bool) -> Array:
                leaf = leaf if is_batched else jnp.broadcast_to(leaf, (size, *leaf.shape))
                return leaf.reshape(-1, *leaf.shape[2:])

            end = together(
                jax.tree.map(side_by_side, rows, of_rows),
                jax.tree.map(side_by_side, network, of_network),
                alike,
                key,
            )
            return end.reshape(size, -1, *end.shape[1:]), True

        def gather(leaf: Array, is_batched: bool) -> Array:
            leaf = jnp.moveaxis(leaf, 0, 1) if is_batched else jnp.repeat(leaf[:, None], size, axis=1)
            return leaf.reshape(leaf.shape[0], -1, *leaf.shape[3:])

        end = together(jax.tree.map(gather, rows, of_rows), network, alike, key)
        return jnp.moveaxis(end.reshape(end.shape[0], size, -1, *end.shape[2:]), 1, 0), True

    arrays = jax.lax.stop_gradient((rows, network, alike, jax.random.key_data(key)))
    return jax.lax.stop_gradient(together(*arrays))[:, 0]


def _in_states(energy: Any) -> bool:
    """Whether chains of states under this energy can be written as `Chains`."""
    if not isinstance(energy, (PlainEnergy, AnchoredEnergy)):
        return False
    network: Any = energy.correction if isinstance(energy, AnchoredEnergy) else energy.network
    return type(network) is MLP and network.activation != "gelu"  # a user's own network is any function


def _in_codes(energy: Any, autoencoder: Autoencoder) -> bool:
    """Whether chains of codes can."""
    return isinstance(energy, PlainEnergy) and _in_states(energy) and autoencoder.decoder.activation != "gelu"


def _ambient_kernel(energy: Any, dim: int, encoder: MLP | None = None) -> Sampler | None:
    if not _in_states(energy) or (encoder is not None and encoder.activation == "gelu"):
        return None
    above = () if encoder is None else [layer.bias.shape[-1] for layer in encoder.layers]
    anchored = isinstance(energy, AnchoredEnergy)
    return kernel(_widths(network_of(energy)), dim, encoder=above, anchored=anchored)


def _latent_kernel(energy: Any, autoencoder: Autoencoder) -> Sampler | None:
    if not _in_codes(energy, autoencoder):
        return None
    dim = autoencoder.code_scale.mean.shape[-1]
    return kernel(_widths(network_of(energy)), dim, _widths(autoencoder.decoder))


def _below(model: EnergyTransitionModel) -> Autoencoder | None:
    """Whose decoder lies below the energies in this model's latent stage."""
    return None if model.config.latent is None else model.autoencoder


def _alone(energy: Any) -> Any:
    """An ensemble of one."""
    return jax.tree.map(lambda leaf: leaf[None] if eqx.is_array(leaf) else leaf, energy)


def _widths(network: MLP) -> list[int]:
    return [layer.bias.shape[-1] for layer in network.layers[:-1]]
