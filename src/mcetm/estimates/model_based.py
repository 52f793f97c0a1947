"""The model-based estimate: whole episodes of the policy, imagined from the log's first states.

    return = mean over members m and first states s₀ of Σ γᵗ r(sₜ, aₜ, sₜ₊₁),   sₜ₊₁ ~ p_m(· | sₜ, aₜ)

A member carries an episode from its first step to its last, so that what it has wrong adds up as it would
for a policy that meets it again and again. Rewards are held inside the range of the log's; those that end the
task have a range of their own.

Assumes that the model is right wherever the policy goes. How far it goes beyond the data is reported: the
share of steps outside the trust region, when an episode first leaves it, and the return up to there with a
bound on the rest, which is what no model is needed for:

    E[Σ_{t<τ} γᵗ rₜ] + E[n(rest)] · [r_min, r_max] + P(τ < H) · [e_min, e_max],   τ: the first step outside
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mcetm.console import progress
from mcetm.data.transitions import Transitions
from mcetm.dynamics.world import World
from mcetm.estimates.asked import Asked
from mcetm.estimates.quantity import Quantity, times
from mcetm.estimates.rewards import RewardRange
from mcetm.settings import Positive, settings


@settings
class ModelBasedSettings:
    """The model-based estimate."""

    starts: Positive = 100
    """First states at most; fewer where the log has fewer episodes."""
    repeats: Positive = 1
    """Imagined episodes of each member from each of them."""
    window: Positive = 20
    """Steps over which predictions are compared with held-out rows of the log."""
    windows: Positive = 500
    """How many such stretches of the log."""


@dataclass(frozen=True)
class Rollouts:
    """Imagined episodes: members, first states."""

    returns: Float[np.ndarray, "members starts"]
    trusted: Float[np.ndarray, "members starts"]
    """What was earned before the first step outside the trust region."""
    outside: Float[np.ndarray, "members starts"]
    """Share of an episode's steps that lie outside."""
    leaves: Int[np.ndarray, "members starts"]
    """The first step outside, or the horizon where there is none."""
    rest: Float[np.ndarray, "members starts"]
    """n of the steps that were left at that moment."""
    lengths: Int[np.ndarray, "members starts"]
    starts: Int[np.ndarray, " starts"]
    """Of which episodes of the log the first states are."""


@eqx.filter_jit
def _advance(
    world: World,
    obs: Float[Array, "policies members rows obs"],
    action: Float[Array, "policies members rows action"],
    key: PRNGKeyArray,
    time: Int[Array, ""],
) -> tuple[Array, ...]:
    """One step of every episode in its own member: next state, reward, whether it ends, whether outside.

    Policies meet the same noise.
    """

    def one(member: Array, obs: Array, action: Array, key: PRNGKeyArray) -> tuple[Array, ...]:
        draw_key, score_key = jax.random.split(key)
        following = world.model.draw(obs, action, 1, key=draw_key).next_obs[member, 0]
        outside = jnp.zeros((), bool)
        if world.trust is not None:
            score = world.trust.pair_score(world.model, obs, action, key=score_key)
            outside = ~(score <= world.trust.pair_limit)
        return (
            following,
            world.reward(obs, action, following),
            world.ends(obs, action, following),
            outside,
        )

    members, rows = obs.shape[1:3]
    keys = jax.random.split(jax.random.fold_in(key, time), (members, rows))
    in_member = jax.vmap(one, in_axes=(None, 0, 0, 0))
    of_policy = jax.vmap(in_member, in_axes=(0, 0, 0, 0))
    return jax.vmap(of_policy, in_axes=(None, 0, 0, None))(jnp.arange(members), obs, action, keys)


