"""Small problems that every sampler must solve alike."""

from __future__ import annotations

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mcetm.kernels.chains import Activation, Anchor, Chains, Moves, Pull, Recovery

MOVES = Moves((0.1, 0.05), "paper", gradient_clip=10.0, move_clip=0.5)


def problem(kind: str, *, members: int = 1, rows: int = 3, samples: int = 2, noise: float = 0.0) -> Chains:
    """`plain`: ReLU in a box; `anchored`: SiLU around a Gaussian; `latent`: a decoder below the network."""
    keys = iter(jax.random.split(jax.random.key(0), 32))
    draw = lambda *shape: jax.random.normal(next(keys), shape)  # noqa: E731
    dim, width = 4, 72
    widths = [dim, *([20] if kind == "latent" else []), width, width]
    spread = 0.5 + jax.random.uniform(next(keys), (members, rows, dim))
    anchored = kind == "anchored"
    decoder: tuple[Activation, ...] = ("relu",) if kind == "latent" else ()
    network: tuple[Activation, ...] = ("silu", "silu") if anchored else ("relu", "relu")
    return Chains(
        start=draw(members, rows, samples, dim),
        weights=tuple(
            1.2 * draw(members, above, below) / np.sqrt(below) for below, above in itertools.pairwise(widths)
        ),
        biases=tuple(0.3 * draw(members, above) for above in widths[1:]),
        last=draw(members, width) / np.sqrt(width),
        context=draw(members, rows, width),
        noise=jnp.full(samples, noise),
        preconditioner=spread if anchored else None,
        box=(jnp.full(dim, -1.5), jnp.full(dim, 1.5)) if kind == "plain" else None,
        anchor=Anchor(0.3 * draw(members, width, dim), draw(members, rows, dim), spread)
        if anchored
        else None,
        activations=decoder + network,
        entry=1 if kind == "latent" else 0,
    )


def pulled(chains: Chains) -> Chains:
    """The same chains, each on a spring of its own; at the stiffest an explicit step would diverge."""
    keys = jax.random.split(jax.random.key(1))
    stiffness = 100.0 * jax.random.uniform(keys[0], chains.start.shape[:-1]).at[:, 0].set(0.0)
    pull = Pull(chains.start + jax.random.normal(keys[1], chains.start.shape), stiffness)
    return eqx.tree_at(lambda c: c.pull, chains, pull, is_leaf=lambda leaf: leaf is None)


def recovering(chains: Chains, activation: Activation = "relu") -> Chains:
    """The same chains, each drawn to a code of its own by an encoder with two hidden layers."""
    keys = iter(jax.random.split(jax.random.key(2), 8))
    draw = lambda *shape: jax.random.normal(next(keys), shape)  # noqa: E731
    members, rows, samples, dim = chains.start.shape
    widths = [dim, 24, 40, 3]
    recovery = Recovery(
        tuple(
            1.2 * draw(members, above, below) / np.sqrt(below) for below, above in itertools.pairwise(widths)
        ),
        (0.3 * draw(members, widths[2]),),
        draw(members, rows, widths[1]),
        draw(members, rows, samples, widths[3]),
        3.0 * jax.random.uniform(next(keys), (members, rows, samples)),
        activation,
    )
    return eqx.tree_at(lambda c: c.recovery, chains, recovery, is_leaf=lambda leaf: leaf is None)
