"""What a trust region knows of pairs (s, a): those beside the log, far ones, and fresh ones of its kind.

Every score is fitted to a part of a log's episodes and looked at on the rest. Pairs beside the log are fresh
pairs with noise on every column, in units of its spread. Far ones lie 10 to 100 spreads off, in random
directions or along one column; it is told which part of the score cuts them. False alarms are counted on
episodes that neither fit nor limit has seen. The error to expect is looked at for every model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from mcetm import World, fit, load_dataset
from mcetm.data import Statistics, Transitions
from mcetm.dynamics import PairScore, TransitionModel, TrustRegion, fit_pairs
from mcetm.evaluation import auroc
from mcetm.files import write_json
from mcetm.nn import Scaling
from mcetm.pipeline import describe_environment, make_config
from mcetm_experiments.shared.keeping import kept
from mcetm_experiments.shared.summary import over_seeds
from mcetm_experiments.shared.tosses import read_tosses
from mcetm_experiments.trust.figures import draw_trust
from mcetm_experiments.trust.settings import TOSSES
from mcetm_experiments.trust.visited import energy_score, on_visited, visitors

if TYPE_CHECKING:
    from mcetm_experiments.trust.settings import TrustStudy

NEAR = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Noise on held-out pairs, in spreads."""
FAR = (10.0, 30.0, 100.0)
"""Distances of far pairs, in spreads."""
_FRESH = 0.3
"""Share of the episodes that only false alarms are counted on."""
_ROWS = 4000
_EXPECTED = 500
"""Rows that the error to expect is looked at on: some models run chains for each."""
_NEIGHBOURS = 20_000

Pairs = Float[np.ndarray, "rows columns"]
Score = Callable[[Pairs], Float[np.ndarray, " rows"]]


def run_trust(settings: TrustStudy) -> dict[str, Any]:
    """All logs and seeds; what is done is kept beside the results."""
    logs: dict[str, Any] = {}
    for name in settings.logs:
        log = _read(name, settings.rows)
        parts = []
        for seed in range(settings.seeds):
            setting = {"log": log.checksum, "preset": settings.preset, "seed": seed}
            part = settings.out / "parts" / f"{name.replace('/', '-')}-{settings.preset}-{seed}.json"
            parts.append(kept(part, setting, lambda log=log, seed=seed: measure(log, settings.preset, seed)))
            if settings.visited and (policies := visitors(log)):
                setting = {**setting, "policies": policies, "rows": settings.visited}
                part = part.with_name(f"{part.stem}-visited.json")
                make = lambda log=log, seed=seed, who=policies: {  # noqa: E731
                    "visited": measure_visited(log, settings.preset, who, rows=settings.visited, seed=seed)
                }
                parts[-1] = parts[-1] | kept(part, setting, make)
        logs[name] = {
            "rows": len(log),
            "episodes": log.num_episodes,
            **{key: _gathered([part[key] for part in parts]) for key in parts[0]},
            "expected_error": _expected(settings, name, log),
        }
    results = {
        "study": "trust",
        "preset": settings.preset,
        "noise": NEAR,
        "distances": FAR,
        "logs": logs,
        "environment": describe_environment(),
    }
    write_json(settings.out / "results.json", results)
    draw_trust(settings.out / "trust", results)
    return results


def _expected(settings: TrustStudy, name: str, log: Transitions) -> dict[str, dict[str, float]]:
    """The error to expect of each model, with the first seed: training every model takes most of the time."""
    pairs = functools.cache(lambda: _pairs(log, settings.preset, 0))  # of all models, once one is measured
    found = {}
    for model in settings.models:
        part = settings.out / "parts" / f"{name.replace('/', '-')}-{settings.preset}-0-{model}.json"
        setting = {"log": log.checksum, "preset": settings.preset, "seed": 0, "model": model}
        find = lambda model=model: {  # noqa: E731
            "error": measure_expected(log, settings.preset, model, pairs(), 0)
        }
        found[model] = kept(part, setting, find)["error"]
    return found


def _pairs(log: Transitions, preset: str, seed: int) -> PairScore:
    train, holdout, _ = split(log, seed)
    settings = make_config(preset, model="gaussian", algo="mobile").world.pairs
    return fit_pairs(train, holdout, settings, key=jax.random.key(seed))


def _gathered(parts: list[Any]) -> Any:
    """Plain results of several seeds as one, with a summary at every leaf."""
    if isinstance(parts[0], dict):
        return {key: _gathered([part[key] for part in parts]) for key in parts[0]}
    return over_seeds({"": np.array(parts, float).T})[""]


def _read(name: str, rows: int) -> Transitions:
    log = read_tosses() if name == TOSSES else load_dataset(name)
    return log if len(log) <= rows else log.head(rows)


