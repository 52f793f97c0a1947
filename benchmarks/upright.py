"""A pendulum's log without the pendulum upright, and the pictures of where algorithms trust a model of it.

The true equation of motion is known, so that a model's doubts can be laid beside its errors.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, cast

import jax
import numpy as np
from scipy.stats import spearmanr

import mcetm
from mcetm import dynamics
from mcetm.agents import candidate_values
from mcetm.agents.rollout import Experience
from pictures import BLUE, GREEN, GREY, ORANGE, PINK, first_seed, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

THETA, SPEED = np.linspace(-np.pi, np.pi, 91), np.linspace(-8.0, 8.0, 81)
"""The plane of the maps; an angle of 0 is upright."""


def angles(obs: Any) -> tuple[Any, Any]:
    """Angle and speed of pendulum observations; 0 is upright."""
    return np.arctan2(obs[..., 1], obs[..., 0]), obs[..., 2]


def pendulum(obs: Any, action: Any) -> np.ndarray:
    """Gymnasium's own equation of motion."""
    theta, speed = angles(np.asarray(obs, np.float64))
    speed = np.clip(speed + (15.0 * np.sin(theta) + 3.0 * np.asarray(action)[:, 0]) * 0.05, -8.0, 8.0)
    theta = theta + 0.05 * speed
    return np.stack([np.cos(theta), np.sin(theta), speed], axis=1)


@cache
def logs() -> tuple[mcetm.Transitions, mcetm.Transitions]:
    """Both parts of a log that never saw the pendulum upright."""
    log = mcetm.load_dataset("pendulum-mixed")
    angle, _ = angles(log.obs)
    kept = np.abs(angle) > 1.0
    ends = np.append(~kept[1:], True) | log.truncated
    part = lambda column: column[kept]  # noqa: E731
    log = mcetm.Transitions.from_arrays(
        *map(part, (log.obs, log.action, log.reward, log.next_obs, log.terminated, ends)), task="pendulum"
    )
    return log.split(0.1, seed=0)


@cache
def gaussian_world() -> mcetm.World:
    """A Gaussian ensemble of it, with a trust region."""
    train, holdout = logs()
    model = mcetm.fit(mcetm.GaussianEnsemble(steps=2000), train, holdout=holdout, seed=0)
    pairs = dynamics.PairSettings(steps=1500, autoencoder_steps=1500, folds=1)
    settings = mcetm.WorldSettings(pairs=pairs, reward=dynamics.HeadSettings(width=16, steps=100))
    return mcetm.World.of(model, train, holdout=holdout, config=settings, seed=0)


def plane() -> tuple[np.ndarray, np.ndarray]:
    """Observations over the plane, and a torque of 0 for each."""
    grid = np.stack(np.meshgrid(THETA, SPEED), axis=-1)
    obs = np.stack([np.cos(grid[..., 0]), np.sin(grid[..., 0]), grid[..., 1]], axis=-1).astype(np.float32)
    return obs, np.zeros((*grid.shape[:2], 1), np.float32)


def error_of(model: Any) -> np.ndarray:
    """What a model really errs by over the plane, in spreads of one step's change."""
    train, _ = logs()
    np.testing.assert_allclose(pendulum(train.obs, train.action), train.next_obs, atol=1e-4)
    flat = plane()[0].reshape(-1, 3)
    still = np.zeros((len(flat), 1))
    change = (train.next_obs - train.obs).std(axis=0)
    error = np.abs(np.asarray(model.predict(flat, still)) - pendulum(flat, still)) / change
    return np.sqrt((error**2).mean(axis=1)).reshape(len(SPEED), len(THETA))


def field(drawn: Figure, axis: Axes, values: np.ndarray, label: str, **look: Any) -> None:
    """A map over angle and speed."""
    mesh = axis.pcolormesh(THETA, SPEED, values, cmap="cividis", rasterized=True, **look)
    drawn.colorbar(mesh, ax=axis, label=label)
    axis.grid(visible=False)
    axis.set(xlabel="angle (0 is upright)", ylabel="speed")


