"""Real contact: how well transition models foresee a cube that is tossed onto a table.

570 motion-captured tosses of DAIR Lab's ContactNets (Pfrommer, Halm and Posa, 2020). An impact turns a smooth
law of motion into a nearly discontinuous one, which is where energies are said to beat regressors.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mcetm.console import progress
from mcetm.data import Transitions
from mcetm.dynamics import (
    ANCHORED,
    PAPER_EMPO,
    STANDARD,
    Langevin,
)
from mcetm.files import write_json
from mcetm.pipeline import describe_environment
from mcetm.training import EarlyStopping
from mcetm_experiments.contact.figures import draw_contact
from mcetm_experiments.contact.settings import ContactStudy
from mcetm_experiments.shared.baselines import BaselinesConfig, scaled_down, train_baselines
from mcetm_experiments.shared.keeping import kept
from mcetm_experiments.shared.models import FULL_AUTOENCODER, FULL_DIFFUSION, FULL_GAUSSIAN
from mcetm_experiments.shared.openloop import Windows, open_loop
from mcetm_experiments.shared.tosses import read_tosses

WIDTH = 2.0
"""The cube's width in the file's unit of length, which is half of it (0.0524 m)."""
HORIZONS = (1, 10, 25, 50)
_ROTATION = slice(3, 7)


@dataclass(frozen=True)
class ContactConfig:
    """How much is trained and tested."""

    baselines: BaselinesConfig
    """The models and their training."""
    seeds: int = 3
    """Each has a split between tosses and initial weights of its own."""
    holdout: float = 0.15
    """Share of the tosses that no model sees."""
    every: int = 10
    """Rows between the starts of test windows."""
    draws: int = 3
    """Sampled rollouts of each window, beside the point prediction."""


# Beside the largest changes, those of impacts, rotations are so small that they are not learned in the box.
_STANDARD = replace(STANDARD, variable="change")


def _fast() -> BaselinesConfig:
    config = BaselinesConfig(
        # So few rows are soon learned by heart: the hold-out says when to stop.
        gaussian=replace(
            FULL_GAUSSIAN,
            steps=10_000,
            batch_size=512,
            early_stopping=EarlyStopping(patience=8),
            validate_every=250,
        ),
        autoencoder=replace(FULL_AUTOENCODER, latent_dim=10, width=128, steps=10_000),
        diffusion=replace(FULL_DIFFUSION, steps=20_000),
        standard=_STANDARD,
        plain=PAPER_EMPO,
        anchored=ANCHORED,
    )
    config = scaled_down(config, members=3, batch_size=256)
    return replace(
        config,
        standard=replace(config.standard, steps=3000),
        plain=replace(config.plain, steps=3000),
        anchored=replace(config.anchored, batch_size=1024, steps=5_000),
    )


def _quick() -> BaselinesConfig:
    short = Langevin(steps=6)
    config = BaselinesConfig(
        gaussian=replace(FULL_GAUSSIAN, members=3, elites=3, width=100, depth=3, steps=3000, batch_size=256),
        autoencoder=replace(FULL_AUTOENCODER, latent_dim=10, steps=3000, batch_size=256),
        diffusion=replace(FULL_DIFFUSION, width=100, depth=3, steps=4000, batch_size=256),
        standard=replace(_STANDARD, ambient=Langevin(steps=12)),
        plain=replace(PAPER_EMPO, latent=short, ambient=short),
        anchored=ANCHORED,
    )
    config = scaled_down(config, members=2, batch_size=64, count=8, width=64, depth=3, steps=600)
    return replace(config, anchored=replace(config.anchored, steps=1500))


PRESETS = {
    "quick": lambda: ContactConfig(_quick(), seeds=2, every=20, draws=2),
    "fast": lambda: ContactConfig(_fast()),
}


def unit_quaternion(state: Float[Array, " obs"]) -> Float[Array, " obs"]:
    """The state with its rotation back on the unit sphere."""
    rotation = state[_ROTATION]
    return state.at[_ROTATION].set(rotation / jnp.maximum(jnp.linalg.norm(rotation), 1e-6))


def errors(
    predicted: Float[np.ndarray, "windows horizon obs"],
    ground_truth: Float[np.ndarray, "windows horizon obs"],
) -> dict[str, Float[np.ndarray, " horizon"]]:
    """Mean error after each step: position in cube widths, rotation in degrees."""
    position = np.linalg.norm(predicted[..., :3] - ground_truth[..., :3], axis=-1) / WIDTH
    cosine = np.abs((predicted[..., _ROTATION] * ground_truth[..., _ROTATION]).sum(axis=-1))
    rotation = np.degrees(2.0 * np.arccos(np.clip(cosine, 0.0, 1.0)))
    return {"position": position.mean(axis=0), "rotation": rotation.mean(axis=0)}


def run_contact(settings: ContactStudy, config: ContactConfig | None = None) -> dict[str, Any]:
    """Train every model for every seed, test it open loop, write `results.json` and a figure.

    Finished seeds are kept in `out/seeds`; a study that was stopped goes on after them.
    """
    out, seed = settings.out, settings.seed
    tosses = read_tosses(settings.data)
    config = config or PRESETS[settings.preset]()
    setting = {"config": asdict(config), "data": tosses.checksum}
    runs = []
    with progress("contact study", config.seeds, unit="seeds") as advance:
        for s in range(seed, seed + config.seeds):
            runs.append(kept(out / "seeds" / f"{s}.json", setting, lambda s=s: _run_seed(tosses, config, s)))
            advance(1)
    models = {name: _summary([run[name] for run in runs]) for name in runs[0] if name != "example"}
    results = {
        "study": "contact",
        "preset": settings.preset,
        **setting,
        "tosses": tosses.num_episodes,
        "environment": describe_environment(),
        "horizons": HORIZONS,
        "units": {"position": "cube widths", "rotation": "degrees"},
        "models": models,
        "winners": _winners(models),
    }
    draw_contact(out / "contact", runs)
    write_json(out / "results.json", results)
    return results


def _run_seed(tosses: Transitions, config: ContactConfig, seed: int) -> dict[str, Any]:
    """Every model's error curves, and the heights of one example."""
    train, test = tosses.split(config.holdout, seed=seed)
    windows = Windows.of(test, max(HORIZONS), every=config.every)
    ground_truth = np.asarray(windows.ground_truth)
    still = np.repeat(np.asarray(windows.start)[:, None], ground_truth.shape[1], axis=1)
    shown = _falling(ground_truth)
    run: dict[str, Any] = {"no change": {"point": errors(still, ground_truth), "seconds": 0.0}}
    example = {"ground truth": ground_truth[shown, :, 2] / WIDTH}
    # Elites are chosen on part of the training tosses, never on the test.
    fitted, holdout = train.split(0.1, seed=seed)
    for baseline in train_baselines(fitted, holdout, config.baselines, key=jax.random.key(seed)):
        point_key, *keys = jax.random.split(jax.random.key(1000 + seed), 1 + config.draws)
        point = open_loop(baseline.predict, project=unit_quaternion)(windows, point_key)
        roll = open_loop(baseline.sample, project=unit_quaternion)
        sampled = [errors(roll(windows, key), ground_truth) for key in keys]
        run[baseline.name] = {
            "point": errors(point, ground_truth),
            "sampled": {name: np.mean([s[name] for s in sampled], axis=0) for name in sampled[0]},
            "seconds": baseline.seconds,
        }
        example[baseline.name] = point[shown, :, 2] / WIDTH
    return {**run, "example": example}


