"""Minari datasets from the local store; the environment need not be installed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from mcetm.data.episodes import from_episodes
from mcetm.data.transitions import Metadata, Transitions
from mcetm.data.validate import DataError, Fault, ReadOptions
from mcetm.errors import UserError
from mcetm.tasks.registry import get_task, task_names

if TYPE_CHECKING:
    from gymnasium import Space


def store_folder() -> Path:
    """Minari's own local store."""
    chosen = os.environ.get("MINARI_DATASETS_PATH")
    return Path(chosen) if chosen else Path.home() / ".minari" / "datasets"


def find_minari(name: str) -> Path | None:
    """The folder of a dataset id in the local store (or a folder given as such), if it is there."""
    for folder in (Path(name), store_folder() / name):
        if (folder / "data" / "metadata.json").is_file():
            return folder
    return None


def minari_ids() -> list[str]:
    """Ids of all datasets in the local store."""
    store = store_folder()
    return sorted(str(path.parent.parent.relative_to(store)) for path in store.glob("**/data/metadata.json"))


def read_minari(name: str, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions of a dataset in the local store, by its id or its folder.

    Dictionary observations are laid side by side in the order of Gymnasium's `flatten`. The
    spaces come from the dataset's own metadata, so neither the environment nor its package is
    needed; the task is recognised by the environment's id where it is one of ours.
    """
    import minari

    folder = find_minari(name)
    if folder is None:
        raise UserError(
            f"There is no Minari dataset '{name}' in {store_folder()}; get it with: minari download {name}"
        )
    try:
        dataset = minari.MinariDataset(folder / "data")
        obs_space, action_space = dataset.observation_space, dataset.action_space
        env_id = None if dataset.env_spec is None else dataset.env_spec.id
        episodes = [
            {
                "obs": _flat(episode.observations, obs_space, len(episode) + 1, "observations"),
                "action": _flat(episode.actions, action_space, len(episode), "actions"),
                "reward": episode.rewards,
                "terminated": episode.terminations,
                "truncated": episode.truncations,
            }
            for episode in dataset.iterate_episodes()
        ]
    except UserError:
        raise
    except Exception as error:  # whatever Minari meets in a damaged store, in whatever layer below it
        detail = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"The Minari dataset '{name}' in {folder} cannot be read: {detail}.") from None
    low, high = _bounds(action_space)
    metadata = Metadata(
        source=f"minari:{name}",
        task=_task_of(env_id, _width(obs_space)),
        action_low=low,
        action_high=high,
        provenance={"minari": dataset.id, "environment": env_id},
    )
    return from_episodes(episodes, metadata=metadata, **options)


def _task_of(env_id: str | None, width: int | None) -> str | None:
    """The task of this environment, unless options of its own changed what it observes."""
    known = (get_task(name) for name in task_names())
    return next((task.name for task in known if (task.env_id, task.obs_dim) == (env_id, width)), None)


def _width(space: Space[Any]) -> int | None:
    return int(np.prod(space.shape)) if space.shape is not None else None


def _flat(values: Any, space: Space[Any], rows: int, what: str) -> np.ndarray:
    """Values of a (possibly nested) space as one row of numbers per step."""
    from gymnasium import spaces

    if isinstance(space, spaces.Box):
        return np.asarray(values).reshape(rows, -1)
    if isinstance(space, spaces.Dict):
        return np.concatenate([_flat(values[k], s, rows, what) for k, s in space.spaces.items()], axis=1)
    if isinstance(space, spaces.Tuple):
        return np.concatenate(
            [_flat(v, s, rows, what) for v, s in zip(values, space.spaces, strict=True)], axis=1
        )
    raise DataError(
        "the dataset", [Fault(what, f"a {type(space).__name__} space is not supported, only continuous ones")]
    )


def _bounds(space: Space[Any]) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """Action bounds, where they are finite."""
    from gymnasium import spaces

    parts = list(space.spaces.values()) if isinstance(space, spaces.Dict) else None
    parts = list(space.spaces) if isinstance(space, spaces.Tuple) else parts or [space]
    if not all(isinstance(part, spaces.Box) and part.is_bounded() for part in parts):
        return None, None
    boxes = [part for part in parts if isinstance(part, spaces.Box)]
    low, high = (np.concatenate([getattr(b, side).ravel() for b in boxes]) for side in ("low", "high"))
    return tuple(map(float, low)), tuple(map(float, high))