def draw_trust() -> None:
    """The score of pairs, the model's true error, and rollouts that end at the limit."""
    train, _ = logs()
    world = gaussian_world()
    limit = float(cast(mcetm.TrustRegion, world.trust).pair_limit)
    score, error = np.asarray(world.pair_score(*plane())), error_of(world.model)
    errors = [float(np.median(error[where])) for where in (score <= limit, score > limit)]
    print("median error inside and outside the limit:", errors)
    with picture("trust", 9.0, 3.4) as drawn:
        left, right = drawn.subplots(1, 2)
        field(drawn, left, np.clip(score - limit, -10, 20), "score − limit", vmax=20)
        field(drawn, right, np.log10(error), "log₁₀ of the error")
        for axis in (left, right):
            axis.contour(THETA, SPEED, score, levels=[limit], colors="white", linewidths=1.5)
        left.set_title("the score of pairs (white: the limit), and the log")
        rows = angles(train.obs[::20])
        left.plot(*rows, ".", color="white", markersize=1, alpha=0.5)
        right.set_title("what the model errs by, and rollouts that stop")
        _draw_rollouts(right, world, dynamics.View(samples=1, tested="pair"))


def draw_pairs() -> None:
    """What each part of the score says, near the log and far from it."""
    score = cast(Any, gaussian_world().trust).pairs
    theta, speed = np.linspace(0.0, np.pi, 91), np.linspace(0.0, 40.0, 91)
    near = np.stack([np.cos(theta), np.sin(theta), np.zeros_like(theta)], axis=1).astype(np.float32)
    far = np.stack([-np.ones_like(speed), np.zeros_like(speed), speed], axis=1).astype(np.float32)
    with picture("pairs", 5.0, 3.0) as drawn:
        axes = drawn.subplots(1, 2, sharey=True)
        for axis, places, obs in zip(axes, (theta, speed), (near, far), strict=True):
            terms = score.terms(obs, np.zeros((len(obs), 1), np.float32))
            looks = (("odds", BLUE, "-"), ("reconstruction", ORANGE, "--"), ("mahalanobis", GREEN, "-."))
            for name, color, style in looks:
                axis.plot(places, terms[name], style, color=color, linewidth=2, label=name)
                print(name, "first, middle, last:", [float(terms[name][i]) for i in (0, 45, 90)])
            axis.axhline(float(score.limit), color=PINK, linestyle=":", label="the limit")
            axis.set_ylim(-8, 60)
        axes[0].axvspan(0.0, 1.0, color=GREY, alpha=0.15, linewidth=0)
        axes[1].axvspan(8.0, 40.0, color=GREY, alpha=0.15, linewidth=0)
        axes[0].set(xlabel="angle, at rest", ylabel="part of the score", title="near: upright is new")
        axes[1].set(xlabel="speed, hanging", title="far: 8 is the most")
        axes[0].legend(fontsize=8, loc="upper right")


def draw_mopo() -> None:
    """MOPO's charge beside the error that it stands for."""
    world = gaussian_world()
    step = jax.jit(lambda o, a: world.imagine(o, a, mcetm.MOPO().view, key=jax.random.key(0)).uncertainty)
    obs, still = plane()
    charge = np.asarray(step(obs.reshape(-1, 3), still.reshape(-1, 1))).reshape(obs.shape[:2])
    error = error_of(world.model)
    new = np.abs(THETA) < 1.0
    for name, values in (("charge", charge), ("error", error)):
        print(
            name,
            "median where the log has angles, and where not:",
            np.median(values[:, ~new]),
            np.median(values[:, new]),
        )
    print("rank correlation:", float(cast(Any, spearmanr(charge.ravel(), error.ravel())).statistic))
    with picture("mopo", 5.0, 2.7) as drawn:
        left, right = drawn.subplots(1, 2, sharey=True)
        field(drawn, left, np.log10(charge), "log₁₀ u")
        field(drawn, right, np.log10(error), "log₁₀ of the error")
        left.set_title("what MOPO charges for")
        right.set(title="what the model errs by", ylabel="")
        _mark_hole(left, right)


def draw_morel() -> None:
    """Which pairs MOReL counts as unknown, and rollouts that are over there."""
    world = gaussian_world()
    obs, still = plane()
    limit = float(cast(mcetm.TrustRegion, world.trust).disagreement)
    found = jax.jit(jax.vmap(jax.vmap(lambda o, a: world.model.apart(o, a, key=jax.random.key(0)))))(
        obs, still
    )
    unknown, error = np.asarray(found) > limit, error_of(world.model)
    errors = [float(np.median(error[where])) for where in (~unknown, unknown)]
    new = np.abs(THETA) < 1.0
    print("unknown where the log has angles, and where not:", unknown[:, ~new].mean(), unknown[:, new].mean())
    print("median error of known and unknown pairs:", errors)
    with picture("morel", 4.6, 3.0) as drawn:
        axis = drawn.subplots()
        field(drawn, axis, np.log10(np.asarray(found) / limit), "log₁₀ (disagreement / δ)")
        axis.contour(THETA, SPEED, found, levels=[limit], colors="white", linewidths=1.5)
        print("rollouts cut:", _draw_rollouts(axis, world, mcetm.MOReL().view), "of 8")
        _mark_hole(axis)


