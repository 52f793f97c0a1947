"""Draw the pictures of docs/explanation: what an energy is, negatives, the trust region, targets.

python benchmarks/method.py [energy negatives trust target targets]

Models are trained for each picture, in about a minute on two cores. Two small worlds serve: the pendulum, and
a fork, whose state is one number. Left of 0 the fork has one next state; right of 0 it has two, and a coin
decides. Its log ends at 0.6.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from PIL import Image

import mcetm
from mcetm import dynamics
from mcetm.agents.rollout import Experience
from mcetm.report.figures import figure
from record import RESULTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = RESULTS.parents[1] / "docs/explanation/figures"
GREY, ORANGE, BLUE, GREEN, PINK = "#808080", "#D55E00", "#3A8FD0", "#009E73", "#CC79A7"
"""Seen on white and on black, and by colour-blind readers."""
EDGE = 0.6
"""Where the fork's log ends."""


@contextmanager
def picture(name: str, width: float, height: float) -> Iterator[Figure]:
    """A figure without a background, so that it suits a light and a dark page."""
    names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    look: Any = {**dict.fromkeys(names, GREY), "axes.facecolor": "none", "axes.titlesize": 9}
    path = FOLDER / name
    with figure(path, width=width, height=height) as drawn, mpl.rc_context(look):
        drawn.patch.set_alpha(0.0)
        yield drawn
    path.with_suffix(".svg").unlink()
    drawing = path.with_suffix(".png")
    with Image.open(drawing) as image:  # 256 colours: a third of the size, and nobody sees it
        image.quantize(256, method=Image.Quantize.FASTOCTREE).save(drawing, optimize=True)


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
    axis.text((EDGE + high) / 2, axis.get_ylim()[1], "not in the log", ha="center", va="top", fontsize=8)


def draw_energy() -> None:
    """A Gaussian and an energy of the same log, and a cut through both."""
    train, holdout, gauss = fork_parts()
    settings = mcetm.StandardETM(
        members=1,
        width=48,
        count=8,
        steps=1500,
        variable="next_obs",
        ambient=dynamics.Langevin(steps=20),
        regressor=mcetm.GaussianEnsemble(members=2, elites=2, steps=50),
    )
    energy = mcetm.fit(settings, train, holdout=holdout, seed=0)
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
        right.set(title="the cut at s = 0.3", xlabel="next state s'", ylabel="above the least", ylim=(-0.9, 9))
        right.legend(loc="upper center", fontsize=7)


def draw_negatives() -> None:
    """Where negatives of one next state lie, from noise and near the manifold."""
    train, _ = mcetm.load_dataset("pendulum-mixed").split(0.1, seed=0)
    settings = dynamics.AutoencoderSettings(latent_dim=2, width=64, depth=3, steps=5000)
    autoencoder, _ = dynamics.fit_autoencoder(train, settings, key=jax.random.key(0))
    truth = jnp.asarray(train.next_obs[np.argmin(np.abs(train.next_obs - [0.5, 0.87, 1.0]).sum(axis=1))])
    count = 300
    keys = jax.random.split(jax.random.key(1), 3)
    low, high = train.next_obs.min(axis=0), train.next_obs.max(axis=0)
    noise = jax.random.uniform(keys[0], (count, 3), minval=low, maxval=high)
    sigma = jax.random.uniform(keys[1], (count, 1), minval=0.05, maxval=0.3)
    moved = autoencoder.encode(truth) + sigma * jax.random.normal(keys[2], (count, 2))
    near = jax.vmap(autoencoder.decode)(moved)
    off = lambda rows: np.abs(np.hypot(rows[:, 0], rows[:, 1]) - 1.0)  # noqa: E731
    print(f"median distance from the circle: noise {np.median(off(noise)):.3f}, moved {np.median(off(near)):.3f}")
    with picture("negatives", 9.0, 3.2) as drawn:
        axes = drawn.subplots(1, 3, width_ratios=(1, 1, 1.15))
        kinds = ((noise, ORANGE, "o", "from noise"), (near, GREEN, "^", "encode, perturb, decode"))
        for axis, (rows, color, marker, name) in zip(axes[:2], kinds, strict=True):
            axis.plot(*train.next_obs[:1500, :2].T, ".", color=GREY, markersize=1.5)
            axis.plot(*rows[:60, :2].T, marker, color=color, markersize=4, linestyle="none")
            axis.plot(*truth[:2], "*", color=PINK, markersize=13)
            axis.set(title=f"negatives {name}" if rows is noise else name, xlabel="cos θ", ylabel="sin θ")
            axis.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
        scale = train.next_obs.std(axis=0)
        for rows, color, marker, name in kinds:
            far = np.sqrt((((rows - truth) / scale) ** 2).mean(axis=1))
            axes[2].plot(far, off(rows), marker, color=color, markersize=3, linestyle="none", label=name)
        axes[2].axvline(0, color=PINK, linewidth=2, label="the next state of the log")
        axes[2].set(title="how far off", xlabel="distance from it, in spreads", ylabel="distance from the circle")
        axes[2].set_ylim(-0.05, 1.45)
        axes[2].legend(fontsize=7, loc="upper right")


