"""Langevin sampling: next states a second, and how much of the machine's matrix products that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from mcetm.dynamics import Backend, EnergyTransitionModel, Samples, TransitionModel
from mcetm.pipeline import make_config
from mcetm_experiments.bench.backends import LABELS, backends
from mcetm_experiments.bench.ceiling import matrix_ceiling
from mcetm_experiments.bench.clock import clock, compile_for
from mcetm_experiments.bench.eager import Eager, why_no_torch
from mcetm_experiments.bench.sheet import Sheet, Timed
from mcetm_experiments.bench.subjects import ACTION, OBS, energies, random_log
from mcetm_experiments.shared.models import ModelsConfig

COUNT = 10
"""N, samples of each member."""
_PARALLEL = 10_000
"""States at once, as in rollouts."""


def draw_samples(model: TransitionModel, obs: Array, action: Array, *, key: PRNGKeyArray) -> Samples:
    """As rollouts do it: so many states at once, the rest after them."""
    keys = jax.random.split(key, len(obs))
    draw = lambda row: model.draw(row[0], row[1], COUNT, key=row[2])  # noqa: E731
    return jax.lax.map(draw, (obs, action, keys), batch_size=min(len(obs), _PARALLEL))


def _as(backend: Backend) -> Callable[..., Samples]:
    def draw(model: EnergyTransitionModel, *arguments: Any, **options: Any) -> Samples:
        return draw_samples(replace(model, backend=backend), *arguments, **options)

    return draw


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {label: _as(backend) for backend, label in LABELS.items()}
"""How to draw N next states of every member for every state, with the signature of `draw_samples`: each
becomes a row, the fused sampler where it serves."""


def run_sampling(sheet: Sheet) -> None:
    """The paper's energies and chains (30 latent and 30 ambient steps), for a minibatch and for rollouts."""
    config = ModelsConfig.of(make_config("paper-empo", dataset="halfcheetah-medium"))
    members = config.energy.members
    ceiling = matrix_ceiling(sheet)
    flop = _flop(config.energy.width, config.energy.depth)
    log = random_log()
    obs, action = jnp.asarray(log.obs), jnp.asarray(log.action)
    missing = why_no_torch()
    for name, states in (("minibatch", 256), ("rollouts", 50_000)) if sheet.full else (("small", 64),):
        work = f"{name}: {members} × {states:,} × {COUNT} next states, K = 60"

        def figures(seconds: float, states: int = states) -> dict[str, float]:
            rate = members * states * COUNT / seconds
            share = {} if ceiling is None else {"share of the ceiling": rate * flop / ceiling}
            return {"next states/s": rate, **share}

        missing_here = {LABELS["fused"]} if "fused" not in backends(config) else set()
        for label, draw in IMPLEMENTATIONS.items():
            if label in missing_here:
                continue

            def measure(states: int = states, draw: Callable[..., Any] = draw) -> Timed:
                model = energies(config, log)
                some, key = (obs[:states], action[:states]), jax.random.key(0)
                made = compile_for(lambda model, o, a, k: draw(model, o, a, key=k), model, *some, key)
                seconds = clock(lambda: made.program(model, *some, key))
                memory = {} if made.gigabytes is None else {"GB": made.gigabytes}
                return Timed(seconds, made.seconds, {**figures(seconds.median), **memory})

            sheet.row(work, label, measure)
        if missing is None:

            def reference(states: int = states) -> Timed:
                eager = Eager(members=members)
                seconds = eager.clock(lambda: eager.sample(states, COUNT))
                return Timed(seconds, None, figures(seconds.median))

            sheet.row(work, Eager.NAME, reference)
    if missing is not None:
        sheet.note(missing)
    sheet.note(
        "The share counts the energy's matrix products alone: forward and back to the state, "
        f"{flop / 1e6:.1f} MFLOP for a next state; the ceiling is the fastest of the products above."
    )


def _flop(width: int, depth: int, steps: int = 60) -> float:
    """Of one chain: two operations for each weight, forward and once more for the gradient by the state."""
    weights = (2 * OBS + ACTION) * width + (depth - 1) * width**2 + width
    return 2.0 * 2.0 * weights * steps
