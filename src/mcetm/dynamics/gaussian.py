"""The Gaussian ensemble: the baseline that every energy model must beat, made as strong as we can.

Each member predicts mean and spread of the change s' − s. The negative log-likelihood is weighted by the
detached spread to the power 2β (β-NLL, Seitzer et al., 2022): β = 0 is the plain likelihood, which
lets noisy dimensions starve the others; β = 1 weighs errors like plain regression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics.batching import batched
from mcetm.dynamics.model import (
    ModelSettings,
    Samples,
    TrainingInputs,
    TransitionModel,
    farthest,
)
from mcetm.errors import UserError
from mcetm.nn.members import make_members, member_keys, take_members
from mcetm.nn.mlp import MLP, Activation, NetworkFactory
from mcetm.nn.scaling import InputScaling, Scaling
from mcetm.settings import Positive, Rate, Share, Switch, Weight, settings
from mcetm.training import Callback, EarlyStopping, minimise
from mcetm.training.batches import Batch
from mcetm.training.optimise import Schedule


@settings
class GaussianEnsemble(ModelSettings):
    """Predicts next states by Gaussians: an ensemble of networks; the defaults are sizes for a laptop."""

    has_density: ClassVar[bool] = True

    name: Literal["gaussian"] = "gaussian"
    """Its name in files and on the command line."""
    members: Positive = 4
    """Networks that are trained."""
    elites: Positive = 3
    """Members kept for predictions: those with the lowest hold-out error."""
    width: Positive = 64
    """Units of each hidden layer."""
    depth: Positive = 2
    """Hidden layers."""
    activation: Activation = "silu"
    """The activation between layers."""
    beta: Share = 0.5
    """β of the weighted likelihood: 0 is the plain one, 1 weighs errors as regression does."""
    squared: Switch = False
    """Train the mean by squared errors alone: a plain MLP, whose spread means nothing."""
    scale_targets: Switch = True
    """Predict the change in units of its own spread; the Kit predicts raw changes."""
    bound_weight: Weight = 0.001
    """Weight of the pull on the learned bounds of the log-variance."""
    weight_decay: tuple[Weight, ...] = ()
    """½ · decay · ‖weight‖² per layer, as in the Kit; none by default."""
    batch_size: Positive = 256
    """Transitions of a minibatch."""
    learning_rate: Rate = 1e-3
    """Of Adam."""
    schedule: Schedule = "cosine"
    """Whether the learning rate falls to 0 over the steps or stays."""
    steps: Positive = 3000
    """Updates of each member."""
    bootstrap: Switch = False
    """Give each member its own resample of the data; otherwise they differ by initialisation and batches."""
    early_stopping: EarlyStopping | None = None
    """Stop where the hold-out error no longer falls; None trains all steps."""
    validate_every: Positive = 1000
    """Steps between two looks at held-out data."""

    def __post_init__(self) -> None:
        if self.elites > self.members:
            raise ValueError(f"has {self.elites} elites of {self.members} members")

    @property
    def num_members(self) -> int:
        """How many members draw."""
        return self.elites

    @property
    def parts(self) -> tuple[str, ...]:
        """The one stage of its training."""
        return ("regressor",)

    def train(self, inputs: TrainingInputs) -> GaussianModel:
        """Train, or read back what the folder has."""
        with inputs.stages("regressor"):
            return fit_gaussian(
                inputs.log,
                inputs.holdout,
                self,
                key=inputs.keys.regressor,
                folder=inputs.place("regressor"),
                **inputs.own,
            )[0]


KIT = GaussianEnsemble(
    members=7,
    elites=5,
    width=200,
    depth=4,
    beta=0.0,
    bound_weight=0.01,
    scale_targets=False,
    weight_decay=(2.5e-5, 5e-5, 7.5e-5, 7.5e-5, 1e-4),
    batch_size=256,
    schedule="constant",
    steps=10_000_000,
    bootstrap=True,
    early_stopping=EarlyStopping(patience=5, improvement=0.01),
)
"""OfflineRL-Kit's settings for MOPO, COMBO and MOBILE; one validation should be one pass over the data."""


