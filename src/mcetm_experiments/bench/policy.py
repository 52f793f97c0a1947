"""Policy optimisation: updates a second of an algorithm with its rollouts, for several seeds at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mcetm import UserError
from mcetm.agents import SAC, Agent, Plain, buffer_gigabytes
from mcetm.data import Transitions
from mcetm.pipeline import TrainConfig, make_config
from mcetm.pipeline.algorithms import ALGORITHMS, Recipe
from mcetm.pipeline.policy import Stage, make_stage
from mcetm_experiments.bench.backends import PLAIN, backends, using
from mcetm_experiments.bench.clock import Spread, from_history
from mcetm_experiments.bench.eager import Eager, EagerSAC, why_no_torch
from mcetm_experiments.bench.sheet import Measured, Sheet
from mcetm_experiments.bench.subjects import ACTION, models, random_log

_CHUNKS = 4
_SHOWN = ("sac", "mopo", "mobile", "mcetm")
_BASE = Recipe(
    "SAC",
    "log",
    settings=lambda config: config.sac,
    learner=lambda config, *arguments, **more: SACLearner.init(config.sac, *arguments, **more),
    target=lambda config, log: Plain(entropy_backup=True),
)
"""What the others are built on, without their ideas: not an algorithm for offline data, but the least that
any of them costs."""


def run_policy(sheet: Sheet, algos: Sequence[str] = (), seeds: Sequence[int] = ()) -> None:
    """One seed of each first, then more; MC-ETM for eight seeds too."""
    known = ["sac", *(name for name in ALGORITHMS if name != "bc")]
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
        for backend in backends(config.models) if _recipe(algo).needs == "energy" else [PLAIN]:

            def measure(a: str = algo, n: int = count, r: bool = refined, backend: str = backend) -> Measured:
                with using(backend):
                    return _ours(log, a, n, full=sheet.full, refined=r)

            sheet.row(work, backend, measure)
        if missing is None and count == 1 and algo in ("sac", "mcetm") and not refined:
            sheet.row(work, Eager.NAME, lambda a=algo, c=config: _eager(a, c))
    shown = _settings("mcetm", sheet.full, refined=False)
    rollout, sac = shown.policy.rollout, shown.policy.sac
    sheet.note(
        f"Networks of {sac.depth} × {sac.width}, minibatches of {sac.batch_size}; {rollout.batch:,} branch "
        f"states for {rollout.every:,} updates, horizon {rollout.horizon}, "
        f"M = {shown.models.energy.members}, N = {shown.policy.samples} where an algorithm "
        f"looks at several samples. Times are of {rollout.every:,} updates of all seeds with their rollouts."
    )
    if missing is not None:
        sheet.note(missing)


def _settings(algo: str, full: bool, *, refined: bool) -> TrainConfig:
    """The paper's models, or those of preset `fast`; on two cores those of `quick`."""
    preset = ("fast" if refined else "paper-empo") if full else "quick"
    config = make_config(preset, dataset="halfcheetah-medium", algo="mcetm" if algo == "sac" else algo)  # pyright: ignore[reportArgumentType]
    policy = config.policy
    if full:
        rollout = replace(policy.rollout, batch=5000, horizon=5, every=1000, retain=5)
        samples = 10 if algo in ("sac", "mcetm", "mcetm-td3bc", "mobile", "morel") else policy.samples
        policy = replace(policy, samples=samples, rollout=rollout)
    else:
        policy = replace(policy, rollout=replace(policy.rollout, batch=200, every=200))
    if algo == "rambo":  # its generations, four for one of the others
        policy = replace(policy, rollout=replace(policy.rollout, every=policy.rollout.every // 4))
    return replace(config, policy=policy)


def _label(algo: str, config: TrainConfig) -> str:
    if algo == "sac":
        return _BASE.label
    label = ALGORITHMS[algo].label
    if not algo.startswith("mcetm"):
        return label
    inference = config.models.inference
    chains = 60 if inference is None else inference.ambient.steps
    if inference is not None and inference.latent is not None:
        chains += inference.latent.steps
    return f"{label}, K = {chains}"


def prepare(
    log: Transitions, algo: str, *, seeds: int, full: bool, refined: bool = False
) -> tuple[Stage, Agent]:
    """An algorithm's stage, and fresh agents."""
    config = _settings(algo, full, refined=refined)
    recipe = _recipe(algo)
    world = None if recipe.needs == "log" else models(config.models, log).world(algo, config.policy)
    bounds = (-jnp.ones(ACTION), jnp.ones(ACTION))
    stage = make_stage(recipe, log, world, config.policy, bounds)
    return stage, eqx.filter_jit(stage.agents)(jnp.arange(seeds, dtype=jnp.int32))


def _recipe(algo: str) -> Recipe:
    return _BASE if algo == "sac" else ALGORITHMS[algo]


def _ours(log: Transitions, algo: str, seeds: int, *, full: bool, refined: bool) -> Measured:
    stage, agents = prepare(log, algo, seeds=seeds, full=full, refined=refined)
    chunk, imagines = stage.chunk, stage.between is not None
    gigabytes = {"GB imagined": buffer_gigabytes(agents)} if imagines else {}
    done = stage.fit(agents, steps=_CHUNKS * chunk, label=f"{_recipe(algo).label}, {seeds} seeds")
    seconds, compilation = from_history(done.history)
    share = {}
    if imagines:
        rollouts = float(np.median([line["between_seconds"] for line in done.history[1:]]))
        share = {"share of rollouts": rollouts / seconds.median}
    rate = chunk / seconds.median
    return Measured(
        seconds, compilation, {"updates/s": rate, "updates/s in all": rate * seeds, **share, **gigabytes}
    )


def _eager(algo: str, config: TrainConfig) -> Measured:
    """The same in eager PyTorch: some updates and one generation, from which the time of a chunk follows."""
    policy, energy = config.policy, config.models.energy
    candidates = 0 if algo == "sac" else energy.members * policy.samples
    sac = EagerSAC(width=policy.sac.width, candidates=candidates)
    updates = 10
    one = sac.clock(lambda: [sac.update(policy.sac.batch_size) for _ in range(updates)]).each(updates)
    chunk, rollouts = policy.rollout.every, 0.0
    if algo != "sac":
        chains = Eager(members=energy.members, width=energy.width, depth=energy.depth)
        inference = config.models.inference
        latent, ambient = 30, 30
        if inference is not None:
            latent = 0 if inference.latent is None else inference.latent.steps
            ambient = inference.ambient.steps
        step = chains.clock(
            lambda: chains.sample(policy.rollout.batch, policy.samples, latent=latent, ambient=ambient),
            repeats=1,
        )
        rollouts = policy.rollout.horizon * step.median
    whole = lambda update: chunk * update + rollouts  # noqa: E731
    seconds = Spread(whole(one.median), whole(one.low), whole(one.high), one.repeats)
    share = {} if algo == "sac" else {"share of rollouts": rollouts / seconds.median}
    rate = chunk / seconds.median
    return Measured(seconds, None, {"updates/s": rate, "updates/s in all": rate, **share})
