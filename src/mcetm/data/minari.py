"""Minari datasets from the local store; the environment need not be installed, and is never made.

A store is files like any others, and may come from anybody. What Minari itself does where a store does not
describe its spaces, making the environment that it names, would run code of the store's choice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from mcetm.console import one_line
from mcetm.data.arrow import read_columns, rows_of
from mcetm.data.episodes import from_episodes
from mcetm.data.names import are_names
from mcetm.data.transitions import Metadata, Transitions
from mcetm.data.validate import DataError, Fault, ReadOptions
from mcetm.errors import UserError
from mcetm.files import check_input, path_kind
from mcetm.formats import hdf5_arrays, open_hdf5
from mcetm.tasks.environments import are_options, with_options
from mcetm.tasks.layout import Part, is_image, names_of, said
from mcetm.tasks.registry import get_task, is_at_hand, task_names

_MOST_DESCRIPTION = 64 << 20
_STEPS = ("rewards", "terminations")


def store_folder() -> Path:
    """Minari's own local store."""
    chosen = os.environ.get("MINARI_DATASETS_PATH")
    return Path(chosen) if chosen else Path.home() / ".minari" / "datasets"


def find_minari(name: str) -> Path | None:
    """The folder of a dataset id in the local store (or a folder given as such), if it is there."""
    for folder in (Path(name), store_folder() / name):
        if path_kind(folder / "data" / "metadata.json") == "file":
            return folder
    return None


def minari_ids() -> list[str]:
    """Ids of all datasets in the local store."""
    store = store_folder()
    return sorted(str(path.parent.parent.relative_to(store)) for path in store.glob("**/data/metadata.json"))


