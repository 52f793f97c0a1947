"""The landscape study: how energies rise on and off the manifold of states (section 5.1 of the paper).

The didactic function's states and actions are embedded as curves in many dimensions. At a true transition the
energy is then followed along the curve's tangent and along its normals, where no state ever is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm import UserError
from mcetm.console import progress
from mcetm.data import Transitions
from mcetm.dynamics import (
    ANCHORED,
    PAPER_EMPO,
    REFINE,
    STANDARD,
    Conditional,
    Energy,
    EnergyModel,
    EnergySettings,
    EnergyTransitionModel,
    InferenceSettings,
    Langevin,
    reconstruction,
)
from mcetm.evaluation import auroc
from mcetm.files import write_json
from mcetm.pipeline import describe_environment
from mcetm_experiments.landscape.embedding import Embedding
from mcetm_experiments.landscape.figures import draw_numbers, draw_slices
from mcetm_experiments.landscape.settings import LandscapeStudy
from mcetm_experiments.shared.baselines import Baselines, BaselinesConfig, Trained, seeded
from mcetm_experiments.shared.discontinuous import NOISE, as_log, didactic_function
from mcetm_experiments.shared.keeping import kept
from mcetm_experiments.shared.models import FULL_AUTOENCODER, FULL_GAUSSIAN
from mcetm_experiments.shared.summary import over_seeds

MODELS = {"standard ETM": "standard", "MC-ETM": "plain", "anchored ETM": "anchored"}
DISTANCES = (0.025, 0.05, 0.1, 0.2, 0.4)
"""Sizes of the steps off the ground truth; the noise along the curve is 0.05."""
WATCHED = 2
"""The distance (0.1) that is watched during training."""
SHOWN = ((0.0, 0.0), (0.75, 0.25), (-0.75, -0.25), (0.25, 0.75))
"""(s, a) of the slices: the wave and the three plateaus."""
_RANGE = (-2.0, 2.5)
"""Numbers whose curve counts as the manifold of next states: f and its noise, with some room."""


@dataclass(frozen=True)
class LandscapeConfig:
    """How much is trained and tested. The members of every ensemble are the seeds."""

    baselines: BaselinesConfig
    """The models and their training."""
    seeds: int = 5
    """Independent trainings of every model."""
    transitions: int = 100_000
    """Rows of the log."""
    state_dim: int = 20
    """Dimensions that a state is embedded in; `mcetm study landscape` says how many."""
    action_dim: int = 10
    """Dimensions that an action is embedded in."""
    probes: int = 1000
    """True transitions, uniform over [−1, 1]², at which energies are looked at."""
    starts: int = 8
    """Chains of a prediction, of which the lowest in energy is taken."""
    chain: Langevin = field(default_factory=lambda: Langevin(steps=50, first=0.02, last=0.02))
    """A piece of the long chains, which begin at the ground truth."""
    pieces: int = 10
    """Pieces of a long chain; the distance from the curve is measured after each."""
    resolution: int = 61
    """Points along each side of a slice."""
    chunks: int = 8
    """Measurements during training."""


def _baselines(
    steps: dict[str, int], *, width: int, batch_size: int, count: int, rate: float
) -> BaselinesConfig:
    """Energies of one size; steps for about equal training times."""

    def energy(base: EnergySettings, name: str, **changes: Any) -> EnergySettings:
        shared: dict[str, Any] = {"width": width, "learning_rate": rate, "schedule": "cosine"}
        sizes: dict[str, Any] = {"batch_size": batch_size, "count": count, "steps": steps[name]}
        return replace(base, **shared, **sizes, **changes)

    plain = {"variable": "next_obs", "trunk": 3, "depth": 2}
    last = Langevin(steps=20, noise=0.1)
    return BaselinesConfig(
        gaussian=replace(
            FULL_GAUSSIAN,
            width=width,
            depth=3,
            activation="relu",
            learning_rate=rate,
            batch_size=2 * batch_size,
            steps=steps["gaussian"],
        ),
        autoencoder=replace(FULL_AUTOENCODER, latent_dim=2, steps=steps["autoencoder"], batch_size=256),
        standard=energy(STANDARD, "standard", **plain),
        plain=energy(PAPER_EMPO, "plain", **plain),
        anchored=energy(ANCHORED, "anchored", depth=3),
        standard_inference=InferenceSettings(latent=None, ambient=last),
        plain_inference=InferenceSettings(latent=last, ambient=last),
        # Coordinates are far from independent here: the anchor's spread is a poor unit, so steps are small.
        anchored_inference=replace(
            REFINE, accept_only_lower=True, ambient=replace(REFINE.ambient, first=0.01, last=1e-3, noise=0.1)
        ),
    )


def with_chains(baselines: BaselinesConfig, steps: int) -> BaselinesConfig:
    """Negatives at the end of so many Langevin steps; of MC-ETM's one half are latent."""
    if steps < 0:
        raise UserError(f"A chain cannot have {steps} steps.")
    latent, ambient = (Langevin(steps=part) for part in (steps // 2, steps - steps // 2))
    return replace(
        baselines,
        standard=replace(baselines.standard, ambient=Langevin(steps=steps)),
        plain=replace(baselines.plain, latent=latent, ambient=ambient),
    )


def _quick() -> LandscapeConfig:
    steps = {"gaussian": 2000, "autoencoder": 2000, "standard": 1200, "plain": 850, "anchored": 600}
    baselines = with_chains(_baselines(steps, width=64, batch_size=128, count=4, rate=3e-3), 4)
    return LandscapeConfig(baselines, seeds=3, transitions=20_000, probes=200, pieces=6, chunks=5)


def _paper() -> LandscapeConfig:
    steps = {"gaussian": 20_000, "autoencoder": 10_000, "standard": 5000, "plain": 3600, "anchored": 10_000}
    return LandscapeConfig(_baselines(steps, width=200, batch_size=256, count=16, rate=1e-3))


PRESETS = {"quick": _quick, "paper": _paper}


class Probes(eqx.Module):
    """True transitions in the embedding, with the directions along and off the curve of states."""

    obs: Float[Array, "probes obs"]
    action: Float[Array, "probes action"]
    ground_truth: Float[Array, "probes obs"]
    tangent: Float[Array, "probes obs"]
    normal: Float[Array, "probes obs"]

    @classmethod
    def at(
        cls,
        pairs: Float[np.ndarray, "probes 2"],
        embeddings: tuple[Embedding, Embedding],
        *,
        key: PRNGKeyArray,
    ) -> Probes:
        """The transitions without noise at these (s, a)."""
        state, action = pairs.T
        follow = jnp.asarray(didactic_function(state, action), jnp.float32)
        keys = jax.random.split(key, len(pairs))
        states, actions = embeddings
        return cls(
            jax.vmap(states)(jnp.asarray(state, jnp.float32)),
            jax.vmap(actions)(jnp.asarray(action, jnp.float32)),
            jax.vmap(states)(follow),
            jax.vmap(states.tangent)(follow),
            jax.vmap(lambda x, k: states.normal(x, key=k))(follow, keys),
        )


@eqx.filter_jit
def _energies(model: EnergyModel, probes: Probes, moves: Float[Array, "moves probes obs"]) -> Array:
    """E at the ground truth moved in every direction, for each probe and member."""
    at = jax.vmap(model.energies)
    return jax.lax.map(lambda move: at(probes.obs, probes.action, probes.ground_truth + move), moves)


def barriers(model: EnergyModel, probes: Probes) -> dict[str, Float[np.ndarray, "distances members"]]:
    """What the energy makes of small steps off the ground truth, for every distance and member.

    `normal` and `tangent` are gaps E(s' + d v) − E(s'), means over both signs of v; `pairs` is the share of
    probes whose own energy rises along the normal, `auroc` compares the energies of all probes.
    """
    sizes = jnp.asarray([sign * d for d in DISTANCES for sign in (1.0, -1.0)], jnp.float32)[:, None, None]
    moves = jnp.concatenate(
        [jnp.zeros((1, *probes.ground_truth.shape)), sizes * probes.normal, sizes * probes.tangent]
    )
    energies = np.asarray(_energies(model, probes, moves), np.float64)
    ground_truth, (off, along) = energies[0], np.split(energies[1:], 2)
    off, along = (part.reshape(len(DISTANCES), 2, *ground_truth.shape) for part in (off, along))
    gaps = {
        name: (part - ground_truth).mean(axis=(1, 2)) for name, part in (("normal", off), ("tangent", along))
    }
    scores = [
        [auroc(ground_truth[:, m], part[0][:, m]) for m in range(ground_truth.shape[1])] for part in off
    ]
    return {**gaps, "pairs": (off > ground_truth).mean(axis=(1, 2)), "auroc": np.array(scores)}


def drift(
    model: EnergyTransitionModel,
    probes: Probes,
    config: LandscapeConfig,
    states: Embedding,
    *,
    key: PRNGKeyArray,
) -> Float[np.ndarray, "pieces members"]:
    """Mean distance from the curve after each piece of long chains, which begin at the ground truth."""

    def of_member(member: Energy, obs: Array, action: Array, ground_truth: Array, key: PRNGKeyArray) -> Array:
        at = Conditional(member, model.space, obs, action)

        def piece(x: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
            x = config.chain(at, x, box=model.space.box, preconditioner=at.preconditioner, key=key)
            return x, model.space.decode(obs, x)

        return jax.lax.scan(
            piece, model.space.encode(obs, ground_truth), jax.random.split(key, config.pieces)
        )[1]

    @eqx.filter_jit
    def all_chains(members: Energy, keys: Array) -> Array:
        one = lambda *row: eqx.filter_vmap(lambda m: of_member(m, *row))(members)  # noqa: E731
        ends = jax.vmap(one)(probes.obs, probes.action, probes.ground_truth, keys)
        return states.distance(ends, *_RANGE)

    keys = jax.random.split(key, len(probes.obs))
    return np.asarray(all_chains(model.members, keys)).mean(axis=0).T


def slices(model: EnergyModel, probes: Probes, resolution: int) -> Float[np.ndarray, "probes normal tangent"]:
    """The first member's energy on the plane of tangent and normal, above that of the ground truth."""
    ticks = slice_ticks(resolution)
    off, along = (part.ravel()[:, None, None] for part in np.meshgrid(ticks, ticks, indexing="ij"))
    moves = jnp.asarray(off, jnp.float32) * probes.normal + jnp.asarray(along, jnp.float32) * probes.tangent
    still = jnp.zeros((1, *probes.ground_truth.shape))
    energies = np.asarray(_energies(model, probes, jnp.concatenate([still, moves])))[..., 0]
    return (energies[1:] - energies[0]).T.reshape(-1, resolution, resolution)


def slice_ticks(resolution: int) -> Float[np.ndarray, " ticks"]:
    """Distances along each side of a slice."""
    return np.linspace(-DISTANCES[-1], DISTANCES[-1], resolution)


def run_landscape(settings: LandscapeStudy, config: LandscapeConfig | None = None) -> dict[str, Any]:
    """Train every energy, measure it on and off the curve, write `results.json` and two figures.

    Finished models are kept in `out/models`; a study that was stopped goes on after them.
    """
    out, seed = settings.out, settings.seed
    config = config or PRESETS[settings.preset]()
    config = replace(
        config,
        state_dim=settings.state_dim,
        action_dim=settings.action_dim,
        seeds=config.seeds if settings.seeds is None else settings.seeds,
    )
    if settings.chain is not None:
        config = replace(config, baselines=with_chains(config.baselines, settings.chain))
    if config.seeds < 1:
        raise UserError(f"The landscape study needs at least 1 seed, not {config.seeds}.")
    embeddings = (
        Embedding.draw(config.state_dim, seed=seed),
        Embedding.draw(config.action_dim, seed=seed + 1_000_000),
    )
    setting = {"config": asdict(config), "seed": seed}
    train, holdout = (
        embedded(n, embeddings, seed=s) for n, s in ((config.transitions, seed), (2000, seed + 1))
    )
    rng = np.random.default_rng(seed + 2)
    probe_key, shown_key, train_key, test_key = jax.random.split(jax.random.key(seed), 4)
    probes = Probes.at(rng.uniform(-1.0, 1.0, (config.probes, 2)), embeddings, key=probe_key)
    shown = Probes.at(np.array(SHOWN), embeddings, key=shown_key)
    baselines = Baselines(
        train,
        holdout,
        seeded(config.baselines, config.seeds),
        key=train_key,
        validate=lambda model: _watch(model, probes),
        chunks=config.chunks,
    )

    def measure(trained: Trained) -> dict[str, Any]:
        model, keys = trained.model, jax.random.split(test_key)
        return {
            "seconds": trained.seconds,
            **barriers(model, probes),
            "drift": drift(model, probes, config, embeddings[0], key=keys[0]),
            **_predictions(model, probes, config.starts, embeddings[0], key=keys[1]),
            "curve": _curve(trained),
            "slices": slices(model, shown, config.resolution),
        }

    found: dict[str, dict[str, Any]] = {}
    with progress("landscape study", len(MODELS), unit="models") as advance:
        for name, attribute in MODELS.items():
            found[name] = kept(
                out / "models" / f"{attribute}.json",
                setting,
                lambda attribute=attribute: measure(getattr(baselines, attribute)),
            )
            advance(1)
    parts = kept(out / "models" / "parts.json", setting, lambda: _parts(baselines, probes, holdout))
    results = {
        "study": "landscape",
        "preset": settings.preset,
        **setting,
        "environment": describe_environment(),
        "distances": DISTANCES,
        "watched": DISTANCES[WATCHED],
        "chain": [config.chain.steps * (piece + 1) for piece in range(config.pieces)],
        "parts": parts,
        "models": {name: _summary(model) for name, model in found.items()},
        "at equal time": _at_equal_time(found),
    }
    energies = {name: np.array(model["slices"]) for name, model in found.items()}
    draw_slices(out / "landscape", energies, SHOWN, DISTANCES[-1])
    draw_numbers(out / "landscape-numbers", results)
    write_json(out / "results.json", results)
    return results


def embedded(count: int, embeddings: tuple[Embedding, Embedding], *, seed: int) -> Transitions:
    """The didactic log in the embedding; the noise is along the curve."""
    state, action, error = np.random.default_rng(seed).normal(size=(3, count))
    follow = didactic_function(state, action) + NOISE * error
    states, actions = (jax.jit(jax.vmap(embedding)) for embedding in embeddings)
    columns = ((states, state), (actions, action), (states, follow))
    return as_log(*(np.asarray(place(jnp.asarray(values, jnp.float32))) for place, values in columns))


def _watch(model: EnergyTransitionModel, probes: Probes) -> dict[str, Array]:
    """Gaps and AUROC at one distance, for the curves against training time."""
    found = barriers(model, probes)
    return {name: jnp.asarray(values[WATCHED], jnp.float32) for name, values in found.items()}


def _curve(trained: Trained) -> dict[str, Any]:
    """Seconds of training, parts and all, and what was measured then (measurements × seeds)."""
    names = ("normal", "tangent", "auroc", "pairs")
    curve = {name: [line[name] for line in trained.history] for name in names}
    return {"seconds": [trained.before + own for own in trained.clock()], **curve}


def _predictions(
    model: EnergyTransitionModel, probes: Probes, starts: int, states: Embedding, *, key: PRNGKeyArray
) -> dict[str, Float[np.ndarray, " members"]]:
    """Distance of predictions from the ground truth and from the curve."""
    predict = eqx.filter_jit(jax.vmap(lambda o, a, k: model.lowest(o, a, starts, key=k)))
    found = predict(probes.obs, probes.action, jax.random.split(key, len(probes.obs)))
    return {
        "error": np.asarray(jnp.linalg.norm(found - probes.ground_truth[:, None], axis=-1)).mean(axis=0),
        "off": np.asarray(states.distance(found, *_RANGE)).mean(axis=0),
    }


def _parts(baselines: Baselines, probes: Probes, holdout: Transitions) -> dict[str, Any]:
    """What the regressor and the autoencoder, on which the energies stand, achieve."""
    regressor, autoencoder = baselines.gaussian, baselines.autoencoder
    mean = jax.vmap(lambda o, a: regressor.model.of_members(o, a)[0])(probes.obs, probes.action)
    error = jnp.linalg.norm(mean - probes.ground_truth[:, None], axis=-1)
    return {
        "regressor": {"seconds": regressor.seconds, "error": float(error.mean())},
        "autoencoder": {
            "seconds": autoencoder.seconds,
            "reconstruction": reconstruction(autoencoder.model, holdout).error,
        },
    }


def _summary(model: dict[str, Any]) -> dict[str, Any]:
    measures = {
        name: model[name] for name in ("normal", "tangent", "pairs", "auroc", "drift", "error", "off")
    }
    measures["ratio"] = (np.array(model["normal"]) / np.array(model["tangent"])).tolist()
    curve = {name: values for name, values in model["curve"].items() if name != "seconds"}
    return {
        "seconds": model["seconds"],
        **over_seeds(measures),
        "curve": {"seconds": model["curve"]["seconds"], **over_seeds(curve)},
    }


def _at_equal_time(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What was watched of standard ETM and MC-ETM at the last time that both of them reached."""
    curves = {name: found[name]["curve"] for name in ("standard ETM", "MC-ETM")}
    seconds = min(curve["seconds"][-1] for curve in curves.values())

    def then(curve: dict[str, Any], measure: str) -> float:
        return float(np.interp(seconds, curve["seconds"], np.mean(curve[measure], axis=1)))

    models = {
        name: {m: then(curve, m) for m in ("normal", "auroc", "pairs")} for name, curve in curves.items()
    }
    return {"seconds": seconds, "models": models}
