"""The didactic study: which transition models can follow a function that jumps (section 5.1 of the paper)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm import UserError
from mcetm.console import progress
from mcetm.dynamics import (
    ANCHORED,
    PAPER_EMPO,
    STANDARD,
    EnergySettings,
    InferenceSettings,
    Langevin,
)
from mcetm.files import write_json
from mcetm.pipeline import describe_environment
from mcetm_experiments.didactic.figures import draw_errors, draw_surfaces
from mcetm_experiments.didactic.settings import DidacticStudy
from mcetm_experiments.shared.baselines import Baselines, BaselinesConfig, Trained, seeded
from mcetm_experiments.shared.discontinuous import (
    NEAR,
    didactic_function,
    draw_transitions,
    impossible,
    jump_distance,
    uniform_grid,
)
from mcetm_experiments.shared.keeping import kept
from mcetm_experiments.shared.models import FULL_AUTOENCODER, FULL_DIFFUSION, FULL_GAUSSIAN
from mcetm_experiments.shared.summary import over_seeds

Predict = Callable[[Array, Array, PRNGKeyArray], Float[Array, "seeds obs"]]

MODELS = {
    "MLP, equal steps": "brief",
    "MLP, equal time": "mlp",
    "probabilistic MLP": "gaussian",
    "diffusion": "diffusion",
    "standard ETM": "standard",
    "MC-ETM": "plain",
    "anchored ETM": "anchored",
}
"""Names in tables and figures, and in `Baselines`."""
CUT = (np.linspace(-0.56, -0.44, 120), 0.25)
"""States and action of the cut through all surfaces, across the largest jump."""
_BATCH = 1600
_HOLDOUT_ROWS = 2000


@dataclass(frozen=True)
class DidacticConfig:
    """How much is trained and tested.

    The members of every ensemble are the seeds: each has initial weights and minibatches of its own.
    """

    baselines: BaselinesConfig
    """The models and their training."""
    seeds: int = 5
    """Independent trainings of every model."""
    transitions: int = 100_000
    """The appendix says 100,000, the text 10,000."""
    grid: int = 80
    """Points along each side of [−1, 1]²; even, so that none lies on a discontinuity."""
    starts: int = 16
    """Chains of an energy's point prediction, of which the lowest in energy is taken."""


def _baselines(
    steps: dict[str, int], *, width: int, depth: int, batch_size: int, rate: float, count: int
) -> BaselinesConfig:
    """Everybody's networks of one width, activation, schedule and rate; steps for about equal training times.

    An energy is as deep as a regressor below s', and has two layers above.
    """
    regressor = replace(
        FULL_GAUSSIAN, width=width, depth=depth, activation="relu", learning_rate=rate, batch_size=batch_size
    )

    def energy(base: EnergySettings, name: str, **changes: Any) -> EnergySettings:
        shared: dict[str, Any] = {"width": width, "learning_rate": rate, "schedule": "cosine"}
        sizes: dict[str, Any] = {"batch_size": batch_size, "count": count, "steps": steps[name]}
        return replace(base, activation="relu", **shared, **sizes, **changes)

    # Slopes need no bound where negatives are drawn and not sought by chains; predictions end in small steps.
    free: dict[str, Any] = {"latent": Langevin(steps=0), "ambient": Langevin(steps=0), "penalty": 0.0}
    plain = {"variable": "next_obs", "trunk": depth, "depth": 2, **free}
    chain = Langevin(steps=20, last=1e-4, noise=0.1)
    return BaselinesConfig(
        gaussian=replace(regressor, steps=steps["gaussian"]),
        mlp=replace(regressor, squared=True, steps=steps["mlp"]),
        brief=replace(regressor, squared=True, steps=steps["standard"]),
        autoencoder=replace(FULL_AUTOENCODER, latent_dim=1, width=32, depth=2, steps=1000, batch_size=256),
        diffusion=replace(
            FULL_DIFFUSION,
            width=width,
            depth=depth,
            activation="relu",
            learning_rate=rate,
            batch_size=batch_size,
            steps=steps["diffusion"],
        ),
        # On a line, uniform draws leave no gap that a chain would have to find.
        standard=energy(STANDARD, "standard", **plain),
        # Codes of spread 1: σ reaches from the noise to the other modes.
        plain=energy(PAPER_EMPO, "plain", sigma=(0.1, 3.0), **plain),
        anchored=energy(ANCHORED, "anchored", depth=depth),
        standard_inference=InferenceSettings(start="uniform", latent=None, ambient=chain),
        plain_inference=InferenceSettings(start="noise", latent=None, ambient=chain),
    )


def _quick() -> DidacticConfig:
    steps = {
        "mlp": 14_000,
        "gaussian": 7000,
        "diffusion": 11_000,
        "standard": 2000,
        "plain": 1800,
        "anchored": 1000,
    }
    baselines = _baselines(steps, width=64, depth=3, batch_size=256, rate=5e-3, count=8)
    return DidacticConfig(baselines, grid=64)


def _paper() -> DidacticConfig:
    regressors = {"mlp": 60_000, "gaussian": 60_000, "diffusion": 40_000}
    steps = {**regressors, "standard": 20_000, "plain": 20_000, "anchored": 20_000}
    return DidacticConfig(
        _baselines(steps, width=200, depth=4, batch_size=1024, rate=1e-3, count=8), grid=200, starts=32
    )


PRESETS = {"quick": _quick, "paper": _paper}


