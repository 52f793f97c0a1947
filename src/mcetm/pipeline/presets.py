"""Presets: settings as data. `quick` is minutes on two cores, `fast` our best, `paper` the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mcetm.agents.bc import BCConfig
from mcetm.agents.iql import IQLConfig
from mcetm.agents.rollout import RolloutConfig
from mcetm.agents.sac import SACConfig
from mcetm.agents.td3 import TD3Config
from mcetm.dynamics import (
    ANCHORED,
    PAPER,
    PAPER_EMPO,
    REFINE,
    STANDARD,
    AutoencoderConfig,
    CalibrationConfig,
    EnergyConfig,
    GaussianConfig,
    HeadConfig,
    InferenceConfig,
    Langevin,
)
from mcetm.errors import UserError
from mcetm.pipeline.config import Algo, ModelsConfig, PolicyConfig, TrainConfig

PRESETS = ("quick", "fast", "paper", "paper-empo")


@dataclass(frozen=True)
class _Own:
    """What an algorithm has otherwise than its preset, on every dataset."""

    samples: int | None = None
    """N, next states of each member."""
    sac: Mapping[str, Any] = field(default_factory=dict)
    fast: Mapping[str, Any] = field(default_factory=dict)
    """Of SAC, in the preset `fast` alone."""
    literal: Mapping[str, Any] = field(default_factory=dict)
    """Of SAC, in the paper's presets alone."""
    quantile: float | None = None
    """Of held-out data, where δ is; not in the paper's presets."""


_QUICKER = {"actor_rate": 3e-4}  # `fast` makes a tenth of the published updates
_FIXED = {**_QUICKER, "temperature": 0.2}  # MOBILE's on hopper, here for all tasks: one setting
_DEEP = {"depth": 3, "actor_first": True, "cosine": False}
_FREE = {**_DEEP, "most_temperature": None}  # the reference codes of CQL and COMBO do not bound it
# One sample is the one that rollouts go on with: who has `samples=1` looks at no others. Published numbers of
# updates are given where they are not the 3 M of most.
_OWN: dict[Algo, _Own] = {
    "mcetm": _Own(fast=_FIXED),
    "mobile": _Own(fast=_QUICKER),
    "mopo": _Own(samples=1, fast=_QUICKER),
    # The threshold is all the pessimism it has, and beyond nearly all of the data it restrains too little.
    "morel": _Own(samples=1, fast=_FIXED, quantile=0.999),
    "empo": _Own(samples=1, fast=_QUICKER),
    "empo-official": _Own(samples=1),
    "rambo": _Own(samples=1, sac={"cosine": False}, literal={"steps": 2_000_000}),
    "combo": _Own(samples=1, sac={**_FREE, "cosine": True}, literal={"steps": 1_000_000}),
    "cql": _Own(sac=_FREE, literal={"steps": 1_000_000}),
    "edac": _Own(sac={**_DEEP, "critic_initialisation": "small-end"}),
}