class Gaussian(eqx.Module):
    """One member: p(s' | s, a) = N(s + change(s, a), spread(s, a)²), one example at a time, in raw units."""

    network: Callable[[Array], Array]
    max_log_variance: Float[Array, " obs"]
    min_log_variance: Float[Array, " obs"]
    inputs: InputScaling
    change_scale: Scaling

    def __init__(
        self,
        config: GaussianEnsemble,
        statistics: Statistics,
        *,
        network: NetworkFactory | None = None,
        key: PRNGKeyArray,
    ) -> None:
        obs_dim, action_dim = len(statistics.obs.mean), len(statistics.action.mean)
        make = network or partial(
            MLP,
            width=config.width,
            depth=config.depth,
            activation=config.activation,
            initialisation="truncated-normal",
        )
        self.network = make(obs_dim + action_dim, 2 * obs_dim, key=key)
        self.max_log_variance = jnp.full(obs_dim, 0.5)
        self.min_log_variance = jnp.full(obs_dim, -10.0)
        self.inputs = InputScaling.of(statistics.obs, statistics.action)
        identity = Scaling(jnp.zeros(obs_dim), jnp.ones(obs_dim))
        self.change_scale = Scaling.of(statistics.change) if config.scale_targets else identity

    def scaled(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"]
    ) -> tuple[Float[Array, " obs"], Float[Array, " obs"]]:
        """Mean and log-variance of the scaled change, the latter softly held between learned bounds."""
        mean, log_variance = jnp.split(self.network(self.inputs.pair(obs, action)), 2)
        log_variance = self.max_log_variance - jax.nn.softplus(self.max_log_variance - log_variance)
        log_variance = self.min_log_variance + jax.nn.softplus(log_variance - self.min_log_variance)
        return mean, log_variance

    def predict(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"]
    ) -> tuple[Float[Array, " obs"], Float[Array, " obs"]]:
        """Mean and standard deviation of the next observation."""
        mean, log_variance = self.scaled(obs, action)
        return obs + self.change_scale.denormalize(mean), jnp.exp(0.5 * log_variance) * self.change_scale.std

    def sample(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        """One next observation."""
        mean, std = self.predict(obs, action)
        return mean + std * jax.random.normal(key, mean.shape)

    def energy(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, ""]:
        """−log p(next_obs | obs, action), as a density over scaled changes."""
        mean, log_variance = self.scaled(obs, action)
        residual = self.change_scale.normalize(next_obs - obs) - mean
        return 0.5 * (residual**2 * jnp.exp(-log_variance) + log_variance + jnp.log(2.0 * jnp.pi)).sum()

    def loss(
        self, row: Batch, *, beta: float, bound_weight: float, squared: bool = False
    ) -> tuple[Float[Array, ""], Float[Array, " obs"]]:
        """β-NLL of one transition with the pull on the bounds, and the absolute error in raw units.

        `squared` leaves the squared error alone.
        """
        mean, log_variance = self.scaled(row.obs, row.action)
        residual = self.change_scale.normalize(row.next_obs - row.obs) - mean
        if squared:
            return (residual**2).mean(), jnp.abs(residual) * self.change_scale.std
        likelihood = residual**2 * jnp.exp(-log_variance) + log_variance
        weight = jax.lax.stop_gradient(jnp.exp(beta * log_variance))
        # The pull shrinks with the likelihood's own weight; at full strength it would squeeze the bounds
        # together until the spread no longer depends on the input.
        pull = self.max_log_variance.sum() - self.min_log_variance.sum()
        bounds = bound_weight * weight.mean() * pull
        error = jnp.abs(residual) * self.change_scale.std
        return (weight * likelihood).mean() + bounds, error


class GaussianModel(TransitionModel):
    """Members side by side; predictions come from the elites."""

    has_density: ClassVar[bool] = True

    members: Gaussian
    elites: Int[Array, " elites"]

    def of_elites(self) -> Gaussian:
        """The elite members, on a leading axis."""
        return take_members(self.members, self.elites)

    @property
    def num_members(self) -> int:
        """Those that predict."""
        return self.elites.shape[0]

    @property
    def widths(self) -> tuple[int, int]:
        """How many numbers its states have, and its actions."""
        return self.members.inputs.widths

    @batched
    def of_members(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"]
    ) -> tuple[Float[Array, "elites obs"], Float[Array, "elites obs"]]:
        """Mean and standard deviation of each elite."""
        return eqx.filter_vmap(lambda member: member.predict(obs, action))(self.of_elites())

    def means(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, "elites obs"]:
        """The mean of each elite."""
        return self.of_members(obs, action)[0]

    def spreads(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, "members obs"]:
        """The standard deviation that each member, elite or not, expects."""
        return eqx.filter_vmap(lambda member: member.predict(obs, action)[1])(self.members)

    def apart(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """The largest distance between two means, in units of the spread of changes."""
        return farthest(self.of_members(obs, action)[0] / self.members.change_scale.std[0])

    @batched
    def sample(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        """One next observation, of an elite chosen at random."""
        pick_key, noise_key = jax.random.split(key)
        mean, std = self.of_members(obs, action)
        chosen = jax.random.randint(pick_key, (), 0, len(self.elites))
        return mean[chosen] + std[chosen] * jax.random.normal(noise_key, obs.shape)

    def draw(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], count: int, *, key: PRNGKeyArray
    ) -> Samples:
        """`count` next states of every elite."""

        def of_member(member: Gaussian, key: PRNGKeyArray) -> Array:
            return jax.vmap(lambda k: member.sample(obs, action, key=k))(jax.random.split(key, count))

        keys = member_keys(key, len(self.elites))
        return Samples(eqx.filter_vmap(of_member, in_axes=(eqx.if_array(0), 0))(self.of_elites(), keys))

    @partial(batched, arrays=3)
    def negative_log_density(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, " elites"]:
        """−log density under each elite."""
        return eqx.filter_vmap(lambda member: member.energy(obs, action, next_obs))(self.of_elites())


def fit_gaussian(
    train: Transitions,
    holdout: Transitions,
    config: GaussianEnsemble | None = None,
    *,
    key: PRNGKeyArray,
    folder: Path | None = None,
    callbacks: Sequence[Callback] = (),
    network: NetworkFactory | None = None,
) -> tuple[GaussianModel, list[dict[str, Any]]]:
    """Train an ensemble; the result and the metrics of its training."""
    config = config or GaussianEnsemble()
    if network is not None and config.weight_decay:
        raise UserError("Weight decay is set layer by layer, which a network of your own does not have.")
    statistics = Statistics.of(train)
    init_key, resample_key, fit_key = jax.random.split(key, 3)
    make = lambda member_key: Gaussian(config, statistics, network=network, key=member_key)  # noqa: E731
    rows = None
    if config.bootstrap:
        count = train.rows_at_once
        rows = jax.random.randint(resample_key, (config.members, count), 0, count)
    held = Batch.of(holdout)

    def loss(member: Gaussian, data: Any, key: PRNGKeyArray) -> tuple[Array, dict[str, Array]]:
        log, resample = data if config.bootstrap else (data, None)
        drawn = jax.random.randint(key, (config.batch_size,), 0, len(log))
        batch = log.take(drawn if resample is None else resample[drawn])
        value, error = _mean_loss(member, batch, config)
        return value, {"error": error}

    @eqx.filter_jit
    def validate(members: Gaussian) -> dict[str, Array]:
        return {"score": eqx.filter_vmap(_squared_error, in_axes=(eqx.if_array(0), None))(members, held)}

    members, history = minimise(
        loss,
        make_members(make, jax.random.split(init_key, config.members), network=network),
        train,
        config,
        key=fit_key,
        schedule=config.schedule,
        members=True,
        own=rows,
        validate=validate,
        early_stopping=config.early_stopping,
        chunk=config.validate_every,
        folder=folder,
        callbacks=callbacks,
        label="Gaussian ensemble",
    )
    return GaussianModel(members, jnp.argsort(validate(members)["score"])[: config.elites]), history


def _mean_loss(member: Gaussian, batch: Batch, config: GaussianEnsemble) -> tuple[Array, Array]:
    losses, errors = jax.vmap(
        lambda row: member.loss(
            row, beta=config.beta, bound_weight=config.bound_weight, squared=config.squared
        )
    )(batch)
    layers = cast(MLP, member.network).layers if config.weight_decay else ()
    decay = sum(
        0.5 * decay * (layer.weight**2).sum()
        for decay, layer in zip(config.weight_decay, layers, strict=False)
    )
    return losses.mean() + decay, errors.mean()


def _squared_error(member: Gaussian, held: Batch) -> Array:
    """Mean squared error of the scaled change on held-out rows."""
    residual = jax.vmap(
        lambda row: (
            member.change_scale.normalize(row.next_obs - row.obs) - member.scaled(row.obs, row.action)[0]
        )
    )(held)
    return (residual**2).mean()
