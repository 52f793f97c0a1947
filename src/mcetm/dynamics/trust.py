"""Where a model is trusted: limits on two scores, both found on held-out data.

The score of a *pair* (s, a) is how far the members' predictions lie apart. It takes forward passes only, so
that a policy can ask it at every step. The score of a *next state* is its energy, where a model has energies;
where it has none, the pair's score stands in for it.
"""

from __future__ import annotations

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mcetm.data.transitions import Transitions
from mcetm.dynamics.calibrate import CalibrationSettings, Rule, Threshold, calibrate
from mcetm.dynamics.model import Samples, TransitionModel
from mcetm.training.batches import Batch

Tested = Literal["next-state", "pair", "nothing"]
"""What a step is cut off by."""


class TrustRegion(eqx.Module):
    """The limits, and what lies outside them."""

    pair_limit: Float[Array, ""]
    """Disagreement above which a pair is not trusted."""
    next_state: Threshold | None = None
    """δ of each member's energies; None for a model without energies."""

    @classmethod
    def of(
        cls,
        model: TransitionModel,
        holdout: Transitions,
        config: CalibrationSettings | None = None,
        *,
        key: PRNGKeyArray,
    ) -> TrustRegion:
        """Find both limits on held-out rows."""
        config = config or CalibrationSettings()
        limit = jnp.quantile(held_out_disagreement(model, holdout, config, key=key), config.quantile)
        energetic: Any = model
        return cls(limit, calibrate(energetic, holdout, config, key=key) if model.has_energy else None)

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
        if tested == "nothing":
            return tuple(jnp.zeros(shape, bool) for _ in rules)
        if tested == "pair" or self.next_state is None:
            far = model.apart(obs, action, key=key) > self.pair_limit
            return tuple(jnp.broadcast_to(far, shape) for _ in rules)
        energetic: Any = model
        level = self.next_state.level(energetic, obs, action)
        return tuple(self.next_state.exceeded(drawn, rule, level=level, selected=selected) for rule in rules)


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