def angles(obs: Any) -> tuple[Any, Any]:
    """Angle and speed of pendulum observations; 0 is upright."""
    return np.arctan2(obs[..., 1], obs[..., 0]), obs[..., 2]


def draw_trust() -> None:
    """The score of pairs on a log with a hole, the model's true error, and rollouts that end at the limit."""
    log = mcetm.load_dataset("pendulum-mixed")
    angle, _ = angles(log.obs)
    kept = np.abs(angle) > 1.0  # this log never saw the pendulum upright
    ends = np.append(~kept[1:], True) | log.truncated
    part = lambda column: column[kept]  # noqa: E731
    log = mcetm.Transitions.from_arrays(
        *map(part, (log.obs, log.action, log.reward, log.next_obs, log.terminated, ends)), task="pendulum"
    )
    train, holdout = log.split(0.1, seed=0)
    model = mcetm.fit(mcetm.GaussianEnsemble(steps=2000), train, holdout=holdout, seed=0)
    pairs = dynamics.PairSettings(steps=1500, autoencoder_steps=1500, folds=1)
    settings = mcetm.WorldSettings(pairs=pairs, reward=dynamics.HeadSettings(width=16, steps=100))
    world = mcetm.World.of(model, train, holdout=holdout, config=settings, seed=0)
    assert world.trust is not None
    limit = float(world.trust.pair_limit)

    theta, speed = np.linspace(-np.pi, np.pi, 91), np.linspace(-8.0, 8.0, 81)
    grid = np.stack(np.meshgrid(theta, speed), axis=-1)
    obs = np.stack([np.cos(grid[..., 0]), np.sin(grid[..., 0]), grid[..., 1]], axis=-1).astype(np.float32)
    still = np.zeros((*grid.shape[:2], 1), np.float32)
    score = np.asarray(world.pair_score(obs, still))
    flat = obs.reshape(-1, 3)
    assert np.abs(pendulum(train.obs[:500], train.action[:500]) - train.next_obs[:500]).max() < 1e-4
    true = pendulum(flat, np.zeros((len(flat), 1)))
    change = (train.next_obs - train.obs).std(axis=0)
    error = np.abs(np.asarray(model.predict(flat, np.zeros((len(flat), 1)))) - true) / change
    error = np.sqrt((error**2).mean(axis=1)).reshape(grid.shape[:2])
    print(f"median error inside {np.median(error[score <= limit]):.4f}, outside {np.median(error[score > limit]):.4f}")

    with picture("trust", 9.0, 3.4) as drawn:
        left, right = drawn.subplots(1, 2)
        for axis, values, name, most in (
            (left, np.clip(score - limit, -10, 20), "score − limit", 20),
            (right, np.log10(error), "log₁₀ of the error", None),
        ):
            mesh = axis.pcolormesh(theta, speed, values, cmap="cividis", vmax=most, rasterized=True)
            drawn.colorbar(mesh, ax=axis, label=name)
            axis.contour(theta, speed, score, levels=[limit], colors="white", linewidths=1.5)
            axis.grid(visible=False)
            axis.set(xlabel="angle θ (0 is upright)", ylabel="speed")
        left.set_title("the score of pairs (white: the limit), and the log")
        rows = angles(train.obs[::20])
        left.plot(*rows, ".", color="white", markersize=1, alpha=0.5)
        right.set_title("what the model errs by, and rollouts that stop")
        for seed in range(8):
            path, cut = rollout(world, seed)
            right.plot(*path.T, color=ORANGE, linewidth=1.2)
            right.plot(*path[-1], "X" if cut else "o", color=ORANGE, markersize=6, markeredgecolor="white")


def pendulum(obs: Any, action: Any) -> np.ndarray:
    """Gymnasium's own equation of motion."""
    theta, speed = angles(np.asarray(obs, np.float64))
    speed = np.clip(speed + (15.0 * np.sin(theta) + 3.0 * np.asarray(action)[:, 0]) * 0.05, -8.0, 8.0)
    theta = theta + 0.05 * speed
    return np.stack([np.cos(theta), np.sin(theta), speed], axis=1)


def rollout(world: mcetm.World, seed: int) -> tuple[np.ndarray, bool]:
    """Angles and speeds of one imagined branch that pumps the pendulum, and whether it was cut."""
    rng = np.random.default_rng(seed)
    angle = np.pi + rng.uniform(-0.8, 0.8)
    obs = np.array([np.cos(angle), np.sin(angle), rng.uniform(-5, 5)], np.float32)
    path, view = [obs], dynamics.View(samples=1, tested="pair")
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


PICTURES = {
    "energy": draw_energy,
    "negatives": draw_negatives,
    "trust": draw_trust,
    "target": draw_target,
    "targets": draw_targets,
}


def main() -> None:
    """Draw what was asked for, or everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PICTURES))
    for name in parser.parse_args().names or PICTURES:
        PICTURES[name]()


if __name__ == "__main__":
    main()
