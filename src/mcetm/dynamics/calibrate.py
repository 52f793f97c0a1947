"""The threshold δ above which a next state is not trusted, set per member from held-out data.

InfoNCE leaves the level of an energy free, so a fixed number means nothing across members or runs; a quantile
of the energies a member reaches on held-out data does. They are taken at *inferred* states, which is what
the threshold is compared with later. The level may still differ from one (s, a) to the next: the `relative`
mode measures energies from a level that any c(s, a) moves along with them. `conformal` is about the lowest
energy of a member's samples, which is what the rule `minimum` tests: of fresh (s, a) from where the held-out
ones come from, at most a share 1 − q is cut off, whatever the energies are like.
"""

from __future__ import annotations

import math
from typing import Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from mcetm.data.transitions import Transitions
from mcetm.dynamics.model import EnergyModel, Samples
from mcetm.errors import UserError
from mcetm.settings import Fraction, Number, Positive, settings
from mcetm.training.batches import Batch

Rule = Literal["per-sample", "minimum", "selected"]


@settings
class CalibrationSettings:
    """How the threshold is found."""

    mode: Literal["quantile", "absolute", "relative", "conformal"] = "quantile"
    """Where δ comes from; see above."""
    quantile: Fraction = 0.99
    """Share of held-out energies below the threshold; the paper's text says 0.95."""
    absolute: Number = 0.0
    """The threshold itself, in `absolute` mode (the paper's table)."""
    references: Positive = 64
    """Next states that fix the level of each (s, a) in `relative` mode."""
    samples: Positive = 10
    """Next states of each member that are drawn for a held-out row."""
    rows: Positive = 5000
    """Held-out rows used at most."""
    batch_size: Positive = 500
    """Rows at once."""


class Threshold(eqx.Module):
    """δ_i of each member, and the virtual termination ν it defines (equation 8 of the paper)."""

    values: Float[Array, " members"]
    changes: Float[Array, "references obs"] | None = None
    """Changes of state that make the reference set of every s; only in `relative` mode."""

    def level(
        self, model: EnergyModel, obs: Float[Array, " obs"], action: Float[Array, " action"]
    ) -> Float[Array, " members"]:
        """What each member's energies are measured from: −logsumexp(−E) over the reference set, or 0."""
        if self.changes is None:
            return jnp.zeros_like(self.values)
        energies = jax.vmap(lambda change: model.energies(obs, action, obs + change))(self.changes)
        return -jax.nn.logsumexp(-energies, axis=0)

    def exceeded(
        self,
        samples: Samples,
        rule: Rule = "per-sample",
        *,
        level: Float[Array, " members"] | None = None,
        selected: tuple[Int[Array, ""], Int[Array, ""]] | None = None,
    ) -> Bool[Array, "members samples"]:
        """ν for each sample, under one of three rules.

        `per-sample` tests each by itself, with the member that drew it (the paper's ν); `minimum` tests the
        lowest energy of each member's samples (its definition of the OOD set) and marks all of them alike;
        `selected` lets one sample, (member, number), decide for all. `level` is needed in `relative` mode.
        """
        if self.changes is not None and level is None:
            raise ValueError("a relative threshold needs the level of this (s, a): Threshold.level")
        if samples.energy is None:
            raise ValueError("a threshold on energies needs samples that have some")
        energy = samples.energy if level is None else samples.energy - level[:, None]
        above = energy > self.values[:, None]
        if rule == "minimum":
            return jnp.broadcast_to(above.all(axis=1, keepdims=True), above.shape)
        if rule == "selected":
            if selected is None:
                raise ValueError("the rule 'selected' needs to know which sample was selected")
            return jnp.broadcast_to(above[selected], above.shape)
        return above


def held_out_energies(
    model: EnergyModel,
    holdout: Transitions,
    config: CalibrationSettings,
    threshold: Threshold | None = None,
    *,
    key: PRNGKeyArray,
) -> Float[Array, "members draws"]:
    """Energies that each member's own samples end at, over held-out (s, a), from the threshold's level."""
    found = _by_row(model, holdout, config, threshold, key=key)
    return found.reshape(len(found), -1)


def _by_row(
    model: EnergyModel,
    holdout: Transitions,
    config: CalibrationSettings,
    threshold: Threshold | None,
    *,
    key: PRNGKeyArray,
) -> Float[Array, "members rows samples"]:
    rows_key, draw_key = jax.random.split(key)
    data = Batch.of(holdout)
    chosen = jax.random.permutation(rows_key, len(holdout))[: config.rows]
    threshold = threshold or Threshold(jnp.zeros(model.num_members))

    @eqx.filter_jit
    def energies(rows: Array, key: PRNGKeyArray) -> Array:
        batch = data.take(rows)

        def draw(obs: Array, action: Array, key: PRNGKeyArray) -> Array:
            drawn = cast(Array, model.draw(obs, action, config.samples, key=key).energy)
            return drawn - threshold.level(model, obs, action)[:, None]

        found = jax.vmap(draw)(batch.obs, batch.action, jax.random.split(key, len(rows)))
        return jnp.moveaxis(found, 0, 1)

    starts = range(0, len(chosen), config.batch_size)
    parts = [energies(chosen[i : i + config.batch_size], jax.random.fold_in(draw_key, i)) for i in starts]
    return jnp.concatenate(parts, axis=1)


def calibrate(
    model: EnergyModel, holdout: Transitions, config: CalibrationSettings | None = None, *, key: PRNGKeyArray
) -> Threshold:
    """The threshold of each member."""
    config = config or CalibrationSettings()
    members = model.num_members
    if config.mode == "absolute":
        return Threshold(jnp.full(members, config.absolute))
    reference_key, draw_key = jax.random.split(key)
    changes = None
    if config.mode == "relative":
        data = Batch.of(holdout.with_next).draw(config.references, key=reference_key)
        changes = data.next_obs - data.obs
    threshold = Threshold(jnp.zeros(members), changes)
    if config.mode == "conformal":
        return Threshold(conformal(_by_row(model, holdout, config, None, key=draw_key).min(axis=2), config))
    energies = held_out_energies(model, holdout, config, threshold, key=draw_key)
    return Threshold(jnp.quantile(energies, config.quantile, axis=1), changes)


def conformal(lowest: Float[Array, "members rows"], config: CalibrationSettings) -> Float[Array, " members"]:
    """The ⌈(n + 1) q⌉-th smallest of n: a fresh one is above it with probability at most 1 − q."""
    count = lowest.shape[1]
    place = math.ceil((count + 1) * config.quantile)
    if place > count:
        raise UserError(
            f"A conformal threshold at {config.quantile:g} needs more than {count} held-out rows."
        )
    return jnp.sort(lowest, axis=1)[:, place - 1]
