"""Training energies: standard ETM's, MC-ETM's and anchored ones. As models: `dynamics/energy_models.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics.contrastive import energy_regulariser, gradient_penalty, info_nce
from mcetm.dynamics.energy import AnchoredEnergy, Conditional, Energy, PlainEnergy
from mcetm.dynamics.gaussian import Gaussian, GaussianModel
from mcetm.dynamics.inference import REFINE, EnergyTransitionModel, InferenceSettings
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import Autoencoder
from mcetm.dynamics.negatives import (
    ManifoldNegatives,
    Negatives,
    NoiseNegatives,
    ProposalNegatives,
    Row,
    other_rows,
)
from mcetm.dynamics.sampler import Backend, Sampler, sampler
from mcetm.dynamics.space import Space, Variable
from mcetm.errors import UserError
from mcetm.nn.members import make_members, take_members
from mcetm.nn.mlp import Activation, NetworkFactory
from mcetm.nn.scaling import frozen
from mcetm.settings import NonNegative, Positive, Rate, Switch, Weight, settings
from mcetm.training import Callback, minimise
from mcetm.training.batches import Batch
from mcetm.training.optimise import Schedule


@settings
class EnergySettings:
    """Settings of energy training; the defaults are the paper's table, read as EMPO's code would (docs)."""

    kind: Literal["plain", "anchored"] = "plain"
    """A network on (s, a, s'), or what a trained Gaussian misses; see `dynamics/energy.py`."""
    negatives: Literal["uniform", "gaussian", "manifold", "proposal"] = "manifold"
    """Where negatives come from; see `dynamics/negatives.py`."""
    members: Positive = 5
    """Energies that are trained."""
    variable: Variable = "next_obs"
    """What chains move and a plain energy sees: the next state (the paper) or its change, in units
    of its spread or of its largest value (EMPO)."""
    count: NonNegative = 20
    """Negatives per transition."""
    others: NonNegative = 0
    """Further negatives, taken from the next states of other rows of the minibatch."""
    hard: NonNegative = 0
    """Further negatives near the manifold, beside `negatives` of another kind. They have an InfoNCE term of
    their own: ranking NCE asks for the density that negatives are drawn with, and these have none."""
    width: Positive = 200
    """Units of each hidden layer."""
    depth: Positive = 4
    """Hidden layers."""
    activation: Activation = "relu"
    """The activation between layers."""
    trunk: NonNegative = 0
    """Layers of a plain energy that see (s, a) alone, below its `depth` others; see `PlainEnergy`."""
    latent: Langevin = field(default_factory=lambda: Langevin(steps=30))
    """Chains of manifold negatives in latent space."""
    ambient: Langevin = field(default_factory=lambda: Langevin(steps=20))
    """Chains of negatives in state space."""
    backend: Backend = "plain"
    """What runs the chains, in training and afterwards: `plain` anywhere, `fused` in one GPU kernel
    where one serves (docs/research/kernels.md) and as `plain` where none does."""
    sigma: tuple[Weight, Weight] = (0.05, 0.3)
    """Least and largest noise on the codes that manifold negatives begin with."""
    sigma_law: Literal["uniform", "log-uniform"] = "uniform"
    """`log-uniform` makes manifold negatives multi-scale: every size of σ in its range alike."""
    recovery: Weight = 1.0
    """Weight of the recovery term, which holds manifold negatives near the code they began with."""
    difference: Switch = False
    """Add what decoding changed to the recorded state instead of taking the decoded state itself."""
    margin: Weight = 5.0
    """Slope of an energy above which the gradient penalty acts."""
    penalty: Weight = 1.0
    """Weight of the gradient penalty; 0 saves its time, half of a training step's or more."""
    reduction: Literal["mean", "sum"] = "mean"
    """How the gradient penalty of all candidates becomes one number."""
    regulariser: Weight = 0.0
    """Weight of the squared energies, which keeps their level near 0."""
    batch_size: Positive = 1024
    """Transitions of a minibatch."""
    learning_rate: Rate = 1e-3
    """Of Adam."""
    schedule: Schedule = "constant"
    """Whether the learning rate falls to 0 over the steps or stays."""
    steps: Positive = 100_000
    """Updates of each member."""

    @property
    def needs_manifold(self) -> bool:
        """Whether any negatives are sought near the manifold."""
        return self.negatives == "manifold" or self.hard > 0


LITERAL = Langevin(
    first=1e-3, last=1e-3, power=1.0, convention="paper", noise=0.5, gradient_clip=None, move_clip=0.5
)
"""How the paper writes a chain: constant steps of 1e-3, moves of at most 0.5."""
PAPER_EMPO = EnergySettings()
"""The paper's table with EMPO's meaning: step sizes fall from 0.1 to 1e-3, the noise multiplies the step."""
PAPER = EnergySettings(
    latent=replace(LITERAL, steps=30),
    ambient=replace(LITERAL, steps=20),
    reduction="sum",
)
"""The paper as literally as it can be read: constant steps of 1e-3, √(2ε) noise · 0.5, a summed penalty."""
STANDARD = EnergySettings(negatives="uniform", variable="boxed", ambient=Langevin(steps=50))
"""Standard ETM: energies of changes, uniform starts and 50 ambient steps, as in EMPO."""
ANCHORED = EnergySettings(
    kind="anchored", negatives="proposal", variable="change", activation="silu", penalty=0.0, steps=10_000
)
"""Anchored energy with negatives from the widened anchor and ranking NCE.

No gradient penalty: slopes are the anchor's own, and a margin above them hardly ever acted."""


def fit_energy(
    train: Transitions,
    config: EnergySettings | None = None,
    *,
    autoencoder: Autoencoder | None = None,
    regressor: GaussianModel | None = None,
    inference: InferenceSettings | None = None,
    key: PRNGKeyArray,
    folder: Path | None = None,
    callbacks: Sequence[Callback] = (),
    network: NetworkFactory | None = None,
    chunk: int = 1000,
    validate: Callable[[EnergyTransitionModel], dict[str, Array]] | None = None,
) -> tuple[EnergyTransitionModel, list[dict[str, Any]]]:
    """Train an ensemble of energies; the model, ready to sample, and the metrics of its training.

    Manifold negatives need the autoencoder; the anchored kind and proposal negatives need the regressor,
    whose elites serve the members in turn. `validate` measures the model after every chunk of steps.
    """
    config = config or EnergySettings()
    _check(config, autoencoder, regressor)
    check_network(config, network)
    statistics, space = Statistics.of(train), Space.of(train, config.variable)
    init_key, fit_key = jax.random.split(key)
    run = sampler(config.backend)

    def make(member_key: PRNGKeyArray, anchor: Any) -> Energy:
        sizes: dict[str, Any] = {
            "width": config.width,
            "depth": config.depth,
            "activation": config.activation,
        }
        if config.kind == "anchored":
            return AnchoredEnergy(anchor, key=member_key, **sizes)
        return PlainEnergy(statistics, space, trunk=config.trunk, network=network, key=member_key, **sizes)

    keys = jax.random.split(init_key, config.members)
    anchors = None if regressor is None else _anchors(regressor, config.members)

    def loss(energy: Energy, data: Batch, key: PRNGKeyArray) -> tuple[Array, dict[str, Array]]:
        draw_key, chain_key, others_key = jax.random.split(key, 3)
        batch = data.draw(config.batch_size, key=draw_key)
        # What proposes negatives is not learned through them.
        negatives = _negatives(config, space, autoencoder, frozen(energy), regressor, run)
        hard = _near_manifold(config, space, autoencoder, run) if config.hard else None
        keys = jax.random.split(chain_key, config.batch_size)
        positives = jax.vmap(space.encode)(batch.obs, batch.next_obs)
        pick = lambda i, k: other_rows(positives, i, config.others, key=k)  # noqa: E731
        others = jax.vmap(pick)(jnp.arange(len(batch)), jax.random.split(others_key, len(batch)))
        one = lambda row, drawn, k: energy_loss(  # noqa: E731
            energy, negatives, space, row, config, hard=hard, others=drawn, key=k
        )
        losses, metrics = jax.vmap(one)(batch, others, keys)
        return losses.mean(), {name: values.mean() for name, values in metrics.items()}

    if inference is None:
        inference = REFINE if config.kind == "anchored" else InferenceSettings()
        if config.kind == "plain" and regressor is None:
            inference = replace(inference, start="noise")

    def assemble(members: Energy) -> EnergyTransitionModel:
        return EnergyTransitionModel(
            members, space, regressor, autoencoder, inference, backend=config.backend
        )

    members, history = minimise(
        loss,
        make_members(make, keys, anchors, network=network),
        train,
        config,
        key=fit_key,
        schedule=config.schedule,
        members=True,
        validate=None if validate is None else lambda members: validate(assemble(members)),
        chunk=chunk,
        folder=folder,
        callbacks=callbacks,
        label=f"{config.kind} energy, {config.negatives} negatives",
        watch=("loss", "accuracy"),
    )
    return assemble(members), history


def energy_loss(
    energy: Energy,
    negatives: Negatives,
    space: Space,
    row: Batch,
    config: EnergySettings,
    *,
    hard: Negatives | None = None,
    others: Float[Array, "others dim"] | None = None,
    key: PRNGKeyArray,
) -> tuple[Float[Array, ""], dict[str, Array]]:
    """Loss of one transition: contrast, that against hard negatives, gradient penalty, regulariser."""
    at = lambda model: Conditional(model, space, row.obs, row.action)  # noqa: E731
    seen = Row(row.obs, row.action, space.encode(row.obs, row.next_obs))
    drawn = [] if others is None else [others]
    if config.count:
        # Chains run on a frozen copy: nothing is differentiated through them.
        drawn.append(negatives(at(frozen(energy)), seen, config.count, key=key))
    candidates = jax.lax.stop_gradient(jnp.concatenate([seen.positive[None], *drawn]))
    values = jax.vmap(at(energy))(candidates)
    contrast = negatives.contrast(values, seen, candidates)
    loss = contrast + config.regulariser * energy_regulariser(values)
    accuracy = (values[0] < values[1:].min()).astype(jnp.float32)
    metrics = {"contrast": contrast, "accuracy": accuracy}
    if hard is not None:
        near = hard(at(frozen(energy)), seen, config.hard, key=jax.random.fold_in(key, 1))
        against = info_nce(jnp.append(values[:1], jax.vmap(at(energy))(jax.lax.stop_gradient(near))))
        loss, metrics = loss + against, {**metrics, "hard_contrast": against}
    if config.penalty:
        norms = _slopes(at(energy), candidates)
        penalty = gradient_penalty(norms, config.margin, config.reduction)
        loss, metrics = (
            loss + config.penalty * penalty,
            {**metrics, "penalty": penalty, "slope": norms.mean()},
        )
    return loss, metrics


def _slopes(energy: Conditional, candidates: Float[Array, "candidates dim"]) -> Float[Array, " candidates"]:
    """Gradient norms in the units that chains move in: in raw units an anchor's own slope is 1/σ."""
    gradients, size = jax.vmap(jax.grad(energy))(candidates), energy.preconditioner
    gradients = gradients if size is None else gradients * size
    # The tiny constant keeps the root differentiable where a gradient vanishes.
    return jnp.sqrt((gradients**2).sum(axis=-1) + 1e-12)


def _check(config: EnergySettings, autoencoder: Autoencoder | None, regressor: GaussianModel | None) -> None:
    if config.needs_manifold and autoencoder is None:
        raise UserError("Manifold negatives need an autoencoder; train one with fit_autoencoder.")
    if (config.kind == "anchored" or config.negatives == "proposal") and regressor is None:
        raise UserError(
            "Anchored energies and proposal negatives need a regressor; train one with fit_gaussian."
        )
    if config.negatives == "proposal" and config.others:
        raise UserError("Ranking NCE needs the density of every negative; other rows have none (others=0).")
    if config.count + config.others < 1:
        raise UserError("An energy needs at least one negative per transition (count or others).")
    if config.others >= config.batch_size:
        raise UserError(f"A minibatch of {config.batch_size} has fewer than {config.others} other rows.")


def check_network(config: EnergySettings, network: NetworkFactory | None) -> None:
    """Refuse a network where the energy must begin as zero."""
    if network is not None and config.kind == "anchored":
        raise UserError("An anchored energy begins as zero, which a network of your own cannot; use another.")


def _anchors(regressor: GaussianModel, members: int) -> Gaussian:
    """One anchor per member: the elites in turn."""
    return take_members(regressor.members, regressor.elites[jnp.arange(members) % len(regressor.elites)])


def _negatives(
    config: EnergySettings,
    space: Space,
    autoencoder: Autoencoder | None,
    energy: Energy,
    regressor: GaussianModel | None,
    run: Sampler,
) -> Negatives:
    if config.negatives == "manifold":
        return _near_manifold(config, space, autoencoder, run)
    if config.negatives == "proposal":
        if energy.anchor is not None:
            return ProposalNegatives(energy.anchor, space)
        assert regressor is not None  # noqa: S101 (checked by the caller)
        return ProposalNegatives(take_members(regressor.members, regressor.elites[0]), space)
    return NoiseNegatives(space, config.ambient, config.negatives, run)


def _near_manifold(
    config: EnergySettings, space: Space, autoencoder: Autoencoder | None, run: Sampler
) -> Negatives:
    assert autoencoder is not None  # noqa: S101 (checked by the caller)
    return ManifoldNegatives(
        autoencoder,
        space,
        config.latent,
        config.ambient,
        config.sigma,
        config.sigma_law,
        config.recovery,
        config.difference,
        run,
    )