# Per-task settings by dataset: (λ, δ) of MC-ETM's table, (λ, horizon, fixed temperature) of MOBILE's official
# code, (λ, horizon) of MOPO in OfflineRL-Kit.
_MCETM = {
    "halfcheetah-random": (0.5, -2.5),
    "hopper-random": (0.5, -2.5),
    "walker2d-random": (2.5, 5.0),
    "halfcheetah-medium": (0.5, 0.0),
    "hopper-medium": (1.5, -5.0),
    "walker2d-medium": (1.0, -5.0),
    "halfcheetah-medium-replay": (0.5, 2.5),
    "hopper-medium-replay": (0.5, -2.5),
    "walker2d-medium-replay": (0.5, 5.0),
    "halfcheetah-medium-expert": (1.5, -10.0),
    "hopper-medium-expert": (1.5, 0.0),
    "walker2d-medium-expert": (1.0, -10.0),
}
_MOBILE = {
    "halfcheetah-random": (0.5, 5, None),
    "hopper-random": (5.0, 5, None),
    "walker2d-random": (2.0, 5, None),
    "halfcheetah-medium": (0.5, 5, None),
    "hopper-medium": (1.5, 5, 0.2),
    "walker2d-medium": (0.5, 5, None),
    "halfcheetah-medium-replay": (0.1, 5, None),
    "hopper-medium-replay": (0.1, 5, 0.2),
    "walker2d-medium-replay": (0.5, 1, None),
    "halfcheetah-medium-expert": (1.0, 5, None),  # and half of each minibatch from the log
    "hopper-medium-expert": (1.5, 5, None),
    "walker2d-medium-expert": (1.5, 1, None),
}
# (critics, weight of their diversity) of EDAC, and (weight, horizon) of COMBO in OfflineRL-Kit.
_EDAC = {
    "halfcheetah-random": (10, 0.0),
    "hopper-random": (50, 0.0),
    "walker2d-random": (10, 1.0),
    "halfcheetah-medium": (10, 1.0),
    "hopper-medium": (50, 1.0),
    "walker2d-medium": (10, 1.0),
    "halfcheetah-medium-replay": (10, 1.0),
    "hopper-medium-replay": (50, 1.0),
    "walker2d-medium-replay": (10, 1.0),
    "halfcheetah-medium-expert": (10, 5.0),
    "hopper-medium-expert": (50, 1.0),
    "walker2d-medium-expert": (10, 5.0),
}
# (weight, horizon) of RAMBO's official code.
_RAMBO = {
    "halfcheetah-random": (0.0, 5),
    "hopper-random": (3e-4, 2),
    "walker2d-random": (0.0, 5),
    "halfcheetah-medium": (3e-4, 5),
    "hopper-medium": (3e-4, 5),
    "walker2d-medium": (0.0, 5),
    "halfcheetah-medium-replay": (3e-4, 5),
    "hopper-medium-replay": (3e-4, 2),
    "walker2d-medium-replay": (0.0, 5),
    "halfcheetah-medium-expert": (3e-4, 5),
    "hopper-medium-expert": (3e-4, 5),
    "walker2d-medium-expert": (3e-4, 2),
}
_COMBO = {
    "halfcheetah-medium": (0.5, 5),
    "hopper-medium": (5.0, 5),
    "walker2d-medium": (5.0, 1),
    "halfcheetah-medium-replay": (0.5, 5),
    "hopper-medium-replay": (0.5, 5),
    "walker2d-medium-replay": (0.5, 1),
    "halfcheetah-medium-expert": (5.0, 5),
    "hopper-medium-expert": (5.0, 5),
    "walker2d-medium-expert": (5.0, 1),
    # Not published: the weight of replay data and the horizons of the other levels.
    "halfcheetah-random": (0.5, 5),
    "hopper-random": (0.5, 5),
    "walker2d-random": (0.5, 1),
}
_MOPO = {
    "halfcheetah-medium": (0.5, 5),
    "hopper-medium": (5.0, 5),
    "walker2d-medium": (0.5, 5),
    "halfcheetah-medium-replay": (0.5, 5),
    "hopper-medium-replay": (2.5, 5),
    "walker2d-medium-replay": (2.5, 1),
    "halfcheetah-medium-expert": (2.5, 5),
    "hopper-medium-expert": (5.0, 5),
    "walker2d-medium-expert": (2.5, 1),
    # OfflineRL-Kit has no settings for random data; these are the original code's.
    "halfcheetah-random": (0.5, 5),
    "hopper-random": (1.0, 5),
    "walker2d-random": (1.0, 1),
}
# Where the published λ of MOPO lets policies go where our ensemble is wrong (docs/locomotion.md): outside the
# literal presets OfflineRL-Kit's for the other levels of the task.
_MOPO_PENALTY = {"walker2d-medium": 2.5}


def make_config(
    preset: str | None = None,
    *,
    dataset: str = "pendulum-mixed",
    algo: Algo = "mcetm",
    seeds: int | None = None,
    seed: int = 0,
    task: str | None = None,
) -> TrainConfig:
    """The settings of a preset for a dataset and an algorithm."""
    preset = preset or "quick"
    if preset not in PRESETS:
        raise UserError(f"Unknown preset '{preset}'; there are {', '.join(PRESETS)}.")
    models, policy = {
        "quick": _quick,
        "fast": _fast,
        "paper": lambda: _paper(PAPER),
        "paper-empo": lambda: _paper(PAPER_EMPO),
    }[preset]()
    name = (
        Path(dataset).name.removeprefix("d4rl:").removesuffix(".hdf5").replace("_", "-").removesuffix("-v2")
    )
    policy, models = _for_algorithm(policy, models, algo, preset)
    policy, models = _for_task(policy, models, algo, name, literal=_literal(preset))
    return TrainConfig(
        dataset=dataset,
        task=task,
        algo=algo,
        preset=preset,
        seeds=3 if seeds is None else seeds,
        seed=seed,
        compare=preset == "quick" and algo == "mcetm",
        models=models,
        policy=policy,
    )


