"""Policy optimisation: updates a second of an algorithm with its rollouts, for several seeds at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mcetm import UserError
from mcetm.agents import AgentState, ModelBased, OnSAC, Stage, buffer_gigabytes, make_stage
from mcetm.data import Transitions
from mcetm.dynamics import Backend
from mcetm.pipeline import TrainConfig, algorithm_names, make_config
from mcetm_experiments.bench.backends import LABELS, backends
from mcetm_experiments.bench.clock import Spread, from_history
from mcetm_experiments.bench.eager import Eager, EagerSAC, why_no_torch
from mcetm_experiments.bench.sheet import Sheet, Timed
from mcetm_experiments.bench.subjects import ACTION, random_log, world
from mcetm_experiments.shared.models import ModelsConfig

_CHUNKS = 4
_SHOWN = ("sac", "mopo", "mobile", "mcetm")
_SEVERAL = ("mcetm", "mcetm-td3bc", "mobile", "morel")
"""Who looks at several samples of each member at full size."""


class PlainSAC(OnSAC):
    """What the others are built on, without their ideas.

    Not an algorithm for offline data, but the least that any of them costs.
    """

    label: ClassVar[str] = "SAC"
    entropy_backup: ClassVar[bool] = True


def run_policy(sheet: Sheet, algos: Sequence[str] = (), seeds: Sequence[int] = ()) -> None:
    """One seed of each first, then more; MC-ETM for eight seeds too."""
    known = ["sac", *(name for name in algorithm_names() if name != "bc")]
    for name in algos:
        if name not in known:
            raise UserError(f"There is no algorithm '{name}' to measure; there are {', '.join(known)}.")
    if any(count < 1 for count in seeds):
        raise UserError("The numbers of seeds must be at least 1.")
    log = random_log(100_000 if sheet.full else 20_000)
    # At full size MC-ETM twice: with the paper's chains, and with the short ones of preset `fast`.
    chosen = [
        (algo, refined)
        for algo in algos or _SHOWN
        for refined in ((False, True) if algo == "mcetm" else (False,))
    ]
    plan = [
        (algo, refined, count)
        for count in seeds or (1, 8, 5, 16)
        for algo, refined in chosen
        if (sheet.full or not refined) and (seeds or count != 8 or algo == "mcetm")
    ]
    missing = why_no_torch()
    for algo, refined, count in plan:
        config = _settings(algo, sheet.full, refined=refined)
        work = f"{_label(algo, config)}, {count} seed{'s' * (count > 1)}"
        energetic = config.algorithm.model_based and config.model.has_energy
        choices: list[Backend] = backends(ModelsConfig.of(config)) if energetic else ["plain"]
        for backend in choices:
            chosen_too: dict[str, Any] = {"full": sheet.full, "refined": refined, "backend": backend}
            sheet.row(
                work, LABELS[backend], lambda a=algo, n=count, more=chosen_too: _ours(log, a, n, **more)
            )
        if missing is None and count == 1 and algo in ("sac", "mcetm") and not refined:
            sheet.row(work, Eager.NAME, lambda a=algo, c=config: _eager(a, c, full=sheet.full))
    shown = _settings("mcetm", sheet.full, refined=False)
    algorithm = cast(ModelBased, shown.algorithm)
    rollout, sac = algorithm.rollout, algorithm.learner
    sheet.note(
        f"Networks of {sac.depth} × {sac.width}, minibatches of {sac.batch_size}; {rollout.batch:,} branch "
        f"states for {rollout.every:,} updates, horizon {rollout.horizon}, "
        f"M = {shown.model.members}, N = {algorithm.samples} where an algorithm "
        f"looks at several samples. Times are of {rollout.every:,} updates of all seeds with their rollouts."
    )
    if missing is not None:
        sheet.note(missing)


def _settings(algo: str, full: bool, *, refined: bool) -> TrainConfig:
    """The paper's models, or those of preset `fast`; on two cores those of `quick`."""
    preset = ("fast" if refined else "paper-empo") if full else "quick"
    config = make_config(preset, dataset="halfcheetah-medium", algo="mcetm" if algo == "sac" else algo)
    if algo == "sac":
        plain = PlainSAC(learner=cast(ModelBased, config.algorithm).learner)
        return replace(config, algorithm=plain, label=plain.label)
    if not config.algorithm.model_based:
        return config
    algorithm = cast(ModelBased, config.algorithm)
    sizes: dict[str, Any] = {"batch": 5000, "horizon": 5, "retain": 5} if full else {"batch": 200}
    rollout = replace(algorithm.rollout, every=_every(algo, full), **sizes)
    samples = 10 if full and algo in _SEVERAL else algorithm.samples
    return replace(config, algorithm=replace(algorithm, samples=samples, rollout=rollout))