def measure(log: Transitions, preset: str, seed: int) -> dict[str, Any]:
    """One split of a log: every score near and far, what cuts far pairs, and false alarms."""
    config = make_config(preset, model="gaussian", algo="mobile")
    train, holdout, fresh = split(log, seed)
    pairs = _pairs(log, preset, seed)
    model = fit(config.model, train, holdout=holdout, seed=seed)
    rng = np.random.default_rng(seed)
    rows = stacked(fresh)[rng.permutation(len(fresh))[:_ROWS]]
    spread = stacked(train).std(axis=0)
    both = lambda x: (x[:, : log.obs_dim], x[:, log.obs_dim :])  # noqa: E731
    scores: dict[str, Score] = {
        "pair score": lambda x: np.asarray(pairs(*both(x))),
        "odds alone": lambda x: np.asarray(pairs.terms(*both(x))["odds"]),
        "distance alone": lambda x: np.asarray(pairs.distance(*both(x))),
        "disagreement": lambda x: np.asarray(model.disagreement(*both(x))),
        "nearest neighbour": _neighbour(stacked(train), spread, rng),
    }
    limits = {name: _limit(name, pairs, score, stacked(holdout)) for name, score in scores.items()}
    found: dict[str, Any] = {name: {} for name in scores}
    moved = {f"{size:g}": rows + size * spread * rng.standard_normal(rows.shape) for size in NEAR}
    distant = {
        f"{kind} {size:g}": (rows + size * spread * directions(rows.shape, kind, rng)).astype(np.float32)
        for size in FAR
        for kind in ("direction", "column")
    }
    for name, score in scores.items():
        at_home = score(rows)
        found[name]["auroc"] = {
            size: auroc(at_home, score(x.astype(np.float32))) for size, x in moved.items()
        }
        found[name]["outside"] = {
            where: float(np.mean(score(x) > limits[name])) for where, x in distant.items()
        }
        outside = score(stacked(fresh)) > limits[name]
        found[name]["false_alarms"] = float(np.mean(outside))
        found[name]["false_alarms_interval"] = _over_episodes(outside, fresh, rng)
    cut_by = {
        where: {
            term: float(np.mean(np.asarray(value) > float(pairs.limit)))
            for term, value in pairs.terms(*both(x)).items()
        }
        for where, x in distant.items()
    }
    return {"scores": found, "cut_by": cut_by}


def measure_expected(
    log: Transitions, preset: str, name: str, pairs: PairScore, seed: int
) -> dict[str, float]:
    """The error to expect of a model by the distance from the log: median, in spreads of one step."""
    config = make_config(preset, model=name, algo="mcetm")
    train, holdout, fresh = split(log, seed)
    key = jax.random.key(seed)
    model: TransitionModel = fit(config.model, train, holdout=holdout, seed=seed)
    trust = TrustRegion.of(model, holdout, config.world.calibration, pairs=pairs, key=key)
    change = Scaling.of(Statistics.of(train).change)
    world = World(model, lambda obs, action, following: jnp.zeros(()), trust=trust, change=change)
    rng = np.random.default_rng(seed)
    rows = stacked(fresh)[rng.permutation(len(fresh))[:_EXPECTED]]
    along = stacked(train).std(axis=0) * directions(rows.shape, "direction", rng)

    def error(size: float) -> float:
        x = (rows + size * along).astype(np.float32)
        return float(np.median(world.expected_error(x[:, : log.obs_dim], x[:, log.obs_dim :])))

    return {f"{size:g}": error(size) for size in (0.0, 1.0, 3.0, *FAR)}


def split(log: Transitions, seed: int) -> tuple[Transitions, Transitions, Transitions]:
    """What a score is fitted to, what its limit is found on, and fresh episodes that neither has seen."""
    known, fresh = log.split(_FRESH, seed=seed)
    return *known.split(0.1, seed=seed), fresh


def _over_episodes(outside: Any, log: Transitions, rng: np.random.Generator) -> dict[str, float]:
    """The 95 % interval of the share of rows outside, by drawing whole episodes: rows of one are alike."""
    counts = np.add.reduceat(outside.astype(float), log.episode_starts)
    drawn = rng.integers(0, log.num_episodes, (2000, log.num_episodes))
    shares = counts[drawn].sum(axis=1) / log.episode_lengths[drawn].sum(axis=1)
    low, high = np.quantile(shares, [0.025, 0.975])
    return {"low": float(low), "high": float(high)}


def measure_visited(
    log: Transitions, preset: str, policies: Sequence[str], *, rows: int, seed: int
) -> dict[str, Any]:
    """Every score on the states that these policies visit, of MC-ETM's model in the world around it."""
    config = make_config(preset, dataset=log.metadata.source, algo="mcetm")
    train, holdout, fresh = split(log, seed)
    model: Any = fit(config.model, train, holdout=holdout, seed=seed)
    world = World.of(model, train, holdout=holdout, config=config.world, seed=seed)
    spread = stacked(train).std(axis=0)
    neighbour = _neighbour(stacked(train), spread, np.random.default_rng(seed))
    scores = {
        "energy": energy_score(model, world),
        "pair score": lambda obs, action: np.asarray(world.pair_score(obs, action)),
        "expected error": lambda obs, action: np.asarray(world.expected_error(obs, action)),
        "disagreement": lambda obs, action: np.asarray(model.disagreement(obs, action)),
        "nearest neighbour": lambda obs, action: neighbour(np.concatenate([obs, action], axis=1)),
    }
    return on_visited(world, scores, fresh, policies, rows=rows, seed=seed)


def _limit(name: str, pairs: PairScore, score: Score, held_out: Pairs) -> float:
    """The pair score has a limit of its own; for others it is the same quantile over held-out pairs."""
    return float(pairs.limit) if name == "pair score" else float(np.quantile(score(held_out), 0.995))


def stacked(log: Transitions) -> Pairs:
    """Pairs (s, a) of a log as rows."""
    return np.concatenate([log.obs, log.action], axis=1)


def directions(shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> Pairs:
    """One vector of length 1 for each row: in any direction, or along one column."""
    if kind == "direction":
        drawn = rng.standard_normal(shape)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    drawn = np.zeros(shape)
    drawn[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] = rng.choice([-1.0, 1.0], shape[0])
    return drawn


def _neighbour(pairs: Pairs, spread: np.ndarray, rng: np.random.Generator) -> Score:
    """The distance to the nearest of some pairs of the log, in spreads."""
    from scipy.spatial import KDTree

    scale = np.where(spread > 0.0, spread, 1.0)
    tree = KDTree(pairs[rng.permutation(len(pairs))[:_NEIGHBOURS]] / scale)
    return lambda x: np.asarray(tree.query(x / scale)[0])