def _quick() -> tuple[ModelsConfig, PolicyConfig]:
    chain = Langevin(steps=10)
    models = ModelsConfig(
        gaussian=GaussianConfig(members=4, elites=3, width=64, depth=2, steps=3000, batch_size=256),
        autoencoder=AutoencoderConfig(latent_dim=2, width=32, depth=2, steps=2000, batch_size=256),
        energy=EnergyConfig(
            members=3, count=6, width=48, depth=3, batch_size=64, steps=1000, latent=chain, ambient=chain
        ),
        inference=InferenceConfig(
            latent=Langevin(steps=5, noise=0.1), ambient=Langevin(steps=5, noise=0.1), descend=True
        ),
        calibration=CalibrationConfig(quantile=0.999, samples=4, rows=4000),
        reward=HeadConfig(width=64, learning_rate=1e-3, batch_size=256, steps=4000),
    )
    policy = PolicyConfig(
        penalty=1.0,
        samples=4,
        sac=SACConfig(
            width=64,
            actor_rate=1e-3,
            critic_rate=1e-3,
            temperature_rate=1e-3,
            discount=0.97,
            batch_size=128,
            steps=5000,
        ),
        rollout=RolloutConfig(batch=400, horizon=5, every=500, retain=5, parallel=400),
        td3=TD3Config(width=64, actor_rate=1e-3, critic_rate=1e-3, discount=0.97, batch_size=128, steps=5000),
        iql=IQLConfig(width=64, rate=1e-3, discount=0.97, batch_size=128, steps=5000),
        bc=BCConfig(width=64, batch_size=128, learning_rate=1e-3, steps=3000),
        evaluate_every=1000,
        episodes=10,
    )
    return models, policy


def _fast() -> tuple[ModelsConfig, PolicyConfig]:
    models = ModelsConfig(
        energy=ANCHORED,
        # A third of the refinement: rollouts are most of MC-ETM's time.
        inference=replace(REFINE, ambient=replace(REFINE.ambient, steps=10)),
        # Beyond nearly all of the held-out data: on hopper few false alarms kept policies from learning
        # (docs/locomotion.md).
        calibration=CalibrationConfig(quantile=0.9999, rows=10_000),
        reward=HeadConfig(learning_rate=1e-3, batch_size=1024),
    )
    policy = PolicyConfig(
        samples=5,
        sac=SACConfig(steps=300_000),
        td3=TD3Config(steps=300_000),
        iql=IQLConfig(steps=300_000),
        bc=BCConfig(steps=300_000),
        # Long rollouts: what lies beyond their end is only ever guessed at (docs/locomotion.md).
        rollout=RolloutConfig(batch=1250, horizon=20, retain=20),
        evaluate_every=30_000,
    )
    return models, policy


def _paper(energy: EnergyConfig) -> tuple[ModelsConfig, PolicyConfig]:
    inference = InferenceConfig()
    if energy is PAPER:
        literal = Langevin(30, 1e-3, 1e-3, 1.0, "paper", 0.1, None, 0.5)
        inference = InferenceConfig(latent=literal, ambient=literal)
    models = ModelsConfig(energy=energy, inference=inference, calibration=CalibrationConfig(mode="absolute"))
    policy = PolicyConfig(
        value_floor=0.0,
        spread_of="truncated",
        rollout_rule="selected",
        target_rule="per-sample",
        sac=SACConfig(steps=3_000_000),
        rollout=RolloutConfig(batch=50_000),
        evaluate_every=50_000,
    )
    return models, policy


def _literal(preset: str) -> bool:
    return preset.startswith("paper")


