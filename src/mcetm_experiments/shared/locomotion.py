"""The paper's twelve locomotion datasets as studies use them: logs, splits, models by preset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import jax
import numpy as np

from mcetm import UserError
from mcetm.data import Transitions
from mcetm.dynamics import (
    STANDARD,
    GaussianEnsemble,
    Langevin,
    SupportSettings,
)
from mcetm.envs import collect_recipe, dataset_path, load_dataset
from mcetm.pipeline import make_config
from mcetm.tasks import RECIPES
from mcetm_experiments.shared.baselines import NAMES, Baselines, BaselinesConfig
from mcetm_experiments.shared.models import (
    FULL_AUTOENCODER,
    FULL_DIFFUSION,
    FULL_GAUSSIAN,
    ModelsConfig,
)
from mcetm_experiments.shared.settings import Level, Source, TaskName

TASKS: tuple[TaskName, ...] = get_args(TaskName)
LEVELS: tuple[Level, ...] = get_args(Level)
MODELS = {**NAMES, "plain": "MC-ETM, paper", "anchored": "MC-ETM, fast"}
"""Models by name; MC-ETM has the settings of `mcetm train`'s presets `paper` and `fast`, the latter with
`anchor_heavy`."""


@dataclass(frozen=True)
class Logs:
    """Where logs come from and how they are divided."""

    transitions: int
    """Rows of each log, or all where it has fewer."""
    source: Source = "collected"
    """Our own collection, or D4RL's files."""
    holdout: float = 0.1
    """Share of the episodes that no model sees."""
    seed: int = 0
    """Of the division, and of logs that are smaller than their recipe's."""

    def __post_init__(self) -> None:
        if self.transitions < 1000:
            raise UserError(f"A log of {self.transitions} transitions is too small; 1,000 are the least.")
        if self.seed < 0:
            raise UserError(f"The seed must not be negative, and it is {self.seed}.")

    def load(self, task: str, level: str, folder: Path) -> Transitions:
        """A level of a task; what had to be collected at a size of its own is kept in the folder."""
        name = f"{task}-{level}"
        if self.source == "d4rl":
            return thinned(load_dataset(f"{name}-v2").with_next, self.transitions, seed=self.seed)
        recipe = RECIPES[name]
        if self.transitions >= recipe.transitions:
            return load_dataset(name)
        # Fewer of every share: the beginning of the full log would lack its later policies.
        path = folder / f"{dataset_path(recipe).stem}-{self.transitions}-{self.seed}.hdf5"
        if not path.is_file():
            collect_recipe(recipe, steps=self.transitions, seed=self.seed).save(path)
        return Transitions.load(path)

    def divide(self, log: Transitions) -> tuple[Transitions, Transitions]:
        """For training and for tests, divided between episodes."""
        return log.split(self.holdout, seed=self.seed)


def baselines_on(
    train: Transitions, level: str, config: BaselinesConfig, *, seed: int, folder: Path | None
) -> Baselines:
    """The models to train on a level; a tenth of the rows chooses elites.

    One key for a level: studies that look at the same level share what is kept in the folder.
    """
    fitted, holdout = train.split(0.1, seed=seed)
    key = jax.random.fold_in(jax.random.key(seed), [*LEVELS].index(level))
    return Baselines(fitted, holdout, config, key=key, folder=folder)


def setting(config: Any, task: str, level: str, seed: int, **more: Any) -> dict[str, Any]:
    """What a part of a study depends on; collection yields the same log for the same recipe."""
    own = {**asdict(config), "baselines": asdict(config.baselines[task])}
    recipe = repr(RECIPES[f"{task}-{level}"]) if config.logs.source == "collected" else None
    return {"config": own, "seed": seed, "task": task, "level": level, "recipe": recipe, **more}


def thinned(log: Transitions, rows: int, *, seed: int = 0) -> Transitions:
    """About so many rows: whole episodes in random order, the last one cut; more rows hold all of fewer."""
    if rows >= len(log):
        return log
    order = np.random.default_rng(seed).permutation(log.num_episodes)
    needed = int(np.searchsorted(np.cumsum(log.episode_lengths[order]), rows)) + 1
    return log.select_episodes(order[:needed]).head(rows)


