"""The fork, a world whose state is one number, and the pictures of `method.py` that are drawn in it.

Left of 0 it has one next state. Right of 0 it has two, and a coin decides. Its log ends at 0.6.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np

import mcetm
from mcetm import dynamics
from mcetm.agents.rollout import Experience
from pictures import BLUE, GREY, ORANGE, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EDGE = 0.6
"""Where the log ends."""


def fork(rows: int = 4000) -> mcetm.Transitions:
    """The log of the fork: single steps from anywhere up to its edge."""
    rng = np.random.default_rng(0)
    state = rng.uniform(-1.0, EDGE, (rows, 1))
    action = rng.uniform(-1.0, 1.0, (rows, 1))
    side = np.where(state < 0.0, 0.0, rng.choice([-1.0, 1.0], (rows, 1)))
    following = 0.5 * state + 0.6 * side + 0.1 * action + rng.normal(0.0, 0.04, (rows, 1))
    ends = np.ones(rows, bool)
    bounds = mcetm.Metadata(action_low=(-1.0,), action_high=(1.0,))
    zeros = np.zeros(rows)
    return mcetm.Transitions.from_arrays(
        state, action, zeros, following, zeros.astype(bool), ends, metadata=bounds
    )


@cache
def fork_parts() -> tuple[mcetm.Transitions, mcetm.Transitions, Any]:
    """Both parts of the log, and a Gaussian ensemble of it."""
    train, holdout = fork().split(0.2, seed=0)
    settings = mcetm.GaussianEnsemble(members=5, elites=5, width=32, depth=2, steps=1500, batch_size=128)
    return train, holdout, mcetm.fit(settings, train, holdout=holdout, seed=0)


def outside_of_log(axis: Axes, high: float) -> None:
    """Grey where the log has nothing."""
    axis.axvspan(EDGE, high, color=GREY, alpha=0.15, linewidth=0)
    axis.text((EDGE + high) / 2, axis.get_ylim()[1], "not in the log", ha="center", va="top", fontsize=7)


def energies_of_fork(members: int, support: dynamics.SupportSettings | None = None) -> mcetm.StandardETM:
    """Plain energies that the fork's pictures are drawn with."""
    return mcetm.StandardETM(
        members=members,
        width=48,
        count=8,
        steps=1500,
        variable="next_obs",
        ambient=dynamics.Langevin(steps=20),
        regressor=mcetm.GaussianEnsemble(members=2, elites=2, steps=50),
        support=support,
    )


def draw_energy() -> None:
    """A Gaussian and an energy of the same log, and a cut through both."""
    train, holdout, gauss = fork_parts()
    settings = energies_of_fork(1)
    energy = cast(mcetm.EnergyModel, mcetm.fit(settings, train, holdout=holdout, seed=0))
    states, after = np.linspace(-1.0, 1.2, 111), np.linspace(-1.3, 1.3, 131)
    with picture("energy", 9.0, 3.0) as drawn:
        left, middle, right = drawn.subplots(1, 3)
        shown = slice(0, 600)
        left.plot(train.obs[shown, 0], train.next_obs[shown, 0], ".", color=GREY, markersize=2)
        mean, std = jax.vmap(gauss.of_members)(states[:, None], np.zeros((len(states), 1)))
        for i in range(mean.shape[1]):
            left.plot(states, mean[:, i, 0], color=ORANGE, linewidth=1)
        low, high = (mean - std)[..., 0].min(axis=1), (mean + std)[..., 0].max(axis=1)
        left.fill_between(states, low, high, color=ORANGE, alpha=0.2, linewidth=0)
        left.set(title="a Gaussian ensemble: mean and spread", xlabel="state s", ylabel="next state s'")
        left.set_ylim(-1.3, 1.3)
        outside_of_log(left, 1.2)

        grid = np.stack(np.meshgrid(states, after), axis=-1)
        found = energy.energy(grid[..., :1], np.zeros((*grid.shape[:2], 1)), grid[..., 1:])[..., 0]
        found = np.asarray(found - found.min(axis=0))
        drawn.colorbar(
            middle.pcolormesh(states, after, found, cmap="cividis", vmax=8, rasterized=True), ax=middle
        )
        middle.axvline(0.3, color="white", linewidth=1, linestyle=":")
        middle.grid(visible=False)
        middle.set(title="energies: dark is low", xlabel="state s", ylabel="next state s'")

        at = int(np.argmin(np.abs(states - 0.3)))
        right.plot(after, found[:, at], color=BLUE, label="energy")
        bell = 0.5 * ((after - float(mean[at, 0, 0])) / float(std[at, 0, 0])) ** 2
        right.plot(after, bell, color=ORANGE, linestyle="--", label="Gaussian, −log density")
        near = np.abs(train.obs[:, 0] - 0.3) < 0.05
        right.plot(
            train.next_obs[near, 0], np.full(near.sum(), -0.4), "|", color=GREY, label="the log's next states"
        )
        right.set(
            title="the cut at s = 0.3", xlabel="next state s'", ylabel="above the least", ylim=(-0.9, 9)
        )
        right.legend(loc="upper center", fontsize=7)