def _every(algo: str, full: bool) -> int:
    """Updates of a chunk; RAMBO has four generations for one of the others."""
    return (1000 if full else 200) // (4 if algo == "rambo" else 1)


def _label(algo: str, config: TrainConfig) -> str:
    if not algo.startswith("mcetm"):
        return config.label
    inference = config.model.inference
    chains = 60 if inference is None else inference.ambient.steps
    if inference is not None and inference.latent is not None:
        chains += inference.latent.steps
    return f"{config.label}, K = {chains}"


def prepare(
    log: Transitions,
    algo: str,
    *,
    seeds: int,
    full: bool,
    refined: bool = False,
    backend: Backend = "plain",
) -> tuple[Stage, AgentState]:
    """An algorithm's stage, and fresh agents."""
    config = _settings(algo, full, refined=refined)
    if backend != "plain":
        config = replace(config, model=replace(config.model, backend=backend))
    around = world(config, log) if config.algorithm.model_based else None
    bounds = (-jnp.ones(ACTION), jnp.ones(ACTION))
    stage = make_stage(config.algorithm, log, around, bounds)
    # What learns from the log alone has no generations: as many updates as between those of the others.
    stage = stage if stage.between else replace(stage, chunk=_every(algo, full))
    return stage, eqx.filter_jit(stage.agents)(jnp.arange(seeds, dtype=jnp.int32))


def _ours(log: Transitions, algo: str, seeds: int, *, full: bool, **more: Any) -> Timed:
    stage, agents = prepare(log, algo, seeds=seeds, full=full, **more)
    chunk, imagines = stage.chunk, stage.between is not None
    gigabytes = {"GB imagined": buffer_gigabytes(agents)} if imagines else {}
    done = stage.train(agents, steps=_CHUNKS * chunk, label=f"{stage.algorithm.label}, {seeds} seeds")
    seconds, compilation = from_history(done.history)
    share = {}
    if imagines:
        rollouts = float(np.median([line["between_seconds"] for line in done.history[1:]]))
        share = {"share of rollouts": rollouts / seconds.median}
    rate = chunk / seconds.median
    return Timed(
        seconds, compilation, {"updates/s": rate, "updates/s in all": rate * seeds, **share, **gigabytes}
    )


def _eager(algo: str, config: TrainConfig, *, full: bool) -> Timed:
    """The same in eager PyTorch: some updates and one generation, from which the time of a chunk follows."""
    algorithm, model = cast(ModelBased, config.algorithm), config.model
    candidates = 0 if algo == "sac" else model.members * algorithm.samples
    sac = EagerSAC(width=algorithm.learner.width, candidates=candidates)
    updates = 10
    one = sac.clock(lambda: [sac.update(algorithm.learner.batch_size) for _ in range(updates)]).each(updates)
    chunk, rollouts = _every(algo, full), 0.0
    if algo != "sac":
        chains = Eager(members=model.members, width=model.width, depth=model.depth)
        latent, ambient = 30, 30
        if model.inference is not None:
            latent = 0 if model.inference.latent is None else model.inference.latent.steps
            ambient = model.inference.ambient.steps
        rollout = algorithm.rollout
        step = chains.clock(
            lambda: chains.sample(rollout.batch, algorithm.samples, latent=latent, ambient=ambient),
            repeats=1,
        )
        rollouts = rollout.horizon * step.median
    whole = lambda update: chunk * update + rollouts  # noqa: E731
    seconds = Spread(whole(one.median), whole(one.low), whole(one.high), one.repeats)
    share = {} if algo == "sac" else {"share of rollouts": rollouts / seconds.median}
    rate = chunk / seconds.median
    return Timed(seconds, None, {"updates/s": rate, "updates/s in all": rate, **share})