def run_didactic(settings: DidacticStudy, config: DidacticConfig | None = None) -> dict[str, Any]:
    """Train every model, compare it with the ground truth on the grid, write `results.json` and two figures.

    Finished models are kept in `out/models`; a study that was stopped goes on after them.
    """
    out, seed = settings.out, settings.seed
    config = config or PRESETS[settings.preset]()
    config = replace(
        config,
        transitions=config.transitions if settings.transitions is None else settings.transitions,
        seeds=config.seeds if settings.seeds is None else settings.seeds,
    )
    if config.transitions < 1000 or config.seeds < 1:
        raise UserError(
            f"The didactic study needs at least 1,000 transitions and 1 seed, not {config.transitions} "
            f"and {config.seeds}."
        )
    setting = {"config": asdict(config), "seed": seed}
    train = draw_transitions(config.transitions, seed=seed)
    holdout = draw_transitions(_HOLDOUT_ROWS, seed=seed + 1_000_000)
    baselines = Baselines(
        train, holdout, seeded(config.baselines, config.seeds), key=jax.random.key(seed), chunks=4
    )
    found: dict[str, dict[str, Any]] = {}
    with progress("didactic study", len(MODELS), unit="models") as advance:
        for name, attribute in MODELS.items():
            found[name] = kept(
                out / "models" / f"{attribute}.json",
                setting,
                lambda attribute=attribute: _measure(getattr(baselines, attribute), attribute, config, seed),
            )
            advance(1)
    results = {
        "study": "didactic",
        "preset": settings.preset,
        **setting,
        "environment": describe_environment(),
        "models": {name: _summary(model) for name, model in found.items()},
    }
    square = (config.grid, config.grid)
    ground_truth = didactic_function(*uniform_grid(config.grid)).reshape(square)
    surfaces = {name: np.reshape(model["surface"], square) for name, model in found.items()}
    across = {"ground truth": didactic_function(CUT[0], np.full_like(CUT[0], CUT[1]))}
    across |= {name: np.array(model["cut"]) for name, model in found.items()}
    draw_surfaces(out / "didactic", {"ground truth": ground_truth, **surfaces}, CUT, across)
    draw_errors(
        out / "didactic-errors", {name: np.reshape(model["error"], square) for name, model in found.items()}
    )
    write_json(out / "results.json", results)
    return results


def _measure(trained: Trained, attribute: str, config: DidacticConfig, seed: int) -> dict[str, Any]:
    """A model's errors on the grid, seed by seed, and the surface that its first seed predicts."""
    state, action = uniform_grid(config.grid)
    ground_truth = didactic_function(state, action)
    keys = jax.random.split(jax.random.key(1000 + seed), 2)
    cut = np.concatenate([state, CUT[0]]), np.append(action, np.full_like(CUT[0], CUT[1]))
    found, seconds = _on_grid(_point(trained.model, config.starts), *cut, keys[0])
    point = found[:, : len(state)]
    result: dict[str, Any] = {
        "seconds": trained.seconds,
        "inference": seconds / len(found),
        "point": _errors(point, ground_truth, state, action),
        "surface": point[0],
        "cut": found[0, len(state) :],
        "error": np.abs(point - ground_truth).mean(axis=0),
    }
    if attribute not in ("mlp", "brief"):  # their spread means nothing
        draw = lambda o, a, k: trained.model.draw(o, a, 1, key=k).next_obs[:, 0]  # noqa: E731
        sampled, _ = _on_grid(draw, state, action, keys[1])
        result["sampled"] = _errors(sampled, ground_truth, state, action)
    return result


def _point(model: Any, starts: int) -> Predict:
    """How each member of a model predicts one next state."""
    if model.has_energy:
        return lambda o, a, k: model.lowest(o, a, starts, key=k)
    return lambda o, a, k: model.means(o, a, key=k)


def _on_grid(
    predict: Predict, state: np.ndarray, action: np.ndarray, key: PRNGKeyArray
) -> tuple[Float[np.ndarray, "seeds points"], float]:
    """Predictions at every point, and the seconds that a point took once compiled."""
    run = jax.jit(jax.vmap(predict))
    inputs = [jnp.asarray(values, jnp.float32)[:, None] for values in (state, action)]
    keys = jax.random.split(key, len(state))
    size = -(-len(state) // max(2, -(-len(state) // _BATCH)))
    parts, began = [], 0.0
    for first in range(0, len(state), size):
        # The last batch begins early, so that all have one size and one program serves them.
        begin = min(first, len(state) - size)
        chosen = slice(begin, begin + size)
        parts.append(np.asarray(run(inputs[0][chosen], inputs[1][chosen], keys[chosen]))[first - begin :])
        if not first:
            began = time.perf_counter()  # the first batch was compiled
    seconds = (time.perf_counter() - began) / (size * (len(parts) - 1))
    return np.concatenate(parts)[..., 0].T, seconds


def _errors(
    predicted: Float[np.ndarray, "seeds points"],
    ground_truth: np.ndarray,
    state: np.ndarray,
    action: np.ndarray,
) -> dict[str, Float[np.ndarray, " seeds"]]:
    """Mean absolute error everywhere, near the discontinuities and away; the share of impossible states."""
    error, near = np.abs(predicted - ground_truth), jump_distance(state, action) <= NEAR
    nowhere = impossible(predicted, state, action)
    return {
        "error": error.mean(axis=1),
        "near": error[:, near].mean(axis=1),
        "away": error[:, ~near].mean(axis=1),
        "impossible": nowhere.mean(axis=1),
        "impossible near": nowhere[:, near].mean(axis=1),
    }


def _summary(model: dict[str, Any]) -> dict[str, Any]:
    """Costs, and mean and spread over seeds of every measure."""
    found = {kind: over_seeds(model[kind]) for kind in ("point", "sampled") if kind in model}
    return {"seconds": model["seconds"], "inference": model["inference"], **found}
