"""Fitted Q evaluation: a critic of the policy that is asked about, learned from the log alone.

    Q(s, a, h) = n(h) q(s, a, h) + e(s, a, h),   return = mean over first states of Q(s₀, π(s₀), H)
    n(h) q(s, a, h) = r + γ n(h − 1) q(s', a', h − 1),   e(s, a, h) = γ e(s', a', h − 1),   a' ~ π(s')
    and at a step that ends the task, q = 0 and e = r;   q(·, ·, 0) = e(·, ·, 0) = 0

h is how many steps are left, n(h) = Σ γᵏ over k < h. q is a mean reward per step, so that it has the scale
of rewards for every h. e is what the step that ends the task will earn. Such a reward comes once in an
episode, may be like no other, and is rare: in one number with the others it would be spread over all steps.
Targets of both are held inside the range that such rewards have. Where only the log was cut there is an a'.

Assumes that the log covers what the policy does, and that (s, a) says all about what follows. Critics differ
in their first weights, replicas in how much each episode counts (the Bayesian bootstrap, Rubin, 1981).
Policies, replicas and critics are axes of one program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from mcetm.agents.critics import polyak_update
from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.estimates.quantity import Quantity, episode_of_rows, times
from mcetm.estimates.rewards import RewardRange
from mcetm.nn.members import make_members
from mcetm.nn.mlp import LayerNormMLP
from mcetm.nn.scaling import InputScaling, Scaling
from mcetm.settings import Fraction, Positive, Rate, settings
from mcetm.training import Saving, init_optimiser, train_loop
from mcetm.training.batches import Batch
from mcetm.training.metrics import Metrics
from mcetm.training.optimise import adam, apply_gradient

_ROWS = 4096  # rows of which values are asked at once
_LEAST = 1e-6  # of a scale


@settings
class FQESettings:
    """Fitted Q evaluation. Sizes are for a laptop."""

    replicas: Positive = 4
    """Resamples of the log, each with critics of its own."""
    critics: Positive = 2
    """Critics of each resample; they differ in their first weights."""
    width: Positive = 64
    """Units of each hidden layer."""
    depth: Positive = 2
    """Hidden layers, with LayerNorm."""
    batch_size: Positive = 256
    """Transitions of a minibatch; all critics see the same ones."""
    learning_rate: Rate = 3e-3
    """Of Adam; it falls to 0 over the steps."""
    polyak: Fraction = 0.1
    """How far the slow critics that targets come from move at each update."""
    steps: Positive = 6000
    """Updates."""
    samples: Positive = 4
    """Actions of a policy that is stochastic at each state; one is enough for any other."""


class Critic(eqx.Module):
    """q(s, a, h) and e(s, a, h), one example at a time."""

    network: LayerNormMLP
    inputs: InputScaling
    outputs: Scaling
    """Of a mean reward per step, and of the reward of a step that ends the task."""
    horizon: int = eqx.field(static=True)

    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], left: Int[Array, ""]
    ) -> Float[Array, " outputs"]:
        """A mean reward per step of what is left, and what its end will earn."""
        share = left.astype(jnp.float32) / self.horizon
        # Little time left and much of it are told apart on a scale each.
        clock = jnp.stack([2.0 * share - 1.0, jnp.log(jnp.maximum(share, 1e-6)) / 2.0 + 1.0])
        return self.outputs.denormalize(self.network(jnp.concatenate([self.inputs.pair(obs, action), clock])))


class _State(eqx.Module):
    critic: Critic
    slow: Critic
    opt_state: Any


class _Data(eqx.Module):
    """What all members learn from."""

    rows: Batch
    following: Float[Array, "policies rows samples action"]
    """Actions of each policy at next states."""
    usable: Bool[Array, "policies rows"]
    """Rows of which the next action is known."""
    episode: Int[Array, " rows"]
    time: Int[Array, " rows"]
    lengths: Float[Array, " horizon"]
    discount: Float[Array, ""]
    policy: Int[Array, " members"]
    tied: Bool[Array, " members"]
    """Members whose h is that of the log: what is left from a row on."""
    weights: Float[Array, "members episodes"]
    low: Float[Array, " outputs"]
    high: Float[Array, " outputs"]
    """What targets of q and e are held in."""


@dataclass(frozen=True)
class Fitted:
    """Critics on a leading axis, and what they were fitted with."""

    critics: Critic
    quantity: Quantity

    def values(self, obs: np.ndarray, actions: np.ndarray, policy: np.ndarray, left: Any) -> np.ndarray:
        """Q of each member at each state, mean over its policy's actions: policies, rows, samples, width."""
        left = np.broadcast_to(np.asarray(left, np.int32), len(obs))
        parts = [
            np.asarray(
                _values(
                    self.critics,
                    jnp.asarray(obs[start : start + _ROWS]),
                    jnp.asarray(actions[:, start : start + _ROWS]),
                    jnp.asarray(policy),
                    jnp.asarray(left[start : start + _ROWS]),
                )
            )
            for start in range(0, len(obs), _ROWS)
        ]
        usual, ending = np.moveaxis(np.concatenate(parts, axis=1).astype(np.float64), -1, 0)
        return usual * self.quantity.lengths[left] + ending


