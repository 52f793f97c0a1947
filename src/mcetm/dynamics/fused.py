"""The backend `fused` of the sampler: where models meet the kernels, with all rows at once.

Under `vmap` rows and members are gathered, so that one kernel runs all the chains of a training step or of a
rollout. Where no kernel serves (another device, another network), the plain sampler runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from mcetm.dynamics.energy import Conditional, Energy
from mcetm.dynamics.kernel_chains import ambient_chains, latent_chains, moves, network_of, springs
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import Autoencoder
from mcetm.dynamics.sampler import Sampler, Spring
from mcetm.kernels.chains import Anchor, Chains, Moves, Pull, Recovery
from mcetm.kernels.hopper_plan import serves
from mcetm.nn.mlp import MLP

Kernel = Callable[..., Float[Array, "members rows samples dim"]]


def kernel(
    widths: Sequence[int],
    dim: int,
    below: Sequence[int] = (),
    encoder: Sequence[int] = (),
    *,
    anchored: bool = False,
) -> Kernel | None:
    """The kernel that serves such a network on this machine, if there is one.

    `widths` are the energy's hidden layers, `dim` what chains move, `below` a decoder's hidden layers,
    `encoder` those of a recovery term and its codes.
    """
    if jax.default_backend() != "gpu":
        return None
    device = jax.devices()[0]
    if not str(getattr(device, "compute_capability", "")).startswith("9."):
        return None
    try:
        from mcetm.kernels import hopper
    except ImportError:  # this version of JAX has no such backend
        return None
    return hopper.sample if serves(widths, dim, below, encoder, anchored=anchored) else None


class FusedSampler(Sampler):
    """All chains in one kernel; those that no kernel serves as the plain sampler runs them."""

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
        """Where chains of states end."""
        member, encoder = energy.energy, None if recovery is None else recovery[0].encoder
        run = _ambient_kernel(member, start.shape[-1], encoder)
        if run is None:
            return super().ambient(langevin, energy, start, noise=noise, recovery=recovery, keys=keys)
        amount = _amounts(langevin, noise, len(start))
        chains = ambient_chains(_alone(member), energy.space, energy.obs, energy.action, start[None], amount)
        if recovery is not None:
            autoencoder, spring = recovery
            chains = replace(chains, recovery=springs(energy.space, energy.obs, autoencoder, *spring))
        return _run(run, chains, moves(langevin), keys[0])[0]

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
        """Where chains of codes end."""
        member = energy.energy
        run = _latent_kernel(member, autoencoder)
        if run is None:
            options: dict[str, Any] = {"noise": noise, "pull": pull, "offset": offset, "keys": keys}
            return super().latent(langevin, energy, autoencoder, start, **options)
        amount = _amounts(langevin, noise, len(start))
        shift = None if offset is None else offset * energy.space.scale.std
        alone: Any = _alone(member)
        chains = latent_chains(alone, autoencoder, energy.obs, energy.action, start[None], amount, shift)
        if pull is not None:
            chains = replace(chains, pull=Pull(pull.centre[None, None], pull.stiffness[None, None]))
        return _run(run, chains, moves(langevin), keys[0])[0]


FUSED = FusedSampler()


def is_supported(energy: Energy, autoencoder: Autoencoder | None = None) -> bool:
    """Whether these chains, of states or of the codes of an autoencoder, are ones that kernels know."""
    known = energy.mlp is not None and energy.mlp.activation != "gelu"
    if autoencoder is None:
        return known
    return known and energy.anchor is None and autoencoder.decoder.activation != "gelu"


def _run(run: Kernel, chains: Chains, how: Moves, key: PRNGKeyArray) -> Float[Array, "members samples dim"]:
    """Run the chains of one row; under `vmap`, of all rows and of all networks together."""
    anchor, recovery = chains.anchor, chains.recovery
    rows = (
        (chains.start, chains.context, chains.preconditioner, chains.pull),
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
        (start, context, preconditioner, pull), gaussian, held = rows
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
            preconditioner=preconditioner,
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


def _ambient_kernel(energy: Energy, dim: int, encoder: MLP | None) -> Kernel | None:
    if not is_supported(energy) or (encoder is not None and encoder.activation == "gelu"):
        return None
    above = () if encoder is None else [layer.bias.shape[-1] for layer in encoder.layers]
    return kernel(_widths(network_of(energy)), dim, encoder=above, anchored=energy.anchor is not None)


def _latent_kernel(energy: Energy, autoencoder: Autoencoder) -> Kernel | None:
    if not is_supported(energy, autoencoder):
        return None
    dim = autoencoder.code_scale.mean.shape[-1]
    return kernel(_widths(network_of(energy)), dim, _widths(autoencoder.decoder))


def _amounts(langevin: Langevin, noise: Float[Array, " samples"] | None, count: int) -> Array:
    """The factor on the noise of each chain."""
    return jnp.full(count, langevin.noise) if noise is None else noise


def _alone(energy: Any) -> Any:
    """An ensemble of one."""
    return jax.tree.map(lambda leaf: leaf[None] if eqx.is_array(leaf) else leaf, energy)


def _widths(network: MLP) -> list[int]:
    return [layer.bias.shape[-1] for layer in network.layers[:-1]]
