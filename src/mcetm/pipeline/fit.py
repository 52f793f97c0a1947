"""`fit`: the one way to train a model or an agent from its settings."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Any, overload

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from mcetm.agents import Agent, Algorithm
from mcetm.arguments import MOST_SEED, path_of, require, whole
from mcetm.data.transitions import Transitions
from mcetm.dynamics import ModelSettings, TransitionModel, World
from mcetm.errors import UserError
from mcetm.nn.mlp import NetworkFactory
from mcetm.pipeline.lock import locked
from mcetm.training import Callback
from mcetm.training.devices import on_devices
from mcetm.training.sizes import check_sizes

MOST_SEEDS = 10_000
"""Agents that are trained in one program, at most."""


@overload
def fit(
    settings: ModelSettings,
    train: Transitions,
    *,
    holdout: Transitions | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    network: NetworkFactory | None = None,
    devices: int | Sequence[Any] | None = None,
    share_rows: bool = False,
) -> TransitionModel: ...


@overload
def fit(
    settings: Algorithm,
    train: Transitions,
    *,
    holdout: Transitions | None = None,
    world: World | None = None,
    seed: int = 0,
    seeds: int | None = None,
    folder: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    network: NetworkFactory | None = None,
    devices: int | Sequence[Any] | None = None,
    share_rows: bool = False,
) -> Agent: ...


def fit(
    settings: Any,
    train: Transitions,
    *,
    holdout: Transitions | None = None,
    world: World | None = None,
    seed: int = 0,
    seeds: int | None = None,
    folder: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    network: NetworkFactory | None = None,
    devices: int | Sequence[Any] | None = None,
    share_rows: bool = False,
) -> Any:
    """Train a transition model or an agent.

    **Arguments:**

    - `settings`: what to train, such as `ManifoldETM(members=3)` or `MCETM(penalty=1.0)`.
    - `train`: the log.
    - `holdout`: held-out episodes, for models; by default a tenth of the log is held out.
    - `world`: what a model-based algorithm imagines in; see `World.of`.
    - `seed`: of all that is random; for an agent, the first of its seeds.
    - `seeds`: how many agents to train, all in one program; 1 by default.
    - `folder`: where metrics and checkpoints are kept. A training that was stopped goes on from there, bit
      for bit. None writes nothing.
    - `callbacks`: each gets the metrics between chunks of steps, and ends the training by returning True.
    - `network`: makes the networks, `network(inputs, outputs, key=key)`, instead of our MLPs: a model's
      members, or actor and critics. It is not written down: to read a folder again, give it again.
    - `devices`: how many devices share the seeds, or the members of a model, or which; JAX's own choice, one,
      by default. Each has equally many: 6 seeds use 3 of 4 devices. The log is on every one of them.
    - `share_rows`: have a part of the log's rows on each of these devices instead; the numbers stay the same.

    **Returns:** the trained model, or an `Agent` with a policy for each seed.
    """
    if isinstance(settings, type) or not isinstance(getattr(settings, "trains_agents", None), bool):
        raise UserError("fit takes settings, such as mcetm.BC(), or a model: fit(mcetm.BC(), log).")
    require("train", train, "a log (Transitions)", Transitions)
    require("holdout", holdout, "a log (Transitions)", Transitions, NoneType)
    require("world", world, "a World", World, NoneType)
    for name, widths in (
        ("holdout", None if holdout is None else (holdout.obs_dim, holdout.action_dim)),
        ("world", None if world is None else world.widths),
    ):
        if widths is not None and widths != (train.obs_dim, train.action_dim):
            raise UserError(
                f"'{name}' is of {widths[0]} observations and {widths[1]} actions, and the log has "
                f"{train.obs_dim} and {train.action_dim}."
            )
    whole("seed", seed)
    if seeds is not None:
        whole("seeds", seeds, least=1, most=min(MOST_SEEDS, MOST_SEED - seed + 1))
    require("callbacks", callbacks, "a list of functions", Sequence)
    if any(not callable(one) for one in (*callbacks, *(() if network is None else (network,)))):
        raise UserError("callbacks= and network= are functions, and something else was given.")
    if settings.trains_agents:
        train.require("action", *(() if settings.clones_only else ("reward",)))
    check_sizes({type(settings).__name__: settings}, train, seeds=seeds or 1)
    where = None if folder is None else path_of("folder", folder)
    with (
        contextlib.nullcontext() if where is None else locked(where),
        on_devices(devices, share_rows=share_rows),
    ):
        made = None if network is None else _checked(network)
        return _fit(settings, train, holdout, world, seed, seeds, where, callbacks, made)


def _checked(network: NetworkFactory) -> NetworkFactory:
    """The same, refusing what is no network where it is made."""

    def make(inputs: int, outputs: int, *, key: PRNGKeyArray) -> Any:
        try:
            made = network(inputs, outputs, key=key)
        except TypeError as error:
            raise UserError(
                f"network= is called with its inputs, its outputs and key=, and that failed: {error}."
            ) from None
        if not callable(made):
            raise UserError(f"network= should make what can be called; it made {type(made).__name__}.")
        given = jax.ShapeDtypeStruct((inputs,), jnp.float32)
        found = getattr(eqx.filter_eval_shape(made, given), "shape", ())
        if found != (outputs,):
            gives = "x".join(map(str, found)) or "no vector"
            raise UserError(
                f"network= should make networks from {inputs} numbers to {outputs}, and this one gives "
                f"{gives}."
            )
        return made

    return make


def _fit(
    settings: Any,
    train: Transitions,
    holdout: Transitions | None,
    world: World | None,
    seed: int,
    seeds: int | None,
    where: Path | None,
    callbacks: Sequence[Callback],
    network: NetworkFactory | None,
) -> Any:
    if settings.trains_agents:
        numbers = range(seed, seed + (1 if seeds is None else seeds))
        return settings.fit(
            train, world=world, seeds=numbers, folder=where, callbacks=callbacks, network=network
        )
    if seeds is not None or world is not None:
        raise UserError("A model is trained once and in no world; seeds= and world= are for agents.")
    if holdout is None:
        train, holdout = train.split(0.1, seed=seed)
    return settings.fit(train, holdout=holdout, seed=seed, folder=where, callbacks=callbacks, network=network)
