"""The threshold δ above which a next state is not trusted, set per member from held-out data.

InfoNCE leaves the level of an energy free, so a fixed number means nothing across members or runs; a quantile
of the energies a member reaches on held-out data does. They are taken at *inferred* states, which is what
the threshold is compared with later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mcetm.data.transitions import Transitions
from mcetm.dynamics.inference import EnergyEnsemble, Samples
from mcetm.errors import UserError
from mcetm.training.batches import Batch

Rule = Literal["per-sample", "minimum", "selected"]


@dataclass(frozen=True)
class CalibrationConfig:
    """How the threshold is found."""

    mode: Literal["quantile", "absolute"] = "quantile"
    quantile: float = 0.99
    """Share of held-out energies below the threshold; the paper's text says 0.95."""
    absolute: float = 0.0
    """The threshold itself, in `absolute` mode (the paper's table)."""
    samples: int = 10
    rows: int = 5000
    """Held-out rows used at most."""
    batch_size: int = 500


class Threshold(eqx.Module):
    """δ_i of each member, and the virtual termination ν it defines (equation 8 of the paper)."""

    values: Float[Array, " members"]

    def exceeded(self, samples: Samples, rule: Rule = "per-sample") -> Bool[Array, "members samples"]:
        """ν for each sample.

        `per-sample` tests each by itself, with the member that drew it (the paper's ν); `minimum` tests the
        lowest energy of each member's samples (its definition of the OOD set) and marks all of them alike;
        `selected` is `per-sample` for callers that keep one sample only.
        """
        above = samples.energy > self.values[:, None]
        if rule == "minimum":
            return jnp.broadcast_to(above.all(axis=1, keepdims=True), above.shape)
        return above


def held_out_energies(
    model: EnergyEnsemble, holdout: Transitions, config: CalibrationConfig, *, key: PRNGKeyArray
) -> Float[Array, "members draws"]:
    """Energies that each member's own samples end at, over held-out (s, a)."""
    rows_key, draw_key = jax.random.split(key)
    data = Batch.of(holdout)
    chosen = jax.random.permutation(rows_key, len(holdout))[: config.rows]

    @eqx.filter_jit
    def energies(rows: Array, key: PRNGKeyArray) -> Array:
        batch = data.take(rows)
        draw = lambda o, a, k: model.samples(o, a, config.samples, key=k).energy  # noqa: E731
        found = jax.vmap(draw)(batch.obs, batch.action, jax.random.split(key, len(rows)))
        return jnp.moveaxis(found, 0, 1).reshape(found.shape[1], -1)

    starts = range(0, len(chosen), config.batch_size)
    parts = [energies(chosen[i : i + config.batch_size], jax.random.fold_in(draw_key, i)) for i in starts]
    return jnp.concatenate(parts, axis=1)


def calibrate(
    model: EnergyEnsemble, holdout: Transitions, config: CalibrationConfig | None = None, *, key: PRNGKeyArray
) -> Threshold:
    """The threshold of each member."""
    config = config or CalibrationConfig()
    if not 0.0 < config.quantile < 1.0:
        raise UserError(f"The quantile must lie between 0 and 1, not {config.quantile}.")
    if config.mode == "absolute":
        return Threshold(jnp.full(model.member_count(), config.absolute))
    energies = held_out_energies(model, holdout, config, key=key)
    return Threshold(jnp.quantile(energies, config.quantile, axis=1))