@eqx.filter_jit
def _values(critics: Critic, obs: Array, actions: Array, policy: Array, left: Array) -> Array:
    def member(critic: Critic, which: Array) -> Array:
        of_row = lambda o, some, h: jax.vmap(lambda a: critic(o, a, h))(some).mean(axis=0)  # noqa: E731
        return jax.vmap(of_row)(obs, actions[which], left)

    return eqx.filter_vmap(member)(critics, policy)


def fit_critics(
    log: Transitions,
    following: Float[np.ndarray, "policies rows samples action"],
    usable: Bool[np.ndarray, "policies rows"],
    quantity: Quantity,
    config: FQESettings,
    *,
    policy: Int[np.ndarray, " members"],
    weights: Float[np.ndarray, "members episodes"],
    tied: Sequence[int] = (),
    seed: int = 0,
    folder: Path | None = None,
) -> Fitted:
    """One critic for each member, of the policy and with the weights of episodes that it has.

    Policies in `tied` are evaluated at the log's own times: what is left of H from a row on.
    """
    statistics = Statistics.of(log)
    inputs = InputScaling.of(statistics.obs, statistics.action)
    outputs, bounds = _output_scale(log), RewardRange.of(log)
    low, high = (jnp.asarray(ends, jnp.float32) for ends in zip(bounds.going, bounds.ending, strict=True))
    data = _Data(
        Batch.of(log),
        jnp.asarray(following, jnp.float32),
        jnp.asarray(usable),
        jnp.asarray(episode_of_rows(log), jnp.int32),
        jnp.asarray(times(log), jnp.int32),
        jnp.asarray(quantity.lengths, jnp.float32),
        jnp.asarray(quantity.discount, jnp.float32),
        jnp.asarray(policy, jnp.int32),
        jnp.asarray(np.isin(policy, np.asarray(tied))),
        jnp.asarray(weights, jnp.float32),
        low,
        high,
    )
    width = log.obs_dim + log.action_dim + 2
    optimiser = adam(config.learning_rate, "cosine", config.steps)

    def make(key: PRNGKeyArray) -> Critic:
        network = LayerNormMLP(width, 2, width=config.width, depth=config.depth, key=key)
        return Critic(network, inputs, outputs, quantity.horizon)

    # A member is the same in whatever company: its key is that of its number.
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(seed), i))(jnp.arange(len(policy)))
    critics = make_members(make, keys)
    state = eqx.filter_vmap(lambda c: _State(c, c, init_optimiser(optimiser, c)))(critics)

    def step(state: _State, data: _Data, *, key: PRNGKeyArray) -> tuple[_State, Metrics]:
        row_key, left_key, sample_key = jax.random.split(key, 3)
        chosen = jax.random.randint(row_key, (config.batch_size,), 0, len(data.rows))
        drawn = _draw_left(config.batch_size, quantity.horizon, key=left_key)
        sample = jax.random.randint(sample_key, (), 0, data.following.shape[2])
        rows, actions = data.rows.take(chosen), data.following[:, chosen, sample]
        usable, episode, time = data.usable[:, chosen], data.episode[chosen], data.time[chosen]

        def member(
            state: _State, which: Array, tied: Array, weights: Array
        ) -> tuple[_State, dict[str, Array]]:
            left = jnp.where(tied, jnp.clip(quantity.horizon - time, 1, quantity.horizon), drawn)
            # With one step left nothing follows, so that no next action is missed.
            known = (usable[which] | (left == 1)) & (~tied | (time < quantity.horizon))
            counts = jnp.where(known, weights[episode], 0.0)
            target = _targets(state.slow, rows, actions[which], left, data)

            def loss(critic: Critic) -> Array:
                error = (jax.vmap(critic)(rows.obs, rows.action, left) - target) / outputs.std
                return (counts * (error**2).sum(axis=-1)).mean() / jnp.maximum(counts.mean(), 1e-6)

            value, gradient = eqx.filter_value_and_grad(loss)(state.critic)
            critic, opt_state = apply_gradient(optimiser, state.critic, gradient, state.opt_state)
            return _State(critic, polyak_update(state.slow, critic, config.polyak), opt_state), {
                "loss": value
            }

        return eqx.filter_vmap(member)(state, data.policy, data.tied, data.weights)

    saving = None
    if folder is not None:
        given = {"weights": np.asarray(weights).tolist(), "policy": np.asarray(policy).tolist()}
        saving = Saving(
            folder, {**asdict(config), **asdict(quantity), **given, "data": log.checksum, "seed": seed}
        )
    result = train_loop(
        step,
        state,
        data,
        steps=config.steps,
        key=jax.random.key(seed),
        saving=saving,
        label="fitted Q evaluation",
    )
    return Fitted(result.state.slow, quantity)


