"""Training energy-based transition models: standard ETM, MC-ETM and their anchored variants."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics.contrastive import energy_regulariser, gradient_penalty, info_nce, ranking_nce
from mcetm.dynamics.energy import AnchoredEnergy, Energy, PlainEnergy
from mcetm.dynamics.gaussian import GaussianEnsemble
from mcetm.dynamics.langevin import Box, Convention, Langevin, Schedule
from mcetm.dynamics.manifold import Autoencoder
from mcetm.dynamics.negatives import (
    ManifoldNegatives,
    Negatives,
    NoiseNegatives,
    ProposalNegatives,
    Row,
)
from mcetm.errors import UserError
from mcetm.nn.mlp import Activation
from mcetm.nn.scaling import Scaling, frozen
from mcetm.training import Saving, fit, over_members
from mcetm.training.batches import Batch


@dataclass(frozen=True)
class SamplerConfig:
    """A Langevin sampler as data."""

    steps: int = 20
    first: float = 0.1
    last: float = 1e-3
    power: float = 2.0
    convention: Convention = "empo"
    noise: float = 0.5
    gradient_clip: float | None = 10.0
    move_clip: float | None = 0.5

    def build(self) -> Langevin:
        """The sampler itself."""
        schedule = Schedule(self.steps, self.first, self.last, self.power)
        return Langevin(schedule, self.convention, self.noise, self.gradient_clip, self.move_clip)


@dataclass(frozen=True)
class EnergyConfig:
    """Settings of energy training; the defaults are the paper's table, read as EMPO's code would (docs)."""

    kind: Literal["plain", "anchored"] = "plain"
    negatives: Literal["uniform", "gaussian", "manifold", "proposal"] = "manifold"
    members: int = 5
    count: int = 20
    """Rivals per transition."""
    width: int = 200
    depth: int = 4
    activation: Activation = "relu"
    latent: SamplerConfig = field(default_factory=lambda: SamplerConfig(steps=30))
    ambient: SamplerConfig = field(default_factory=lambda: SamplerConfig(steps=20))
    sigma: tuple[float, float] = (0.05, 0.3)
    recovery: float = 1.0
    difference: bool = False
    margin: float = 5.0
    penalty: float = 1.0
    """Weight of the gradient penalty."""
    reduction: Literal["mean", "sum"] = "mean"
    regulariser: float = 0.0
    batch_size: int = 1024
    learning_rate: float = 1e-3
    steps: int = 100_000


PAPER_EMPO = EnergyConfig()
"""The paper's table with EMPO's meaning: step sizes fall from 0.1 to 1e-3, the noise multiplies the step."""
PAPER = EnergyConfig(
    latent=SamplerConfig(30, 1e-3, 1e-3, 1.0, "paper", 0.5, None, 0.5),
    ambient=SamplerConfig(20, 1e-3, 1e-3, 1.0, "paper", 0.5, None, 0.5),
    reduction="sum",
)
"""The paper as literally as it can be read: constant steps of 1e-3, √(2ε) noise · 0.5, a summed penalty."""
STANDARD = EnergyConfig(negatives="uniform", ambient=SamplerConfig(steps=50))
"""Standard ETM: uniform starts and 50 ambient steps, as in EMPO."""
ANCHORED = EnergyConfig(kind="anchored", negatives="proposal", activation="silu", margin=100.0, steps=10_000)
"""Anchored energy with rivals from the widened anchor and ranking NCE."""


def fit_energy(
    train: Transitions,
    config: EnergyConfig | None = None,
    *,
    autoencoder: Autoencoder | None = None,
    regressor: GaussianEnsemble | None = None,
    key: PRNGKeyArray,
    folder: Path | None = None,
    chunk: int = 1000,
) -> tuple[Energy, list[dict[str, Any]]]:
    """Train an ensemble of energies, one module with a leading member axis.

    Manifold negatives need the autoencoder; the anchored kind and proposal negatives need the regressor,
    whose elites serve the members in turn.
    """
    config = config or EnergyConfig()
    if config.negatives == "manifold" and autoencoder is None:
        raise UserError("Manifold negatives need an autoencoder; train one with fit_autoencoder.")
    if (config.kind == "anchored" or config.negatives == "proposal") and regressor is None:
        raise UserError(
            "Anchored energies and proposal negatives need a regressor; train one with fit_gaussian."
        )
    statistics = Statistics.of(train)
    scale, box = Scaling.of(statistics.obs), state_box(train)
    init_key, fit_key = jax.random.split(key)
    optimiser = optax.adam(config.learning_rate)

    def make(member_key: PRNGKeyArray, anchor: Any) -> Any:
        sizes: dict[str, Any] = {
            "width": config.width,
            "depth": config.depth,
            "activation": config.activation,
        }
        energy: Energy
        if config.kind == "anchored":
            energy = AnchoredEnergy(anchor, key=member_key, **sizes)
        else:
            energy = PlainEnergy(statistics, key=member_key, **sizes)
        negatives = _negatives(config, box, autoencoder, anchor)
        return energy, optimiser.init(eqx.filter(energy, eqx.is_inexact_array)), negatives

    keys = jax.random.split(init_key, config.members)
    anchors = None if regressor is None else _anchors(regressor, config.members)
    state = eqx.filter_vmap(make, in_axes=(0, eqx.if_array(0)))(keys, anchors)

    def step(state: Any, data: Batch, *, key: PRNGKeyArray) -> tuple[Any, dict[str, Array]]:
        energy, moments, negatives = state
        draw_key, chain_key = jax.random.split(key)
        batch = data.draw(config.batch_size, key=draw_key)
        keys = jax.random.split(chain_key, config.batch_size)

        def total(energy: Energy) -> tuple[Array, dict[str, Array]]:
            one = lambda row, k: energy_loss(energy, negatives, scale, row, config, key=k)  # noqa: E731
            losses, metrics = jax.vmap(one)(batch, keys)
            return losses.mean(), {name: values.mean() for name, values in metrics.items()}

        (loss, metrics), gradient = eqx.filter_value_and_grad(total, has_aux=True)(energy)
        updates, moments = optimiser.update(gradient, moments)
        return (eqx.apply_updates(energy, updates), moments, negatives), {"loss": loss, **metrics}

    result = fit(
        over_members(step),
        state,
        Batch.of(train),
        steps=config.steps,
        key=fit_key,
        chunk=chunk,
        saving=None if folder is None else Saving(folder, asdict(config)),
        label=f"{config.kind} energy, {config.negatives} negatives",
        watch=("loss", "accuracy"),
    )
    return result.state[0], result.history


def energy_loss(
    energy: Energy,
    negatives: Negatives,
    scale: Scaling,
    row: Batch,
    config: EnergyConfig,
    *,
    key: PRNGKeyArray,
) -> tuple[Float[Array, ""], dict[str, Array]]:
    """Loss of one transition: contrast, gradient penalty, regulariser."""
    at = lambda model: lambda x: model(row.obs, row.action, scale.denormalize(x))  # noqa: E731
    seen = Row(row.obs, row.action, scale.normalize(row.next_obs))
    # Chains run on a frozen copy: nothing is differentiated through them.
    rivals = negatives(at(frozen(energy)), seen, config.count, key=key)
    candidates = jax.lax.stop_gradient(jnp.concatenate([seen.truth[None], rivals]))
    values, gradients = jax.vmap(jax.value_and_grad(at(energy)))(candidates)
    # The tiny constant keeps the root differentiable where a gradient vanishes.
    norms = jnp.sqrt((gradients**2).sum(axis=-1) + 1e-12)
    if isinstance(negatives, ProposalNegatives):
        contrast = ranking_nce(values, negatives.log_density(seen, candidates))
    else:
        contrast = info_nce(values)
    penalty = gradient_penalty(norms, config.margin, config.reduction)
    loss = contrast + config.penalty * penalty + config.regulariser * energy_regulariser(values)
    accuracy = (values[0] < values[1:].min()).astype(jnp.float32)
    return loss, {"contrast": contrast, "penalty": penalty, "accuracy": accuracy, "slope": norms.mean()}


def state_box(train: Transitions, margin: float = 0.1) -> Box:
    """Where standardised next states lie, with some room around."""
    scaled = Statistics.of(train).obs.normalize(train.next_obs)
    low, high = scaled.min(axis=0), scaled.max(axis=0)
    room = margin * np.maximum(high - low, 1e-3)
    return Box(jnp.asarray(low - room), jnp.asarray(high + room))


def _anchors(regressor: GaussianEnsemble, members: int) -> Any:
    """One anchor per member: the elites in turn."""
    chosen = regressor.elites[jnp.arange(members) % len(regressor.elites)]
    return jax.tree_util.tree_map(
        lambda leaf: leaf[chosen] if eqx.is_array(leaf) else leaf, regressor.members
    )


def _negatives(config: EnergyConfig, box: Box, autoencoder: Autoencoder | None, anchor: Any) -> Negatives:
    if config.negatives == "manifold":
        assert autoencoder is not None  # noqa: S101 (checked by the caller)
        return ManifoldNegatives(
            autoencoder,
            config.latent.build(),
            config.ambient.build(),
            box,
            config.sigma,
            config.recovery,
            config.difference,
        )
    if config.negatives == "proposal":
        return ProposalNegatives(anchor)
    return NoiseNegatives(config.ambient.build(), box, config.negatives)