def _for_algorithm(
    policy: PolicyConfig, models: ModelsConfig, algo: Algo, preset: str
) -> tuple[PolicyConfig, ModelsConfig]:
    """An algorithm's own settings in a preset."""
    own = _OWN.get(algo, _Own())
    sac = {**own.sac, **(own.fast if preset == "fast" else {}), **(own.literal if _literal(preset) else {})}
    samples = policy.samples if own.samples is None else own.samples
    if own.quantile is not None and not _literal(preset):
        models = replace(models, calibration=replace(models.calibration, quantile=own.quantile))
    return replace(policy, samples=samples, sac=replace(policy.sac, **sac)), models


def _with_horizon(rollout: RolloutConfig, horizon: int, *, literal: bool) -> RolloutConfig:
    """A published horizon; outside the literal presets with as many imagined rows as before."""
    batch = rollout.batch if literal else rollout.batch * rollout.horizon // horizon
    return replace(rollout, horizon=horizon, batch=batch)


def _for_task(
    policy: PolicyConfig, models: ModelsConfig, algo: Algo, name: str, *, literal: bool
) -> tuple[PolicyConfig, ModelsConfig]:
    """The published settings of an algorithm for a dataset, where there are some."""
    if name.startswith("hopper"):
        models = replace(models, autoencoder=replace(models.autoencoder, latent_dim=5))
    if algo.startswith("mcetm") and literal and name in _MCETM:
        weight, threshold = _MCETM[name]
        models = replace(models, calibration=replace(models.calibration, absolute=threshold))
        policy = replace(policy, penalty=weight)
        if name in ("hopper-medium", "hopper-medium-replay"):
            # As MOBILE, whose substrate the paper shares.
            policy = replace(policy, sac=replace(policy.sac, temperature=0.2))
    if algo in ("empo", "empo-official"):
        # The authors' model. Their own chains are too short, and clipped too early, to reach a large change.
        chain = Langevin(steps=100, first=0.1, last=1e-5, noise=0.0)
        if algo == "empo-official":
            chain = replace(chain, steps=30, noise=0.5, gradient_clip=0.5)
            policy = replace(policy, rollout=_with_horizon(policy.rollout, 5, literal=literal))
        inference = InferenceConfig(start="middle", latent=None, ambient=chain)
        energy = replace(STANDARD, count=16)
        if not literal:  # chains of 50 steps for every rival: a quarter of the rows, a third of the steps
            energy = replace(energy, batch_size=256, steps=30_000)
        if models.energy.kind == "plain" and not literal:  # small
            sizes = {name: getattr(models.energy, name) for name in ("members", "width", "depth", "steps")}
            energy = replace(energy, batch_size=models.energy.batch_size, **sizes)
        models = replace(models, energy=energy, inference=inference)
        policy = replace(policy, penalty=2.0)
    if algo == "edac":
        critics, weight = _EDAC.get(name, (10, 1.0))
        policy = replace(policy, diversity=weight, sac=replace(policy.sac, critics=critics))
    if algo == "combo":
        weight, horizon = _COMBO.get(name, (0.5, 5))
        rollout = replace(_with_horizon(policy.rollout, horizon, literal=literal), real_share=0.5)
        policy = replace(policy, conservatism=weight, rollout=rollout)
    if algo == "rambo":
        weight, horizon = _RAMBO.get(name, (3e-4, 5))
        rollout = _with_horizon(policy.rollout, horizon, literal=literal)
        # Four times as often as others, and kept as long.
        rollout = replace(
            rollout, every=max(1, rollout.every // 4), retain=4 * rollout.retain, real_share=0.5
        )
        if not literal:
            rollout = replace(rollout, batch=max(1, rollout.batch // 4))
        policy = replace(policy, adversarial=weight, rollout=rollout)
    if algo == "mobile" and name in _MOBILE:
        weight, horizon, temperature = _MOBILE[name]
        policy = replace(
            policy,
            penalty=weight,
            value_floor=0.0,
            rollout=replace(
                policy.rollout,
                horizon=horizon if literal else policy.rollout.horizon,
                real_share=0.5 if name == "halfcheetah-medium-expert" else policy.rollout.real_share,
            ),
            sac=replace(policy.sac, temperature=temperature),
        )
    if algo == "mopo" and name in _MOPO:
        weight, horizon = _MOPO[name]
        if literal:
            policy = replace(policy, rollout=replace(policy.rollout, horizon=horizon))
        else:
            weight = _MOPO_PENALTY.get(name, weight)
        policy = replace(policy, penalty=weight)
    return policy, models
