"""What is measured on: random data of HalfCheetah's size, and models that nobody trained.

What a network has learned does not change how long it takes.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mcetm.data import Statistics, Transitions
from mcetm.dynamics import (
    REFINE,
    AnchoredEnergy,
    Autoencoder,
    EnergyTransitionModel,
    Gaussian,
    GaussianEnsemble,
    GaussianModel,
    InferenceSettings,
    PlainEnergy,
    Space,
    Threshold,
    TransitionModel,
    TrustRegion,
    World,
)
from mcetm.dynamics.reward import Head, TerminationRule
from mcetm.nn import MLP, InputScaling, Scaling, take_members
from mcetm.pipeline import TrainConfig
from mcetm.tasks import get_task
from mcetm_experiments.shared.models import ModelsConfig

OBS, ACTION = 17, 6


def random_log(rows: int = 50_000) -> Transitions:
    """Episodes of a thousand steps that end in a truncation."""
    rng = np.random.default_rng(0)
    obs = rng.standard_normal((rows, OBS), dtype=np.float32)
    action = rng.uniform(-1, 1, (rows, ACTION)).astype(np.float32)
    following = obs + 0.1 * rng.standard_normal((rows, OBS), dtype=np.float32)
    over = np.arange(1, rows + 1) % 1000 == 0
    return Transitions.from_arrays(
        obs, action, rng.normal(5.0, 1.0, rows), following, np.zeros(rows, bool), over
    )


def autoencoder(config: ModelsConfig, log: Transitions) -> Autoencoder:
    """An untrained one."""
    return Autoencoder(config.autoencoder, Scaling.of(Statistics.of(log).obs), key=jax.random.key(1))


def gaussians(config: GaussianEnsemble, log: Transitions) -> GaussianModel:
    """An untrained ensemble, its first members the elites."""
    statistics = Statistics.of(log)
    keys = jax.random.split(jax.random.key(2), config.members)
    make = eqx.filter_vmap(lambda key: Gaussian(config, statistics, key=key))
    return GaussianModel(eqx.filter_jit(make)(keys), jnp.arange(config.elites))


def energies(config: ModelsConfig, log: Transitions) -> EnergyTransitionModel:
    """Untrained energies with all that is needed to sample from them."""
    # In one program: operation by operation, this would take longer than what is measured.
    return eqx.filter_jit(lambda: _energies(config, log))()


def _energies(config: ModelsConfig, log: Transitions) -> EnergyTransitionModel:
    energy, statistics, space = config.energy, Statistics.of(log), Space.of(log, config.energy.variable)
    regressor, keys = (
        gaussians(config.gaussian, log),
        jax.random.split(jax.random.key(3), config.energy.members),
    )
    if energy.kind == "anchored":
        anchors = take_members(regressor.members, regressor.elites[jnp.arange(energy.members)])
        members = eqx.filter_vmap(
            lambda anchor, key: AnchoredEnergy(anchor, width=energy.width, depth=energy.depth, key=key)
        )(anchors, keys)
    else:
        members = eqx.filter_vmap(
            lambda key: PlainEnergy(
                statistics, space, width=energy.width, depth=energy.depth, trunk=energy.trunk, key=key
            )
        )(keys)
    inference = config.inference or (REFINE if energy.kind == "anchored" else InferenceSettings())
    manifold = autoencoder(config, log) if energy.negatives == "manifold" else None
    return EnergyTransitionModel(members, space, regressor, manifold, inference, backend=energy.backend)


def world(config: TrainConfig, log: Transitions) -> World:
    """An untrained world; its limits distrust nothing, and no rollout is cut short."""
    statistics = Statistics.of(log)
    network = MLP(2 * OBS + ACTION, 1, width=config.world.reward.width, depth=2, key=jax.random.key(4))
    reward = Head(
        network,
        InputScaling.of(statistics.obs, statistics.action),
        Scaling(jnp.full(1, 5.0), jnp.ones(1)),
    )
    rule = get_task("halfcheetah").termination
    termination = None if rule is None else TerminationRule(rule)
    model: TransitionModel
    if not config.model.has_energy:
        model = gaussians(config.model, log)
        return World(model, reward, termination, TrustRegion(jnp.asarray(1e9)))
    model = energies(ModelsConfig.of(config), log)
    trust = TrustRegion(jnp.asarray(1e9), Threshold(jnp.full(config.model.members, 1e9)))
    return World(model, reward, termination, trust)