def _draw_left(count: int, horizon: int, *, key: PRNGKeyArray) -> Int[Array, " rows"]:
    """How much is left: half of them evenly, half evenly by their logarithm; values grow from the end."""
    even_key, log_key = jax.random.split(key)
    even = jax.random.randint(even_key, (count,), 1, horizon + 1)
    share = jax.random.uniform(log_key, (count,))
    by_log = jnp.exp(share * jnp.log(horizon + 0.999)).astype(jnp.int32)
    return jnp.where(jnp.arange(count) % 2 == 0, even, jnp.clip(by_log, 1, horizon)).astype(jnp.int32)


def _targets(slow: Critic, rows: Batch, action: Array, left: Array, data: _Data) -> Array:
    """The right sides of the equations at the head of this file."""
    after = jax.vmap(slow)(rows.next_or_same, action, jnp.maximum(left - 1, 1))
    after = jnp.where((left > 1)[:, None], after, 0.0)
    discounted = data.lengths[left] - 1.0  # γ n(h − 1)
    usual = jnp.where(rows.terminated, 0.0, rows.reward + discounted * after[:, 0]) / data.lengths[left]
    ending = jnp.where(rows.terminated, rows.reward, data.discount * after[:, 1])
    return jnp.clip(jnp.stack([usual, ending], axis=-1), data.low, data.high)


def _output_scale(log: Transitions) -> Scaling:
    """Of both outputs: the rewards of steps that go on, and the largest that ends the task."""
    going, ending = log.reward[~log.terminated], log.reward[log.terminated]
    mean = float(going.mean()) if len(going) else 0.0
    # Where the task can end, a mean over all that is left is far from a reward that is always the same.
    spread = max(float(going.std()) if len(going) else 0.0, 0.25 * abs(mean), _LEAST)
    largest = max(float(np.abs(ending).max()) if len(ending) else 0.0, _LEAST)
    return Scaling(jnp.array([mean, 0.0], jnp.float32), jnp.array([spread, largest], jnp.float32))


def bootstrap_weights(episodes: int, replicas: int, *, seed: int) -> Float[np.ndarray, "replicas episodes"]:
    """How much each episode counts in each replica: draws of the Bayesian bootstrap, 1 on average."""
    drawn = np.random.default_rng(seed).exponential(size=(replicas, episodes))
    return drawn / drawn.mean(axis=1, keepdims=True)


def bellman_residual(
    fitted: Fitted,
    held_out: Transitions,
    following: np.ndarray,
    usable: np.ndarray,
    policy: np.ndarray,
    tied: Sequence[int] = (),
    *,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """What the equation leaves of each member on held-out rows: by its size, and as a return.

    The first is the root mean square of target − value in spreads of the reward. Noise of the process is part
    of it, so that 0 is reached by a deterministic one alone. The second is n(H) times the mean. An error is
    added at every step, so this is what a whole episode is wrong by, if its steps are like those of the log.
    """
    rows = np.random.default_rng(seed).permutation(len(held_out))[:_ROWS]
    horizon = fitted.quantity.horizon
    free = np.random.default_rng(seed + 1).integers(1, horizon + 1, len(rows)).astype(np.int32)
    own = np.clip(horizon - times(held_out)[rows], 1, horizon).astype(np.int32)
    spread = max(float(np.std(held_out.reward)), 1e-6)
    size, summed = np.zeros(len(policy)), np.zeros(len(policy))
    for fixed in (False, True):
        members = np.isin(policy, np.asarray(tied)) == fixed
        if not members.any():
            continue
        left = own if fixed else free
        some = Fitted(_chosen(fitted.critics, members), fitted.quantity)
        which = policy[members]
        taken = np.broadcast_to(
            held_out.action[rows][None, :, None], (len(following), len(rows), 1, held_out.action_dim)
        )
        now = some.values(held_out.obs[rows], taken, which, left)
        then = some.values(held_out.next_or_same[rows], following[:, rows], which, np.maximum(left - 1, 1))
        then = np.where(held_out.terminated[rows] | (left == 1), 0.0, then)
        known = usable[which][:, rows] | (left == 1)
        error = np.where(known, held_out.reward[rows] + fitted.quantity.discount * then - now, 0.0)
        count = np.maximum(known.sum(axis=1), 1)
        size[members] = np.sqrt((error**2).sum(axis=1) / count) / spread
        summed[members] = error.sum(axis=1) / count * fitted.quantity.lengths[-1]
    return size, summed


def _chosen(critics: Critic, members: np.ndarray) -> Critic:
    return jax.tree_util.tree_map(lambda leaf: leaf[members] if eqx.is_array(leaf) else leaf, critics)
