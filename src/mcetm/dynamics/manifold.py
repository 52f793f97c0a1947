"""The manifold of next states: an autoencoder whose standardised codes are where negatives are sought."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data.normalize import Normalizer, Statistics
from mcetm.data.transitions import Transitions
from mcetm.nn.members import make_at_once
from mcetm.nn.mlp import MLP
from mcetm.nn.scaling import Scaling
from mcetm.settings import Positive, Rate, settings
from mcetm.training import minimise
from mcetm.training.batches import Batch


@settings
class AutoencoderSettings:
    """Sizes for a laptop; the paper's network is 3 × 64 with ReLU, and its training is not stated."""

    latent_dim: Positive = 2
    """d_m: 5 for hopper, 10 for halfcheetah and walker2d in the paper; else see the dataset card."""
    width: Positive = 32
    """Units of each hidden layer."""
    depth: Positive = 2
    """Hidden layers of encoder and decoder each."""
    batch_size: Positive = 256
    """Next states of a minibatch."""
    learning_rate: Rate = 1e-3
    """Of Adam; it falls to 0 over the steps."""
    steps: Positive = 2000
    """Updates."""


class Autoencoder(eqx.Module):
    """f_e and f_d between next states and standardised codes, one example at a time, in raw units.

    Codes have mean 0 and spread 1 over the data, so that a noise scale σ means the same for every latent
    dimension and every dataset.
    """

    encoder: MLP
    decoder: MLP
    state_scale: Scaling
    code_scale: Scaling

    def __init__(self, config: AutoencoderSettings, state_scale: Scaling, *, key: PRNGKeyArray) -> None:
        down, up = jax.random.split(key)
        dim = state_scale.mean.shape[-1]
        sizes: dict[str, Any] = {"width": config.width, "depth": config.depth}
        self.encoder = MLP(dim, config.latent_dim, key=down, **sizes)
        self.decoder = MLP(config.latent_dim, dim, key=up, **sizes)
        self.state_scale = state_scale
        self.code_scale = Scaling(jnp.zeros(config.latent_dim), jnp.ones(config.latent_dim))

    def encode(self, state: Float[Array, " dim"]) -> Float[Array, " latent"]:
        """f_e: the code of a state."""
        return self.code_scale.normalize(self.encoder(self.state_scale.normalize(state)))

    def decode(self, code: Float[Array, " latent"]) -> Float[Array, " dim"]:
        """f_d: the state of a code."""
        return self.state_scale.denormalize(self.decoder(self.code_scale.denormalize(code)))

    def residual(self, state: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """What encoding and decoding changes, in units of the states' spread."""
        return self.state_scale.normalize(self.decode(self.encode(state))) - self.state_scale.normalize(state)


@dataclass(frozen=True)
class Reconstruction:
    """How well states survive encoding and decoding, in units that say whether it matters."""

    error: float
    """Root mean squared error in standardised units."""
    one_step_change: float
    """Root mean squared change of a state in one step, in the same units."""

    @property
    def ratio(self) -> float:
        """Above 1 the decoder forgets more than a step changes: the ambient stage must do the real work."""
        return self.error / self.one_step_change


def fit_autoencoder(
    train: Transitions,
    config: AutoencoderSettings | None = None,
    *,
    key: PRNGKeyArray,
    folder: Path | None = None,
) -> tuple[Autoencoder, list[dict[str, Any]]]:
    """Train on the next states of a log, then standardise the codes."""
    config = config or AutoencoderSettings()
    init_key, fit_key = jax.random.split(key)
    scale = Scaling.of(Statistics.of(train).obs)
    model = make_at_once(lambda key: Autoencoder(config, scale, key=key), init_key)

    def loss(model: Autoencoder, data: Batch, key: PRNGKeyArray) -> tuple[Array, dict[str, Array]]:
        batch = data.draw(config.batch_size, key=key)
        return (jax.vmap(model.residual)(batch.next_obs) ** 2).mean(), {}

    model, history = minimise(
        loss, model, train, config, key=fit_key, schedule="cosine", folder=folder, label="autoencoder"
    )
    codes = jax.vmap(model.encode)(jnp.asarray(train.excerpt().next_obs))
    model = eqx.tree_at(lambda m: m.code_scale, model, Scaling.of(Normalizer.of(jax.device_get(codes))))
    return model, history


def reconstruction(model: Autoencoder, transitions: Transitions) -> Reconstruction:
    """Measure a trained autoencoder on a log, usually the hold-out."""
    batch = Batch.of(transitions.with_next)
    error = jax.vmap(model.residual)(batch.next_obs)
    change = (batch.next_obs - batch.obs) / model.state_scale.std
    return Reconstruction(float(jnp.sqrt((error**2).mean())), float(jnp.sqrt((change**2).mean())))