def unseen(test: Transitions, train: Transitions) -> np.ndarray:
    """Rows of a test that are not among those trained on.

    Levels overlap: medium-expert begins with medium's own recipe, medium-replay with random's.
    """

    def identities(log: Transitions) -> np.ndarray:
        rows = np.ascontiguousarray(np.concatenate([log.obs, log.action], axis=1))
        return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]

    return np.flatnonzero(~np.isin(identities(test), identities(train)))


ANCHOR_HEAVY_TIME = 1.1
"""About the training time of `anchor_heavy` models with all their parts, in that of the anchor alone."""
_RATE = 4e-3
"""Of regressors and diffusion at full size: three tenths less error than with 1e-3, and twice as much is
unsafe (docs/research/research-log.md)."""


def anchor_heavy(models: ModelsConfig) -> ModelsConfig:
    """The same models with a support, a higher rate, and nearly all of the training time in the anchor.

    Such models know better where they err, and on held-out rows they predict as their anchor does
    (docs/research/research-log.md). What policies make of them is not measured, so `mcetm train` has none of
    it yet.
    """
    gaussian = replace(models.gaussian, learning_rate=_RATE)
    energy = replace(models.energy, steps=models.energy.steps // 20, schedule="cosine")
    support = SupportSettings(steps=16_000)
    return replace(models, gaussian=gaussian, energy=energy, support=support)


def _full(energy_steps: int) -> Callable[[str], BaselinesConfig]:
    """Full sizes; energies of the paper's kind are trained for so many steps."""

    def baselines(task: str) -> BaselinesConfig:
        paper, fast = (
            ModelsConfig.of(make_config(name, dataset=f"{task}-medium")) for name in ("paper", "fast")
        )
        fast = anchor_heavy(fast)
        assert paper.inference is not None  # noqa: S101 (the presets state theirs)
        assert fast.inference is not None  # noqa: S101
        return BaselinesConfig(
            gaussian=fast.gaussian,
            longer=ANCHOR_HEAVY_TIME,
            mlp=_plain_mlp(fast.gaussian),
            autoencoder=paper.autoencoder,
            standard=replace(STANDARD, steps=energy_steps),
            plain=replace(paper.energy, steps=energy_steps),
            plain_inference=paper.inference,
            anchored=fast.energy,
            anchored_inference=fast.inference,
            diffusion=replace(FULL_DIFFUSION, learning_rate=_RATE),
        )

    return baselines


def _plain_mlp(like: GaussianEnsemble) -> GaussianEnsemble:
    """The paper's MLP, of which it says nothing more: one network, squared errors of raw changes, Adam."""
    return replace(
        like,
        members=1,
        elites=1,
        squared=True,
        activation="relu",
        scale_targets=False,
        learning_rate=1e-3,
        schedule="constant",
    )


def _quick(task: str) -> BaselinesConfig:
    full = _full(250)(task)
    gaussian = replace(FULL_GAUSSIAN, members=3, elites=3, width=64, depth=2, steps=1500, batch_size=256)
    sizes: dict[str, Any] = {"members": 2, "width": 64, "depth": 3, "batch_size": 64, "count": 8}
    short = replace(full.plain.latent, steps=5)
    return replace(
        full,
        gaussian=gaussian,
        longer=3.0,
        mlp=_plain_mlp(gaussian),
        autoencoder=replace(
            FULL_AUTOENCODER,
            latent_dim=full.autoencoder.latent_dim,
            width=64,
            depth=2,
            steps=1000,
            batch_size=256,
        ),
        standard=replace(full.standard, ambient=Langevin(steps=10), **sizes),
        plain=replace(full.plain, latent=short, ambient=short, **sizes),
        anchored=replace(full.anchored, steps=400, **sizes),
        diffusion=replace(FULL_DIFFUSION, members=2, width=64, depth=2, steps=1000, batch_size=256),
    )


BASELINES: dict[str, Callable[[str], BaselinesConfig]] = {
    "quick": _quick,
    "fast": _full(5000),
    "paper": _full(100_000),
}
"""Settings by preset and task: the manifold of hopper has fewer dimensions."""
