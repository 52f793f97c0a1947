"""Where a model is trusted: limits on three scores, all found on held-out data.

The score of a *pair* (s, a) is how unlike the log's own pairs it is (`dynamics/pairs.py`). It takes forward
passes only, so that a policy can ask it at every step. The score of a *next state* is its energy, where a
model has energies. *Disagreement*, how far the members' predictions lie apart, stands in for either where
that is not to be had, and is what MOReL and its kind are made of.
"""

from __future__ import annotations

from typing import Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mcetm.data.transitions import Transitions
from mcetm.dynamics.calibrate import CalibrationSettings, Rule, Threshold, calibrate
from mcetm.dynamics.model import EnergyModel, Samples, TransitionModel
from mcetm.dynamics.pairs import PairScore
from mcetm.training.batches import Batch

Tested = Literal["next-state", "pair", "both", "disagreement", "nothing"]
"""What a step is cut off by; `both`: by a next state or by a pair."""


class TrustRegion(eqx.Module):
    """Where a model is trusted: the limits on three scores, and what lies outside them."""

    disagreement: Float[Array, ""]
    """Disagreement of members above which a pair is not trusted."""
    next_state: Threshold | None = None
    """δ of each member's energies; None for a model without energies."""
    pairs: PairScore | None = None
    """What scores a pair, with its limit; None takes disagreement."""

    @classmethod
    def of(
        cls,
        model: TransitionModel,
        holdout: Transitions,
        config: CalibrationSettings | None = None,
        *,
        pairs: PairScore | None = None,
        key: PRNGKeyArray,
    ) -> TrustRegion:
        """Find the limits on held-out rows; `pairs` is what `fit_pairs` gives."""
        config = config or CalibrationSettings()
        limit = jnp.quantile(held_out_disagreement(model, holdout, config, key=key), config.quantile)
        limits = calibrate(cast(EnergyModel, model), holdout, config, key=key) if model.has_energy else None
        return cls(limit, limits, pairs)

    @property
    def pair_limit(self) -> Float[Array, ""]:
        """What the score of a pair is compared with."""
        return self.disagreement if self.pairs is None else self.pairs.limit

    def pair_score(
        self,
        model: TransitionModel,
        obs: Float[Array, " obs"],
        action: Float[Array, " action"],
        *,
        key: PRNGKeyArray,
    ) -> Float[Array, ""]:
        """The score of one pair."""
        return model.apart(obs, action, key=key) if self.pairs is None else self.pairs(obs, action)

    def outside(
        self,
        model: TransitionModel,
        obs: Float[Array, " obs"],
        action: Float[Array, " action"],
        drawn: Samples,
        rules: tuple[Rule, ...],
        *,
        tested: Tested = "next-state",
        selected: tuple[Array, Array],
        key: PRNGKeyArray,
    ) -> tuple[Bool[Array, "members samples"], ...]:
        """Which next states of one (s, a) lie outside, under each of these rules."""
        shape = drawn.next_obs.shape[:2]
        far = jnp.zeros(shape, bool)
        by_energy = tested in ("next-state", "both") and self.next_state is not None
        # Written so that a score that is not a number lies outside.
        if tested in ("pair", "both"):
            far |= ~(self.pair_score(model, obs, action, key=key) <= self.pair_limit)
        if tested == "disagreement" or (tested == "next-state" and not by_energy):
            far |= ~(model.apart(obs, action, key=key) <= self.disagreement)
        if not by_energy:
            return tuple(far for _ in rules)
        limit = cast(Threshold, self.next_state)
        level = limit.level(cast(EnergyModel, model), obs, action)
        return tuple(far | limit.exceeded(drawn, rule, level=level, selected=selected) for rule in rules)


def held_out_disagreement(
    model: TransitionModel, holdout: Transitions, config: CalibrationSettings, *, key: PRNGKeyArray
) -> Float[Array, " rows"]:
    """Disagreement at held-out pairs, at most as many as the settings say."""
    rows_key, draw_key = jax.random.split(key)
    data = Batch.of(holdout)
    chosen = data.take(jax.random.permutation(rows_key, len(holdout))[: config.rows])
    keys = jax.random.split(draw_key, len(chosen))

    @eqx.filter_jit
    def measure(model: TransitionModel, chosen: Batch) -> Array:
        one = lambda inputs: model.apart(*inputs[:2], key=inputs[2])  # noqa: E731
        return jax.lax.map(one, (chosen.obs, chosen.action, keys), batch_size=config.batch_size)

    return measure(model, chosen)
