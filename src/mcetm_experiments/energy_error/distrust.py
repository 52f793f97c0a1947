"""Scores that say how far a predicted next state should be distrusted, beside how wrong it is."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents import spread_penalty
from mcetm.data import Statistics, Transitions
from mcetm.dynamics import EnergyTransitionModel, GaussianModel, Samples, Threshold
from mcetm.nn import InputScaling
from mcetm_experiments.shared.batched import in_batches

MODELS = ("MC-ETM", "Gaussian ensemble")
SCORES = {
    "MC-ETM energy": "MC-ETM",
    "MC-ETM expected error": "MC-ETM",
    "MC-ETM terminal energy": "MC-ETM",
    "MC-ETM member spread": "MC-ETM",
    "MC-ETM Q-penalty": "MC-ETM",
    "Gaussian log-std": "Gaussian ensemble",
    "Gaussian total spread": "Gaussian ensemble",
    "ensemble disagreement": "Gaussian ensemble",
    "max-aleatoric (MOPO)": "Gaussian ensemble",
    "Q-dispersion (MOBILE)": "Gaussian ensemble",
    "nearest neighbour": "MC-ETM",
    "random": "MC-ETM",
}
"""Every score, and the model with whose errors it is compared: its own, if it is of one."""
SPREADS = ("MC-ETM member spread", "MC-ETM Q-penalty")
"""Scores between MC-ETM's members, which a single one does not have."""
IN_UNITS = ("MC-ETM expected error", "Gaussian total spread")
"""Scores that say how large the error is, and not only where it is larger."""


@runtime_checkable
class Valuer(Protocol):
    """Who acts in imagined states and says what they are worth: a learner, or the evaluated behaviour."""

    def act(self, obs: Float[Array, " obs"], *, key: PRNGKeyArray) -> Float[Array, " action"]:
        """An action for a rollout."""
        ...

    def next_value(self, obs: Float[Array, " obs"], *, key: PRNGKeyArray) -> Float[Array, ""]:
        """What a next state is worth."""
        ...


class Subject(eqx.Module):
    """Everything that scores are made of."""

    energy: EnergyTransitionModel
    threshold: Threshold
    regressor: GaussianModel
    valuer: Valuer
    inputs: InputScaling
    change: Float[Array, " obs"]
    """Spread of s' − s in the log, the unit of errors."""
    neighbours: Float[Array, "rows obs_action"]
    """Standardised (s, a) of the log."""
    count: int = eqx.field(static=True)
    """N, the samples of each member."""

    @classmethod
    def of(cls, log: Transitions, rows: int, *, seed: int, **parts: Any) -> Subject:
        """With at most so many rows of the log as neighbours."""
        statistics = Statistics.of(log)
        inputs = InputScaling.of(statistics.obs, statistics.action)
        chosen = np.random.default_rng(seed).permutation(len(log))[:rows]
        neighbours = jax.vmap(inputs.pair)(jnp.asarray(log.obs[chosen]), jnp.asarray(log.action[chosen]))
        # A component that never changes has no spread to measure errors in.
        spread = np.asarray(statistics.change.std, np.float32)
        change = jnp.asarray(np.where(spread > 0.0, spread, 1.0))
        return cls(inputs=inputs, change=change, neighbours=neighbours, **parts)

    def error(self, predicted: Float[Array, " obs"], ground_truth: Float[Array, " obs"]) -> dict[str, Array]:
        """Root mean square over components in units of their changes' spread, and the paper's plain MSE."""
        away = predicted - ground_truth
        return {"error": jnp.sqrt(((away / self.change) ** 2).mean()), "mse": (away**2).mean()}

    def look(
        self,
        obs: Float[Array, " obs"],
        action: Float[Array, " action"],
        ground_truth: Float[Array, " obs"],
        *,
        key: PRNGKeyArray,
    ) -> dict[str, dict[str, Any]]:
        """Scores, errors and truncations ν of one (s, a), whose next state is the ground truth."""
        energy_key, point_key, gaussian_key, value_key, chance_key = jax.random.split(key, 5)
        drawn = self.energy.draw(obs, action, self.count, key=energy_key)
        imagined = self.regressor.draw(obs, action, self.count, key=gaussian_key)
        level = self.threshold.level(self.energy, obs, action)
        zero = level + self.threshold.values
        lowest, terminal = (
            find(obs, action, key=point_key) - zero for find in (self.energy.minimum, self.energy.terminal)
        )
        means, stds = self.regressor.of_members(obs, action)
        spreads = self.regressor.spreads(obs, action, key=gaussian_key)
        away = self.neighbours - self.inputs.pair(obs, action)
        scores = {
            "MC-ETM energy": lowest.mean(),
            "MC-ETM expected error": self.energy.expected_error(obs, action, key=point_key),
            "MC-ETM terminal energy": terminal.mean(),
            "MC-ETM member spread": jnp.sqrt((drawn.epistemic / self.change**2).mean()),
            "MC-ETM Q-penalty": self._value_spread(drawn, key=value_key),
            "Gaussian log-std": jnp.log(stds / self.change).mean(),
            "Gaussian total spread": jnp.sqrt(
                (((stds**2).mean(axis=0) + means.var(axis=0, ddof=1)) / self.change**2).mean()
            ),
            "ensemble disagreement": self.regressor.apart(obs, action, key=gaussian_key),
            "max-aleatoric (MOPO)": jnp.linalg.norm(spreads, axis=-1).max(),
            "Q-dispersion (MOBILE)": self._value_spread(imagined, key=value_key),
            # Differences, not products: these lose the small distances to rounding.
            "nearest neighbour": jnp.sqrt((away**2).sum(axis=-1).min()),
            "random": jax.random.uniform(chance_key),
        }
        if self.energy.num_members == 1:
            scores = {name: score for name, score in scores.items() if name not in SPREADS}
        return {
            "scores": scores,
            "errors": {
                "MC-ETM": self.error(self.energy.predict(obs, action, key=point_key), ground_truth),
                "Gaussian ensemble": self.error(means.mean(axis=0), ground_truth),
            },
            "truncated": {
                rule: self.threshold.exceeded(drawn, rule, level=level).mean(dtype=jnp.float32)
                for rule in ("per-sample", "minimum")
            },
        }

    def _value_spread(self, drawn: Samples, *, key: PRNGKeyArray) -> Float[Array, ""]:
        """Spread over members of what their samples are worth."""
        keys = jax.random.split(key, drawn.next_obs.shape[:2])
        worth = jax.vmap(jax.vmap(lambda s, k: self.valuer.next_value(s, key=k)))(drawn.next_obs, keys)
        return spread_penalty(worth.mean(axis=1))


@eqx.filter_jit
def _look(subject: Subject, obs: Array, action: Array, ground_truth: Array, keys: Array) -> Any:
    return jax.vmap(lambda o, a, s, k: subject.look(o, a, s, key=k))(obs, action, ground_truth, keys)


def look_at(
    subject: Subject,
    obs: Float[np.ndarray, "rows obs"],
    action: Float[np.ndarray, "rows action"],
    ground_truth: Float[np.ndarray, "rows obs"],
    *,
    batch_size: int,
    key: PRNGKeyArray,
) -> dict[str, dict[str, Any]]:
    """`Subject.look` at every row."""
    keys = jax.random.split(key, len(obs))
    columns = (*(jnp.asarray(column) for column in (obs, action, ground_truth)), keys)
    return in_batches(lambda *rows: _look(subject, *rows), columns, batch_size)