def roll_out(
    world: World,
    policies: Sequence[Asked],
    log: Transitions,
    quantity: Quantity,
    config: ModelBasedSettings,
    bounds: RewardRange,
    *,
    seed: int = 0,
) -> list[Rollouts]:
    """Whole episodes of each policy, side by side; policies act in NumPy, as they would outside."""
    chosen = np.random.default_rng(seed).permutation(log.num_episodes)[: config.starts]
    noise = [np.random.default_rng((seed, 1)) for _ in policies]
    rows = np.repeat(log.obs[log.episode_starts[chosen]], config.repeats, axis=0)
    obs = np.broadcast_to(rows, (len(policies), world.model.num_members, *rows.shape)).astype(np.float32)
    shape = obs.shape[:3]
    action = np.zeros((*shape, log.action_dim), np.float32)
    alive, inside = np.ones(shape, bool), np.ones(shape, bool)
    total, trusted, rest = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    outside, steps = np.zeros(shape), np.zeros(shape, int)
    leaves = np.full(shape, quantity.horizon)
    worth, lengths = quantity.weights, quantity.lengths
    with progress("episodes in the model", quantity.horizon, unit="steps") as advance:
        for t in range(quantity.horizon):
            for i, policy in enumerate(policies):
                if alive[i].any():
                    action[i] = policy.act(obs[i].reshape(-1, obs.shape[-1]), noise[i]).reshape(
                        action[i].shape
                    )
            found = _advance(
                world, jnp.asarray(obs), jnp.asarray(action), jax.random.key(seed), jnp.asarray(t)
            )
            following, reward, ended, out = (np.asarray(part) for part in found)
            # What a model makes up where nothing is finite any more is outside, and goes no further.
            finite = np.isfinite(following).all(axis=-1) & np.isfinite(reward)
            out = (out | ~finite) & alive
            reward = bounds.hold(np.where(finite, reward, bounds.going[0]), ended)
            left = alive & inside & out
            leaves[left] = t
            rest[left] = worth[t] * lengths[quantity.horizon - t]
            inside &= ~out
            total += np.where(alive, worth[t] * reward, 0.0)
            trusted += np.where(alive & inside, worth[t] * reward, 0.0)
            outside += out
            steps += alive
            obs = np.where((alive & finite)[..., None], following, obs)
            alive &= ~ended
            advance(1)
            if not alive.any():
                break
    share, starts = outside / np.maximum(steps, 1), np.repeat(chosen, config.repeats)
    return [
        Rollouts(total[i], trusted[i], share[i], leaves[i], rest[i], steps[i], starts)
        for i in range(len(policies))
    ]


def missed(
    world: World,
    held_out: Transitions,
    quantity: Quantity,
    config: ModelBasedSettings,
    bounds: RewardRange,
    *,
    seed: int = 0,
) -> tuple[float, int] | None:
    """What the model misses of rewards that are known, as a return; and the steps of a window.

    Held-out stretches are imagined again with the recorded actions. The mean error of their summed rewards,
    per step, is what a whole episode is wrong by if nothing else is. None where no stretch is long enough.
    """
    length = min(config.window, quantity.horizon)
    time = times(held_out)
    to_end = np.repeat(held_out.episode_ends, held_out.episode_lengths) - np.arange(len(held_out))
    length = min(length, int(to_end.max()))
    begins = np.flatnonzero((to_end >= length) & (time < quantity.horizon))
    if not len(begins):
        return None
    rng = np.random.default_rng(seed)
    begins = rng.permutation(begins)[: config.windows]
    members = world.model.num_members
    shape = (1, members, len(begins))
    obs = np.broadcast_to(held_out.obs[begins], (*shape, held_out.obs_dim)).astype(np.float32)
    alive = np.ones(shape, bool)
    error = np.zeros(shape)
    for t in range(length):
        action = np.broadcast_to(held_out.action[begins + t], (*shape, held_out.action_dim))
        found = _advance(world, jnp.asarray(obs), jnp.asarray(action), jax.random.key(seed), jnp.asarray(t))
        following, reward, ended, _ = (np.asarray(part) for part in found)
        finite = np.isfinite(following).all(axis=-1) & np.isfinite(reward)
        predicted = np.where(alive & finite, bounds.hold(reward, ended), 0.0)
        error += predicted - held_out.reward[begins + t]
        obs = np.where(finite[..., None], following, obs)
        alive &= ~ended & finite
    return float(error.mean()) / length * float(quantity.lengths[-1]), length


def spread_of(found: Rollouts) -> tuple[float, float]:
    """The spread over members of their mean, and the standard error over first states."""
    over_members = found.returns.mean(axis=1)
    members = float(over_members.std(ddof=1)) if len(over_members) > 1 else 0.0
    episodes = np.unique(found.starts)
    by_episode = np.array([found.returns[:, found.starts == e].mean() for e in episodes])
    starts = float(by_episode.std(ddof=1) / np.sqrt(len(episodes))) if len(episodes) > 1 else 0.0
    return members, starts


def bounded(found: Rollouts, bounds: RewardRange) -> tuple[float, float]:
    """Least and largest return, if nothing but the trusted part is believed."""
    inside = float(found.trusted.mean())
    least, most = bounds.worth(float(found.rest.mean()), ends=float(np.mean(found.rest > 0.0)))
    return inside + least, inside + most
