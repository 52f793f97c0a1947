"""The manifold of next states: an autoencoder whose standardised codes are where negatives are sought."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data.normalize import Normalizer
from mcetm.data.transitions import Transitions
from mcetm.nn.mlp import MLP
from mcetm.nn.scaling import Scaling
from mcetm.training import Saving, fit
from mcetm.training.batches import Batch


@dataclass(frozen=True)
class AutoencoderConfig:
    """The paper's network (3 × 64, ReLU) and our training of it, which the paper does not state."""

    latent_dim: int = 10
    """d_m: 5 for hopper, 10 for halfcheetah and walker2d in the paper; else see the dataset card."""
    width: int = 64
    depth: int = 3
    batch_size: int = 1024
    learning_rate: float = 1e-3
    steps: int = 20_000


class Autoencoder(eqx.Module):
    """f_e and f_d between standardised states and standardised codes, one example at a time.

    Codes have mean 0 and spread 1 over the data, so that a noise scale σ means the same for every latent
    dimension and every dataset.
    """

    encoder: MLP
    decoder: MLP
    code_scale: Scaling

    def __init__(self, config: AutoencoderConfig, dim: int, *, key: PRNGKeyArray) -> None:
        down, up = jax.random.split(key)
        sizes: dict[str, Any] = {"width": config.width, "depth": config.depth}
        self.encoder = MLP(dim, config.latent_dim, key=down, **sizes)
        self.decoder = MLP(config.latent_dim, dim, key=up, **sizes)
        self.code_scale = Scaling(jnp.zeros(config.latent_dim), jnp.ones(config.latent_dim))

    def encode(self, x: Float[Array, " dim"]) -> Float[Array, " latent"]:
        """f_e: the standardised code of a standardised state."""
        return self.code_scale.normalize(self.encoder(x))

    def decode(self, z: Float[Array, " latent"]) -> Float[Array, " dim"]:
        """f_d: the standardised state of a standardised code."""
        return self.decoder(self.code_scale.denormalize(z))


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
    scale: Scaling,
    config: AutoencoderConfig | None = None,
    *,
    key: PRNGKeyArray,
    folder: Path | None = None,
) -> tuple[Autoencoder, list[dict[str, Any]]]:
    """Train on the next states of a log, standardised by `scale`, then standardise the codes."""
    config = config or AutoencoderConfig()
    init_key, fit_key = jax.random.split(key)
    optimiser = optax.adam(optax.cosine_decay_schedule(config.learning_rate, config.steps))
    model = Autoencoder(config, train.obs_dim, key=init_key)
    states = jax.vmap(scale.normalize)(Batch.of(train).next_obs)

    def loss(model: Autoencoder, batch: Array) -> Array:
        return ((jax.vmap(lambda x: model.decode(model.encode(x)))(batch) - batch) ** 2).mean()

    def step(state: Any, data: Array, *, key: PRNGKeyArray) -> tuple[Any, dict[str, Array]]:
        model, moments = state
        batch = data[jax.random.randint(key, (config.batch_size,), 0, len(data))]
        value, gradient = eqx.filter_value_and_grad(loss)(model, batch)
        updates, moments = optimiser.update(gradient, moments)
        return (eqx.apply_updates(model, updates), moments), {"loss": value}

    result = fit(
        step,
        (model, optimiser.init(eqx.filter(model, eqx.is_inexact_array))),
        states,
        steps=config.steps,
        key=fit_key,
        saving=None if folder is None else Saving(folder, asdict(config)),
        label="autoencoder",
    )
    model = result.state[0]
    codes = jax.vmap(model.encoder)(states)
    model = eqx.tree_at(lambda m: m.code_scale, model, Scaling.of(Normalizer.of(jax.device_get(codes))))
    return model, result.history


def reconstruction(model: Autoencoder, scale: Scaling, transitions: Transitions) -> Reconstruction:
    """Measure a trained autoencoder on a log, usually the hold-out."""
    batch = Batch.of(transitions)
    following = jax.vmap(scale.normalize)(batch.next_obs)
    change = following - jax.vmap(scale.normalize)(batch.obs)
    error = jax.vmap(lambda x: model.decode(model.encode(x)))(following) - following
    return Reconstruction(float(jnp.sqrt((error**2).mean())), float(jnp.sqrt((change**2).mean())))
