"""The dial, a machine with one action, and the pictures of algorithms that learn from the log alone.

More is better up to 0.6, where something breaks. The log's operators had two habits, and never went so far.
Its one state is a number without meaning; an episode is a single turn of the dial.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

import mcetm
from mcetm.agents.cql import Conservative
from pictures import BLUE, GREEN, GREY, ORANGE, PINK, first_seed, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HABITS = ((-0.5, 0.7), (0.3, 0.3))
"""Where the operators turned the dial to, and how often."""
BREAKS = 0.6
TURNS = np.linspace(-1.0, 1.0, 201)
"""Where curves are drawn."""


def worth(action: Any) -> Any:
    """What a turn of the dial really earns."""
    return np.where(action < BREAKS, action, BREAKS - 4.0 * (action - BREAKS))


@cache
def log_of_dial(rows: int = 2000) -> mcetm.Transitions:
    """The log of the dial: single turns, each an episode."""
    rng = np.random.default_rng(0)
    state = rng.uniform(-1.0, 1.0, (rows, 1))
    places, shares = zip(*HABITS, strict=True)
    action = rng.choice(places, (rows, 1), p=shares) + rng.normal(0.0, 0.08, (rows, 1))
    reward = worth(action[:, 0]) + rng.normal(0.0, 0.05, rows)
    bounds = mcetm.Metadata(action_low=(-1.0,), action_high=(1.0,))
    over = np.ones(rows, bool)
    return mcetm.Transitions.from_arrays(state, action, reward, state, over, ~over, metadata=bounds)


def trained(algorithm: Any) -> Any:
    """The agent of one seed."""
    return mcetm.fit(algorithm, log_of_dial(), seeds=1)


def chosen(agent: Any) -> float:
    """Where the policy turns the dial to."""
    return float(agent.policies[0]([0.0])[0])


def critics_of(agent: Any) -> np.ndarray:
    """What each critic thinks of each turn, in units of the rewards: critics × turns."""
    critics = first_seed(agent).critics
    states, actions = jnp.zeros((len(TURNS), 1)), jnp.asarray(TURNS[:, None], jnp.float32)
    return np.asarray(critics.of_rows(states, actions)) / agent.reward_scale


def background(axis: Axes) -> None:
    """What every picture shows: where the log's actions are, and what a turn earns."""
    counts, edges = np.histogram(log_of_dial().action, bins=60, range=(-1.0, 1.0))
    axis.bar(
        edges[:-1],
        1.2 * counts / counts.max(),
        np.diff(edges),
        bottom=-1.5,
        align="edge",
        color=GREY,
        alpha=0.4,
    )
    axis.plot(TURNS, worth(TURNS), color=GREY, linewidth=2.5, alpha=0.7, label="what it earns")
    axis.set(xlabel="action", xlim=(-1, 1), ylim=(-1.5, 2.2), xticks=(-1.0, -0.5, 0.0, 0.5, 1.0))


def draw_bc() -> None:
    """A clone acts between two habits."""
    action = chosen(trained(mcetm.BC(width=32, steps=1500)))
    share = float(np.mean(np.abs(log_of_dial().action - action) < 0.05))
    print("the clone's action:", action, "share of the log within 0.05 of it:", share)
    print("it earns", float(worth(action)), "and the log", float(log_of_dial().reward.mean()))
    with picture("bc", 4.6, 2.6) as drawn:
        axis = drawn.subplots()
        background(axis)
        axis.axvline(action, ymax=0.6, color=BLUE, linewidth=2, label="what the clone does")
        axis.set_ylabel("reward")
        axis.legend(loc="upper left", fontsize=9)


def draw_td3bc() -> None:
    """One weight goes from cloning to what a critic promises."""
    weights = (0.01, 0.1, 0.3, 1.0, 2.5, 5.0, 10.0, 30.0, 100.0)
    actions = []
    for weight in weights:
        actions.append(
            chosen(trained(mcetm.TD3BC(learner=mcetm.TD3(width=32, steps=3000, value_weight=weight))))
        )
        print("weight", weight, "action", actions[-1], "earns", float(worth(actions[-1])))
    with picture("td3bc", 4.6, 2.8) as drawn:
        axis = drawn.subplots()
        rows = log_of_dial().action[:400, 0]
        axis.plot(np.geomspace(0.012, 80.0, len(rows)), rows, ".", color=GREY, markersize=2, alpha=0.5)
        axis.plot([], [], ".", color=GREY, label="the log's actions")
        axis.axhline(BREAKS, color=PINK, linestyle="--", label="where it breaks")
        axis.plot(weights, actions, "o-", color=BLUE, label="the policy's action")
        axis.axvline(2.5, color=ORANGE, linestyle=":", label="default")
        axis.set(xscale="log", xlabel="value_weight", ylabel="action")
        axis.set_ylim(-1.5, 1.1)
        axis.legend(loc="lower right", fontsize=8, ncols=2)


