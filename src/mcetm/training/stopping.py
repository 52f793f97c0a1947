"""Early stopping: the best state by a validation score, and when there is no more to hope for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mcetm.settings import Positive, Weight, settings


@settings
class EarlyStopping:
    """Stop when the validation score (lower is better) has not improved for a while; keep the best state.

    With one score per member each member keeps its own best, and the wait counts while none improves.
    """

    patience: Positive = 5
    """Validations without improvement after which training stops."""
    improvement: Weight = 0.01
    """Relative improvement that counts."""


class Best(eqx.Module):
    """The best state so far, its score, and how many validations ago it was found."""

    state: Any
    score: Float[Array, ...]
    stale: Int[Array, ""]


def no_best(state: Any, validate: Callable[[Any], dict[str, Array]] | None) -> Best:
    """Before the first validation: whatever comes is better."""
    assert validate is not None  # noqa: S101 (checked by the caller)
    score = jnp.asarray(validate(state)["score"])
    return Best(state, jnp.full_like(score, jnp.inf), jnp.zeros((), jnp.int32))


def updated(best: Best, state: Any, score: Array, rule: EarlyStopping) -> Best:
    """The best of before and now; of each member where there is a score for each."""
    first = jnp.isinf(best.score)
    better = jnp.where(
        first, jnp.isfinite(score), best.score - score > rule.improvement * jnp.abs(best.score)
    )

    def choose(old: Any, new: Any) -> Any:
        if not eqx.is_array(new):
            return new
        if jnp.issubdtype(new.dtype, jax.dtypes.prng_key):
            return new
        return jnp.where(better.reshape(better.shape + (1,) * (new.ndim - better.ndim)), new, old)

    return Best(
        state=jax.tree_util.tree_map(choose, best.state, state),
        score=jnp.where(better, score, best.score),
        stale=jnp.where(better.any(), 0, best.stale + 1).astype(jnp.int32),
    )


def is_stale(best: Best | None, rule: EarlyStopping | None) -> bool:
    """Whether the best was found too long ago."""
    return best is not None and rule is not None and int(best.stale) >= rule.patience
