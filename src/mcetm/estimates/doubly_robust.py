"""The doubly robust estimate: the critic's value, corrected by what the log's episodes really earned.

    return = mean V(s₀, H) + Σ_t γᵗ Σ_e w_t^e (r_t + γ V(s_{t+1}, H − t − 1) − Q(s_t, a_t, H − t))
    w_t^e  = ρ_{0:t}^e / Σ_e ρ_{0:t}^e,   ρ_{0:t} = Π_{k≤t} π(a_k | s_k) / β(a_k | s_k)

(Jiang & Li, 2016; with weights that sum to 1: Thomas & Brunskill, 2016.) It is right if the critic is right
*or* the weights are. Critic and β are fitted without the fold of episodes that they are applied to.

Assumes that β, a Gaussian that is fitted to the log, is the density that its actions were drawn with. Weights
are products over an episode: over many steps a few episodes have all the weight. (Σ ρ)² / Σ ρ² is how many
episodes that is worth, or Σ ρ, if that is less; where it is too few the estimate is refused. A deterministic
policy has no density; Gaussian noise around its action stands in, so that the return is that of the policy
with this noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from mcetm.data.transitions import Transitions
from mcetm.estimates.asked import Asked
from mcetm.estimates.behaviour import Behaviour, BehaviourSettings, log_densities, spreads
from mcetm.estimates.quantity import Quantity, episode_of_rows, times
from mcetm.settings import Positive, Rate, settings


@settings
class DoublyRobustSettings:
    """The doubly robust estimate."""

    folds: Annotated[int, Field(strict=True, ge=2, le=1000)] = 2
    """Parts of the episodes; critic and behaviour policy are fitted without the one they are applied to."""
    kernel: Rate = 0.5
    """Noise around the action of a deterministic policy, in spreads of the log's own policy."""
    least: Rate = 10.0
    """Episodes that the weights must be worth at every step."""
    behaviour: BehaviourSettings = field(default_factory=BehaviourSettings)
    """The policy that made the log."""
    resamples: Positive = 500
    """Draws of the bootstrap over episodes."""


@dataclass(frozen=True)
class Weights:
    """ρ_{0:t} of each episode at each step, by its logarithm; it stays where an episode has ended."""

    log_ratio: Float[np.ndarray, "episodes steps"]

    @property
    def effective(self) -> Float[np.ndarray, " steps"]:
        """How many episodes the weights of each step are worth.

        Σ ρ is the number of episodes on average. Where it is less, nothing in the log is like the policy, and
        weights that are all alike would hide that.
        """
        ratio = self._scaled
        found = ratio.sum(axis=0) ** 2 / (ratio**2).sum(axis=0)
        summed = np.log(ratio.sum(axis=0)) + self.log_ratio.max(axis=0)
        return np.minimum(found, np.exp(np.minimum(summed, np.log(len(ratio)))))

    def normalised(self, counts: Float[np.ndarray, " episodes"]) -> Float[np.ndarray, "episodes steps"]:
        """w, where episode e counts `counts[e]` times."""
        weighted = self._scaled * counts[:, None]
        return weighted / weighted.sum(axis=0)

    @property
    def _scaled(self) -> Float[np.ndarray, "episodes steps"]:
        return np.exp(self.log_ratio - self.log_ratio.max(axis=0))


def folds_of(log: Transitions, folds: int) -> Int[np.ndarray, " episodes"]:
    """The fold of each episode, dealt out in turn."""
    return np.arange(log.num_episodes) % min(folds, log.num_episodes)


def weights_of(
    policy: Asked,
    log: Transitions,
    behaviour: Behaviour,
    fold: Int[np.ndarray, " episodes"],
    quantity: Quantity,
    kernel: float,
) -> tuple[Weights, Float[np.ndarray, " action"]]:
    """The weights of a policy on a log, and the spread of the noise that a deterministic one was given."""
    spread = kernel * np.median(
        np.asarray(spreads(behaviour, log.obs[:: max(1, len(log) // 10_000)])), axis=0
    )
    spread = np.maximum(spread, 1e-6)
    own = log_densities(behaviour, log.obs, log.action)[fold[episode_of_rows(log)], np.arange(len(log))]
    ratio = policy.log_density(log.obs, log.action, spread) - own
    steps = min(int(log.episode_lengths.max()), quantity.horizon)
    table = np.zeros((log.num_episodes, steps))
    time = times(log)
    kept = time < steps
    table[episode_of_rows(log)[kept], time[kept]] = ratio[kept]
    return Weights(np.cumsum(table, axis=1)), spread


def corrected(
    weights: Weights,
    log: Transitions,
    quantity: Quantity,
    first: Float[np.ndarray, " episodes"],
    now: Float[np.ndarray, " rows"],
    following: Float[np.ndarray, " rows"],
    *,
    resamples: int,
    seed: int = 0,
) -> tuple[float, float]:
    """The estimate, and its spread over the bootstrap of episodes.

    `first` is V(s₀, H) of each episode, `now` Q(s, a, H − t) of each row and `following` V(s', H − t − 1).
    """
    steps = weights.log_ratio.shape[1]
    time, episode = times(log), episode_of_rows(log)
    error = log.reward + quantity.discount * np.where(log.terminated, 0.0, following) - now
    table = np.zeros((log.num_episodes, steps))
    kept = time < steps
    table[episode[kept], time[kept]] = error[kept]
    table *= quantity.weights[:steps]

    def estimate(counts: np.ndarray) -> float:
        base = float((counts * first).sum() / counts.sum())
        return base + float((weights.normalised(counts) * table).sum())

    rng = np.random.default_rng(seed)
    draws = [estimate(rng.exponential(size=log.num_episodes)) for _ in range(resamples)]
    return estimate(np.ones(log.num_episodes)), float(np.std(draws, ddof=1))
