"""Draw the README's figure: a log, the policy that was learned from it, and where that policy is trusted.

python benchmarks/pendulum_figure.py [--run RUN] [--out docs/figures/pendulum]

Without a run it trains the README's example with one seed, which takes about a minute on two free cores.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import mcetm
from mcetm.report import figure

ROOT = Path(__file__).parents[1]
FASTEST = 12.0
"""The simulator stops at 8; what lies beyond is in no log."""


def trained(run: Path | None) -> mcetm.Policy:
    """The first policy of a run, or one that is trained now."""
    if run is not None:
        return mcetm.load_run(run).policies[0]
    train, holdout = mcetm.load_dataset("pendulum-mixed").split(holdout=0.1, seed=0)
    model = mcetm.fit(mcetm.ManifoldETM(members=3, width=48, steps=1_000), train, holdout=holdout, seed=0)
    world = mcetm.World.of(model, train, holdout=holdout, seed=0)
    algorithm = mcetm.MCETM(penalty=1.0, learner=mcetm.SAC(width=64, steps=5_000))
    return mcetm.fit(algorithm, train, world=world).policies[0]


def episode(policy: mcetm.Policy) -> np.ndarray:
    """The observations of one episode that begins at rest, hanging down."""
    import gymnasium

    env = gymnasium.make("Pendulum-v1")
    env.reset(seed=0)
    env.unwrapped.state = np.array([np.pi, 0.0])  # pyright: ignore[reportAttributeAccessIssue]
    found = [np.array([-1.0, 0.0, 0.0], np.float32)]
    for _ in range(200):
        found.append(env.step(policy(found[-1]))[0])
    return np.array(found)


def angle(obs: np.ndarray) -> np.ndarray:
    """0 is upright, in degrees."""
    return np.degrees(np.arctan2(obs[..., 1], obs[..., 0]))


def main() -> None:
    """Three panels over the same plane of angle and speed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/figures/pendulum")
    given = parser.parse_args()
    policy, log = trained(given.run), mcetm.load_dataset("pendulum-mixed")
    shown = np.random.default_rng(0).choice(len(log), 6_000, replace=False)
    turns, speeds = np.meshgrid(np.linspace(-np.pi, np.pi, 181), np.linspace(-FASTEST, FASTEST, 161))
    plane = np.stack([np.cos(turns), np.sin(turns), speeds], -1).reshape(-1, 3).astype(np.float32)
    action = policy(plane).reshape(turns.shape)
    trust = policy.trust(plane)
    ratio = (np.asarray(trust.score) - trust.limit).reshape(turns.shape)
    walked = episode(policy)
    box = (-180, 180, -FASTEST, FASTEST)
    with figure(given.out, width=9.6, height=3.1) as drawn:
        left, middle, right = drawn.subplots(1, 3, sharex=True, sharey=True)
        left.scatter(angle(log.obs[shown]), log.obs[shown, 2], s=1, color="0.25", alpha=0.5, linewidths=0)
        left.set(title="the log: 6,000 of its states", ylabel="speed [rad/s]")
        image = middle.imshow(action, extent=box, origin="lower", aspect="auto", cmap="PuOr", vmin=-2, vmax=2)
        middle.scatter(angle(walked), walked[:, 2], s=5, color="black", linewidths=0)
        middle.set(title="the policy: torque, and an episode")
        drawn.colorbar(image, ax=middle, label="torque [N m]")
        inside = np.where(ratio <= 0, 1.0, 0.0)
        right.imshow(
            inside, extent=box, origin="lower", aspect="auto", cmap="Greens", vmin=0, vmax=2, alpha=0.9
        )
        right.scatter(angle(walked), walked[:, 2], s=5, color="black", linewidths=0)
        right.set(title="green: where the policy is trusted")
        for axis in (left, middle, right):
            axis.set(xlabel="angle from upright [°]", xticks=[-180, -90, 0, 90, 180], xlim=(-180, 180))
            axis.set_ylim(-FASTEST, FASTEST)
            axis.grid(visible=False)
    given.out.with_suffix(".svg").unlink()  # the README shows the PNG
    print(
        f"trusted: {inside.mean():.0%} of the plane, {np.mean(policy.trust(walked).trusted):.0%} of the way"
    )


if __name__ == "__main__":
    main()