def _falling(ground_truth: Float[np.ndarray, "windows horizon obs"]) -> int:
    """The window whose cube loses most height: it falls, hits and rolls."""
    return int(np.argmax(ground_truth[:, 0, 2] - ground_truth[:, -1, 2]))


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and spread over seeds at the stated horizons, and the mean curve."""
    summary: dict[str, Any] = {"seconds": float(np.mean([run["seconds"] for run in runs]))}
    for kind in ("point", "sampled"):
        if kind not in runs[0]:
            continue
        summary[kind] = {}
        for name in ("position", "rotation"):
            curves = np.array([run[kind][name] for run in runs])
            at = curves[:, [h - 1 for h in HORIZONS]]
            summary[kind][name] = {
                "mean": at.mean(axis=0).tolist(),
                "std": at.std(axis=0, ddof=1).tolist() if len(runs) > 1 else None,
                "seeds": at.tolist(),
            }
    return summary


def _winners(models: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Who has the least mean error at each horizon, and whether the next one is further than the spread."""
    winners: dict[str, dict[str, str]] = {}
    baselines = {name: model for name, model in models.items() if "sampled" in model}
    for quantity in ("position", "rotation"):
        winners[quantity] = {}
        for i, horizon in enumerate(HORIZONS):
            means = {name: model["point"][quantity]["mean"][i] for name, model in baselines.items()}
            first, second = sorted(means, key=lambda name: means[name])[:2]
            seeds = [np.array(baselines[name]["point"][quantity]["seeds"])[:, i] for name in (first, second)]
            clear = bool((seeds[0] < seeds[1]).all())
            margin = "for every seed" if clear else f"not for every seed against {second}"
            winners[quantity][str(horizon)] = f"{first} ({margin})"
    return winners