class Promise:
    """A learner whose critic thinks that more to the right is better; targets ask no more of one."""

    config = mcetm.SAC()

    def next_value(self, obs: Any, *, key: Any, entropy: bool = False) -> Any:
        """What the critic believes."""
        return 100.0 + 80.0 * obs[0]


ALGORITHMS: dict[str, Any] = {
    "MOPO": mcetm.MOPO(penalty=60.0),
    "EMPO": mcetm.EMPO(penalty=60.0),
    "MOReL": mcetm.MOReL(value_floor=0.0),
    "MOBILE": mcetm.MOBILE(penalty=1.0, value_floor=0.0),
    "MC-ETM": mcetm.MCETM(penalty=1.0, value_floor=0.0, tested="pair"),
}


@cache
def fork_targets() -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """States, the members' mean values there, and each algorithm's target, a mean of 512 draws."""
    train, holdout, model = fork_parts()
    pairs = dynamics.PairSettings(autoencoder_steps=1000, folds=1)
    settings = mcetm.WorldSettings(pairs=pairs, reward=dynamics.HeadSettings(width=8, steps=50))
    world = mcetm.World.of(model, train, holdout=holdout, config=settings, seed=0)
    states, learner = np.linspace(-1.0, 1.2, 89, dtype=np.float32)[:, None], Promise()
    action = jnp.zeros(1)

    def of(algorithm: Any) -> np.ndarray:
        def one(obs: Any, key: Any) -> Any:
            after = world.imagine(obs, action, algorithm.view, key=key)
            value = learner.next_value(after.next_obs, key=key)
            return algorithm.target(learner, Experience(obs, action, after), value, key=key)[0]

        keys = jax.random.split(jax.random.key(0), 512)
        each = jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))(states, keys)
        return np.asarray(each).mean(axis=1)

    means = jax.vmap(lambda obs: model.of_members(obs, action)[0])(states)[..., 0]
    found = {"plain": of(mcetm.MOPO(penalty=0.0))} | {name: of(it) for name, it in ALGORITHMS.items()}
    return states[:, 0], 0.99 * (100.0 + 80.0 * np.asarray(means)), found


def draw_target() -> None:
    """How MC-ETM's target comes about."""
    states, members, found = fork_targets()
    with picture("target", 6.0, 3.2) as drawn:
        axis = drawn.subplots()
        axis.plot(states, members, color=GREY, linewidth=0.8)
        axis.plot([], [], color=GREY, linewidth=0.8, label="what each member promises")
        axis.plot(states, found["plain"], color=ORANGE, linestyle="--", label="their mean")
        axis.plot(states, found["MC-ETM"], color=BLUE, linewidth=2, label="MC-ETM's target")
        axis.set(xlabel="state s", ylabel="target of Q(s, a)", ylim=(-15, 230))
        outside_of_log(axis, 1.2)
        axis.legend(loc="upper left", fontsize=8)


def draw_targets() -> None:
    """What each algorithm makes of the same promise."""
    states, members, found = fork_targets()
    with picture("targets", 9.0, 4.6) as drawn:
        axes = drawn.subplots(2, 3, sharex=True, sharey=True)
        axes[0, 0].plot(states, members, color=GREY, linewidth=0.8)
        axes[0, 0].set_title("what the five members promise")
        for axis, name in zip(axes.flat[1:], ALGORITHMS, strict=True):
            axis.plot(states, found["plain"], color=ORANGE, linestyle="--", label="without pessimism")
            axis.plot(states, found[name], color=BLUE, linewidth=2, label="its target")
            axis.set_title(name)
        axes[0, 1].legend(loc="upper left", fontsize=7)
        for axis in axes.flat:
            axis.set_ylim(-15, 230)
            outside_of_log(axis, 1.2)
        for axis in axes[1]:
            axis.set_xlabel("state s")
        for axis in axes[:, 0]:
            axis.set_ylabel("target of Q(s, a)")
