"""Open-loop prediction: a model fed with its own predictions and the data's actions."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mcetm.data import Transitions
from mcetm_experiments.shared.baselines import Draw
from mcetm_experiments.shared.batched import in_batches


class Windows(eqx.Module):
    """Stretches of `horizon` consecutive transitions."""

    start: Float[Array, "windows obs"]
    action: Float[Array, "windows horizon action"]
    ground_truth: Float[Array, "windows horizon obs"]
    """The state after each step."""

    @classmethod
    def of(cls, transitions: Transitions, horizon: int, *, every: int = 1) -> Windows:
        """All windows that begin at every so many rows of an episode and end within it."""
        starts = [
            np.arange(first, end - horizon + 1, every)
            for first, end in zip(transitions.episode_starts, transitions.episode_ends, strict=True)
        ]
        first: Int[np.ndarray, " windows"] = np.concatenate(starts)
        rows = first[:, None] + np.arange(horizon)
        return cls(
            jnp.asarray(transitions.obs[first]),
            jnp.asarray(transitions.action[rows]),
            jnp.asarray(transitions.next_obs[rows]),
        )


Roll = Callable[[Windows, PRNGKeyArray], Float[np.ndarray, "windows horizon obs"]]


def open_loop(draw: Draw, *, project: Callable[[Array], Array] = lambda x: x, batch_size: int = 256) -> Roll:
    """A function that says where a model takes each window, compiled once for all its calls.

    `project` mends a state after each step, such as a quaternion that must have length 1.
    """

    def roll(windows: Windows, key: PRNGKeyArray) -> Float[np.ndarray, "windows horizon obs"]:
        rows = (windows.start, windows.action, jax.random.split(key, windows.start.shape[0]))
        return in_batches(lambda *part: _follow(draw, project, *part), rows, batch_size)

    return roll


@eqx.filter_jit
def _follow(
    draw: Draw, project: Callable[[Array], Array], starts: Array, actions: Array, keys: Array
) -> Float[Array, "windows horizon obs"]:
    def follow(start: Array, actions: Array, key: PRNGKeyArray) -> Array:
        def step(obs: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
            action, step_key = inputs
            following = project(draw(obs, action, step_key))
            return following, following

        return jax.lax.scan(step, start, (actions, jax.random.split(key, actions.shape[0])))[1]

    return jax.vmap(follow)(starts, actions, keys)
