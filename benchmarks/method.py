"""Draw the pictures of docs/explanation: what an energy is, negatives, the trust region, targets.

python benchmarks/method.py [energy negatives trust target targets]

Models are trained for each picture, in about a minute of processor time.
"""

from __future__ import annotations

import argparse
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

import fork
import mcetm
from mcetm import dynamics
from pictures import GREEN, GREY, ORANGE, PINK, picture


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
    apart = [float(np.median(off(rows))) for rows in (noise, near)]
    print("median distance from the circle, of noise and of moved codes:", apart)
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
        axes[2].set(
            title="how far off", xlabel="distance from it, in spreads", ylabel="distance from the circle"
        )
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
    limit = float(cast(mcetm.TrustRegion, world.trust).pair_limit)

    theta, speed = np.linspace(-np.pi, np.pi, 91), np.linspace(-8.0, 8.0, 81)
    grid = np.stack(np.meshgrid(theta, speed), axis=-1)
    obs = np.stack([np.cos(grid[..., 0]), np.sin(grid[..., 0]), grid[..., 1]], axis=-1).astype(np.float32)
    still = np.zeros((*grid.shape[:2], 1), np.float32)
    score = np.asarray(world.pair_score(obs, still))
    flat = obs.reshape(-1, 3)
    np.testing.assert_allclose(pendulum(train.obs, train.action), train.next_obs, atol=1e-4)
    true = pendulum(flat, np.zeros((len(flat), 1)))
    change = (train.next_obs - train.obs).std(axis=0)
    error = np.abs(np.asarray(model.predict(flat, np.zeros((len(flat), 1)))) - true) / change
    error = np.sqrt((error**2).mean(axis=1)).reshape(grid.shape[:2])
    errors = [float(np.median(error[where])) for where in (score <= limit, score > limit)]
    print("median error inside and outside the limit:", errors)

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


PICTURES = {
    "energy": fork.draw_energy,
    "negatives": draw_negatives,
    "trust": draw_trust,
    "target": fork.draw_target,
    "targets": fork.draw_targets,
}


def main() -> None:
    """Draw what was asked for, or everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PICTURES))
    for name in parser.parse_args().names or PICTURES:
        PICTURES[name]()


if __name__ == "__main__":
    main()