def draw_mcetm() -> None:
    """MC-ETM's two means over the plane: what it charges for, and what it cuts."""
    train, holdout = logs()
    model = mcetm.fit(mcetm.ManifoldETM(steps=1500), train, holdout=holdout, seed=0)
    pairs = dynamics.PairSettings(steps=1500, autoencoder_steps=1500, folds=1)
    world = mcetm.World.of(model, train, holdout=holdout, config=mcetm.WorldSettings(pairs=pairs), seed=0)
    algorithm = mcetm.MCETM(learner=mcetm.SAC(discount=0.97, steps=3000), samples=4)
    agent = mcetm.fit(algorithm, train, world=world, seeds=1)
    learner = first_seed(agent)

    def one(obs: Any, action: Any, key: Any) -> tuple[Any, Any]:
        after = world.imagine(obs, action, algorithm.view, key=key)
        values = candidate_values(learner, Experience(obs, action, after), key=key)
        return values.mean(axis=1).std(ddof=1), after.distrusted.mean()

    obs, still = plane()
    flat = obs.reshape(-1, 3), still.reshape(-1, 1)
    keys = jax.random.split(jax.random.key(0), (8, len(flat[0])))
    over_draws = jax.jit(lambda keys: jax.vmap(one)(*flat, keys))
    spread, cut = (
        np.mean(part, axis=0).reshape(obs.shape[:2]) for part in zip(*map(over_draws, keys), strict=True)
    )
    score = np.asarray(world.pair_score(obs, still))
    limit = float(cast(mcetm.TrustRegion, world.trust).pair_limit)
    new = np.abs(THETA) < 1.0
    for name, values in (("penalty", spread), ("cut by energy", cut), ("cut by pairs", score > limit)):
        print(
            name,
            "mean where the log has angles, and where not:",
            values[:, ~new].mean(),
            values[:, new].mean(),
        )
    with picture("mcetm", 5.0, 2.9) as drawn:
        left, right = drawn.subplots(1, 2, sharey=True)
        field(drawn, left, spread, "spread of values")
        field(drawn, right, cut, "share cut off", vmin=0.0, vmax=1.0)
        right.contour(THETA, SPEED, score, levels=[limit], colors="white", linewidths=1.5)
        left.set_title("what is charged for")
        right.set(title="what is cut, by energy", ylabel="")
        _mark_hole(left, right)


def _mark_hole(*axes: Axes) -> None:
    for axis in axes:
        for side in (-1.0, 1.0):
            axis.axvline(side, color="white", linewidth=1, linestyle=":")


def _draw_rollouts(axis: Axes, world: mcetm.World, view: dynamics.View) -> int:
    """Eight imagined branches; how many of them were cut."""
    cuts = 0
    for seed in range(8):
        path, cut = rollout(world, seed, view)
        cuts += cut
        axis.plot(*path.T, color=ORANGE, linewidth=1.2)
        axis.plot(*path[-1], "X" if cut else "o", color=ORANGE, markersize=6, markeredgecolor="white")
    return cuts


def rollout(world: mcetm.World, seed: int, view: dynamics.View) -> tuple[np.ndarray, bool]:
    """Angles and speeds of one imagined branch that pumps the pendulum, and whether it was cut."""
    rng = np.random.default_rng(seed)
    angle = np.pi + rng.uniform(-0.8, 0.8)
    obs = np.array([np.cos(angle), np.sin(angle), rng.uniform(-5, 5)], np.float32)
    path = [obs]
    step = jax.jit(lambda o, a, k: world.imagine(o, a, view, key=k))
    for i in range(40):
        push = np.array([2.0 if obs[2] > 0 else -2.0], np.float32)
        imagined = step(obs, push, jax.random.fold_in(jax.random.key(seed), i))
        if bool(imagined.truncated):
            return unwrapped(path), True
        obs = np.asarray(imagined.next_obs)
        path.append(obs)
    return unwrapped(path), False


def unwrapped(path: list[np.ndarray]) -> np.ndarray:
    """Angles and speeds, with a gap where the angle goes from π to −π."""
    theta, speed = angles(np.stack(path))
    jumps = np.flatnonzero(np.abs(np.diff(theta)) > np.pi) + 1
    return np.insert(np.stack([theta, speed], axis=1), jumps, np.nan, axis=0)