def read_minari(name: str, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions of a dataset in the local store, by its id or its folder.

    Observations and actions with parts are laid out as `tasks/layout.py` says; their names tell. The
    spaces come from the dataset's own metadata, so neither the environment nor its package is
    needed; the task is recognised by the environment's id where it is one of ours.
    """
    folder = find_minari(name)
    if folder is None:
        raise UserError(
            f"There is no Minari dataset '{name}' in {store_folder()}; get it with: minari download {name} "
            '(of pip install "mcetm[minari]").'
        )
    description = _read_description(folder / "data" / "metadata.json")
    read = _hdf5_episodes if description.format == "hdf5" else _arrow_episodes
    try:
        episodes = list(read(folder / "data", description))
    except DataError as error:
        raise DataError(str(folder), list(error.faults)) from None
    task, notes = (None, ()) if options.get("task") else _task_of(description)
    described = (("observations", description.obs), ("actions", description.action))
    metadata = Metadata(
        source=f"minari:{name}",
        task=task,
        action_low=_bounds(description.action, "low"),
        action_high=_bounds(description.action, "high"),
        obs_names=_names(description.obs),
        action_names=_names(description.action),
        notes=(*notes, *filter(None, (said(*spaces) for spaces in described))),
        provenance={"minari": description.name or name, "environment": description.environment},
    )
    return from_episodes(episodes, metadata=metadata, **options)


@dataclass(frozen=True)
class _Box(Part):
    """One array of a (possibly nested) space, with its bounds."""

    low: np.ndarray
    high: np.ndarray

    def flat(self, values: Any, rows: int, place: str) -> np.ndarray:
        """Values of all steps as one row of numbers each."""
        array = np.asarray(values)
        if array.shape != (rows, *self.shape):
            message = f"has the shape {array.shape}, but {(rows, *self.shape)} is needed"
            raise DataError("the dataset", [Fault(place, message)])
        return array.reshape(rows, self.size)


@dataclass(frozen=True)
class _Description:
    """What `metadata.json` says."""

    format: str
    episodes: int
    name: str | None
    environment: str | None
    options: dict[str, Any]
    """What the environment was made with."""
    obs: tuple[_Box, ...]
    action: tuple[_Box, ...]


def _read_description(path: Path) -> _Description:
    check_input(path)
    if path.stat().st_size > _MOST_DESCRIPTION:
        raise UserError(f"{path} is too large for the description of a dataset.")
    try:
        content = json.loads(path.read_bytes())
        spec = content.get("env_spec")
        said = {} if spec is None else json.loads(spec)
        environment, kwargs = (None if spec is None else said["id"]), said.get("kwargs")
        name = content.get("dataset_id")
        form, episodes = content["data_format"], content["total_episodes"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UserError(f"{path} is damaged: it is not the description of a Minari dataset.") from None
    if form not in ("hdf5", "arrow", "parquet"):
        raise UserError(f"{path} names a format of data that is not known here, '{one_line(str(form))}'.")
    if not isinstance(episodes, int) or episodes < 0:
        raise UserError(f"{path} is damaged: 'total_episodes' is not a number of episodes.")
    return _Description(
        format=form,
        episodes=episodes,
        name=one_line(name) if isinstance(name, str) else None,
        environment=one_line(environment) if isinstance(environment, str) else None,
        options={key: kwargs[key] for key in kwargs if key != "render_mode"}
        if isinstance(kwargs, dict)
        else {},
        obs=_read_space(path, content, "observation"),
        action=_read_space(path, content, "action"),
    )


def _read_space(path: Path, content: dict[str, Any], what: str) -> tuple[_Box, ...]:
    text = content.get(f"{what}_space")
    if text is None:
        raise UserError(
            f"{path} does not describe its {what}s, and to ask the environment for them would run code that "
            "the dataset names; write it again with Minari 0.5 or later."
        )
    try:
        boxes = tuple(_boxes(json.loads(text), (), f"{what}s", str(path)))
        if not boxes:
            raise ValueError("it has no numbers")
        return boxes
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise UserError(f"{path} is damaged: its '{what}_space' cannot be read.") from None


def _boxes(space: dict[str, Any], path: tuple[str | int, ...], what: str, place: str) -> Iterator[_Box]:
    """The arrays of a space as Minari writes it; dictionaries in the order of Gymnasium's."""
    if space["type"] == "Dict":
        for key in sorted(space["subspaces"]):
            yield from _boxes(space["subspaces"][key], (*path, key), what, place)
    elif space["type"] == "Tuple":
        for i, part in enumerate(space["subspaces"]):
            yield from _boxes(part, (*path, i), what, place)
    elif space["type"] == "Box":
        shape = tuple(int(size) for size in space["shape"])
        low, high = np.array(space["low"], np.float64), np.array(space["high"], np.float64)
        if low.shape != shape or high.shape != shape or np.isnan(low).any() or np.isnan(high).any():
            raise ValueError("bounds do not fit the shape")
        if (low > high).any():
            raise DataError(place, [Fault(what, "has a lower bound above its upper one")])
        if is_image(shape, str(space["dtype"])):
            raise DataError(place, [Fault(what, "images are not supported, only vectors of numbers")])
        yield _Box(path, shape, low.ravel(), high.ravel())
    else:
        kind = one_line(str(space["type"]))
        message = f"a {kind} space is not supported, only continuous ones (Box), alone or in a Dict or Tuple"
        raise DataError(place, [Fault(what, message)])


def _hdf5_episodes(folder: Path, description: _Description) -> Iterator[dict[str, Any]]:
    """Episodes of the usual kind of store; what nobody needs of it, such as `infos`, is not read."""
    spaces = (("observations", description.obs), ("actions", description.action))
    parts = [*_STEPS, *(_hdf5_name(what, box) for what, boxes in spaces for box in boxes)]
    with open_hdf5(folder / "main_data.hdf5") as file:
        _check_count(folder, description, sum(str(name).startswith("episode_") for name in file))
        groups = [f"episode_{i}" for i in range(description.episodes)]
        arrays = hdf5_arrays(file, [f"{group}/{part}" for group in groups for part in parts])
    missing = [name for name, array in arrays.items() if array is None]
    if missing:
        raise DataError(str(folder), [Fault(one_line(missing[0]), "is missing")])
    for group in groups:

        def values(what: str, box: _Box, group: str = group) -> Any:
            return arrays[f"{group}/{_hdf5_name(what, box)}"]

        rewards, terminations = (arrays[f"{group}/{part}"] for part in _STEPS)
        yield _episode(description, group, rewards, terminations, values)


def _hdf5_name(what: str, box: _Box) -> str:
    return "/".join([what, *(f"_index_{key}" if isinstance(key, int) else key for key in box.path)])


def _arrow_episodes(folder: Path, description: _Description) -> Iterator[dict[str, Any]]:
    """Episodes of Minari's other stores: a folder for each, with a row for every observation."""
    form = "parquet" if description.format == "parquet" else "arrow"
    _check_count(folder, description, sum(path_kind(path) == "folder" for path in folder.iterdir()))
    for place in (folder / str(number) for number in range(description.episodes)):
        files = sorted(place.iterdir()) if path_kind(place) == "folder" else []
        files = [path for path in files if path.name[0] not in "._" and path.name != "metadata.json"]
        if not files:
            raise DataError(str(folder), [Fault(f"episode {place.name}", "is missing")])
        columns = read_columns(files, form, [*_STEPS, "observations", "actions"])

        def values(what: str, box: _Box, columns: dict[str, Any] = columns, place: Path = place) -> Any:
            found = rows_of(columns[what], box.path, f"episode {place.name}, {what}")
            if found.shape[1] != box.size:
                return found  # whose shape is then refused
            # There is no action after the last observation; its row is filled with zeros.
            return found.reshape(-1, *box.shape)[: None if what == "observations" else -1]

        steps = (rows_of(columns[name], (), f"episode {place.name}, {name}") for name in _STEPS)
        rewards, terminations = (found[:-1, 0] if found.shape[1] == 1 else found[:-1] for found in steps)
        yield _episode(description, f"episode {place.name}", rewards, terminations, values)


def _check_count(folder: Path, description: _Description, found: int) -> None:
    if found != description.episodes:
        message = f"metadata.json says {description.episodes}, but there are {found}"
        raise DataError(str(folder), [Fault("episodes", message)])


def _episode(
    description: _Description, place: str, rewards: Any, terminations: Any, values: Callable[[str, _Box], Any]
) -> dict[str, Any]:
    """One episode for `from_episodes`, the arrays of its spaces side by side."""
    rows = np.size(rewards)

    def joined(what: str, boxes: tuple[_Box, ...], rows: int) -> np.ndarray:
        columns = (box.flat(values(what, box), rows, f"{place}, {what}") for box in boxes)
        return np.concatenate([np.zeros((rows, 0), np.float32), *columns], axis=1)

    return {
        "obs": joined("observations", description.obs, rows + 1),
        "action": joined("actions", description.action, rows),
        "reward": rewards,
        "terminated": terminations,
    }


def _task_of(description: _Description) -> tuple[str | None, tuple[str, ...]]:
    """The task of the environment that the dataset names, or why there is none.

    Only what is registered here already is made: an import that a file asks for would run its choice of code.
    """
    environment, options = description.environment, description.options
    width = sum(box.size for box in description.obs)
    if environment is None:
        return None, ()
    known = (get_task(name) for name in task_names())
    for task in known:
        if (task.env_id, task.obs_dim, dict(task.env_kwargs)) == (environment, width, options):
            return task.name, ()
    told = f"the dataset names its environment, {environment}"
    if not are_options(options):
        return None, (f"{told}, with options that are not used: a task of your own can, --task NAME",)
    if not is_at_hand(environment):
        way = environment if ":" in environment else f"PACKAGE:{environment}"
        return None, (
            f"{told}, which no package has registered here; --task {way} imports the one that does",
        )
    name = with_options(environment, options)
    try:
        task = get_task(name)
    except UserError as error:
        return None, (one_line(f"{told}, and it cannot be used: {error}", 300),)
    if task.obs_dim != width:
        return None, (f"{told}, and its observations have {task.obs_dim} numbers, not {width}",)
    return task.name, (f"returns are measured in the environment that the dataset names, {name}",)


def _names(boxes: tuple[_Box, ...]) -> tuple[str, ...] | None:
    """What the parts of a space are called, where a log can hold such names."""
    names = names_of(boxes)
    return names if are_names(names) else None


def _bounds(boxes: tuple[_Box, ...], side: str) -> tuple[float, ...] | None:
    """Action bounds on one side, where all of them are finite on both."""
    if not all(np.isfinite(box.low).all() and np.isfinite(box.high).all() for box in boxes):
        return None
    return tuple(float(bound) for box in boxes for bound in getattr(box, side))