def draw_iql() -> None:
    """V leans towards the better actions, and these are cloned the more, the warmer the weight."""
    with picture("iql", 5.0, 3.0) as drawn:
        left, right = drawn.subplots(1, 2)
        left.hist(log_of_dial().reward, bins=50, color=GREY, alpha=0.4)
        for expectile, color in ((0.5, ORANGE), (0.7, BLUE), (0.95, GREEN)):
            agent = trained(mcetm.IQL(width=32, steps=3000, expectile=expectile))
            value = _value_of(agent)
            print("expectile", expectile, "V", value, "of rewards", float(log_of_dial().reward.mean()))
            left.axvline(value, ymax=0.68, color=color, linewidth=2, label=f"V, τ = {expectile:g}")
        left.set(xlabel="reward", ylabel="rows of the log", ylim=(0, 270), yticks=(0, 100, 200))
        left.legend(fontsize=8, loc="upper right")
        seen = TURNS[(TURNS > -0.75) & (TURNS < 0.55)]
        for beta, color in ((0.0, ORANGE), (0.002, BLUE), (0.01, GREEN)):
            agent = trained(mcetm.IQL(width=32, steps=3000, inverse_temperature=beta))
            advantage = (critics_of(agent).min(axis=0) - _value_of(agent)) * agent.reward_scale
            weight = np.interp(seen, TURNS, np.minimum(np.exp(beta * advantage), 100.0))
            right.plot(seen, weight, color=color, linewidth=2, label=f"{beta:g}")
            right.plot(chosen(agent), np.interp(chosen(agent), seen, weight), "o", color=color, markersize=8)
            print(
                "inverse temperature", beta, "action", chosen(agent), "scale of rewards", agent.reward_scale
            )
        right.set(xlabel="action", ylabel="weight", yscale="log", xticks=(-0.5, 0.0, 0.5), ylim=(0.05, 3000))
        right.legend(fontsize=8, title="inverse temperature", title_fontsize=8, loc="upper left")


def _value_of(agent: Any) -> float:
    """V, in units of the rewards."""
    return float(first_seed(agent).value(jnp.zeros(1))) / agent.reward_scale


def draw_cql() -> None:
    """The conservative term pulls values down where the log has no action."""
    with picture("cql", 4.6, 3.0) as drawn:
        axis = drawn.subplots()
        background(axis)
        for weight, color in ((0.0, ORANGE), (0.1, GREEN), (1.0, BLUE)):
            settings = mcetm.CQL(
                conservative=Conservative(weight=weight),
                learner=mcetm.SAC(width=32, actor_first=True, steps=3000),
            )
            agent = trained(settings)
            values, action = critics_of(agent).min(axis=0), chosen(agent)
            print("weight", weight, "action", action, "earns", float(worth(action)))
            axis.plot(TURNS, values, color=color, linewidth=2, label=f"Q, weight {weight:g}")
            axis.plot(action, np.interp(action, TURNS, values), "o", color=color, markersize=8)
        axis.set_ylabel("value")
        axis.legend(loc="upper left", fontsize=8, ncols=2)


def draw_edac() -> None:
    """How far ten critics of two dials lie apart, without and with the term that keeps them apart."""
    rng = np.random.default_rng(1)
    along, rows = rng.uniform(-0.7, 0.3, (2000, 1)), 2000
    action = np.clip(along + rng.normal(0.0, 0.06, (rows, 2)), -1.0, 1.0)
    state, over = rng.uniform(-1.0, 1.0, (rows, 1)), np.ones(rows, bool)
    reward = action.mean(axis=1) + rng.normal(0.0, 0.05, rows)
    bounds = mcetm.Metadata(action_low=(-1.0, -1.0), action_high=(1.0, 1.0))
    log = mcetm.Transitions.from_arrays(state, action, reward, state, over, ~over, metadata=bounds)
    grid = np.linspace(-1.0, 1.0, 61)
    actions = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2).astype(np.float32)
    states = jnp.zeros((len(actions), 1))
    near = np.abs(actions[:, None] - action[None, ::10]).max(axis=-1).min(axis=1) < 0.08
    with picture("edac", 5.0, 2.7) as drawn:
        axes = drawn.subplots(1, 2, sharey=True)
        mesh: Any = None
        for axis, weight in zip(axes, (0.0, 1.0), strict=True):
            learner = mcetm.SAC(width=32, critics=10, actor_first=True, steps=3000)
            agent = mcetm.fit(mcetm.EDAC(diversity=weight, learner=learner), log, seeds=1)
            critics = first_seed(agent).critics
            spread = np.asarray(critics.of_rows(states, actions)).std(axis=0)
            means = [float(spread[where].mean()) for where in (near, ~near)]
            policy = agent.policies[0]([0.0])
            print("diversity", weight, "spread near the log, elsewhere", means, "action", policy)
            mesh = axis.pcolormesh(
                grid,
                grid,
                np.log10(spread).reshape(61, 61),
                cmap="cividis",
                vmin=-2.5,
                vmax=0.3,
                rasterized=True,
            )
            axis.plot(*action[::8].T, ".", color="white", markersize=1.5)
            axis.plot(*policy, "X", color=ORANGE, markersize=10, markeredgecolor="white")
            axis.grid(visible=False)
            axis.set(
                title=f"diversity {weight:g}",
                xlabel="first action",
                aspect="equal",
                xticks=(-1, 0, 1),
                yticks=(-1, 0, 1),
            )
        drawn.colorbar(mesh, ax=axes, label="log₁₀ of the spread", shrink=0.7)
        axes[0].set_ylabel("second action")
