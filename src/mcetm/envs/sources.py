"""The one door to data: whatever a person writes as SOURCE becomes `Transitions`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Unpack

from mcetm.arguments import path_of, require, whole
from mcetm.data.columns import Columns, columns_beside
from mcetm.data.download import d4rl_file
from mcetm.data.files import read_file
from mcetm.data.mapped import map_log
from mcetm.data.minari import find_minari, minari_ids, read_minari
from mcetm.data.streamed import WINDOW
from mcetm.data.transitions import Transitions
from mcetm.data.validate import DataError, ReadOptions
from mcetm.envs.recipes import cached_dataset
from mcetm.errors import UserError
from mcetm.files import path_kind
from mcetm.tasks.datasets import D4RL_DATASETS, RECIPES
from mcetm.tasks.registry import suggestion, task_names


def load_dataset(
    source: str | Path,
    *,
    folder: str | Path | None = None,
    infos: bool = False,
    in_memory: bool = True,
    window: int = WINDOW,
    **options: Unpack[ReadOptions],
) -> Transitions:
    """Transitions from a source.

    A source is, in this order of precedence: a file (HDF5 in D4RL's layout, `.npz`, CSV,
    Parquet); one of our own datasets such as `pendulum-mixed` or `hopper-medium`, collected on
    first use; a D4RL name such as `hopper-medium-v2`, downloaded on first use unless it is in
    `folder`, `$MCETM_DATA` or the cache; or the id of a Minari dataset in the local store.
    `minari:` or `d4rl:` in front settles which is meant.

    **Arguments:**

    - `source`: as above.
    - `folder`: where else to look for D4RL's files.
    - `in_memory`: with False the rows stay in their file, HDF5 or Parquet. A file that cannot be mapped is
      copied to the cache once.
    - `window`: how many of such rows are on the device at a time.
    - `infos`: also keep what else an HDF5 file has for each row, such as the simulator's state.
    - `options`: any of these. `task`, the name of a task: it gives action bounds, time limit and scores.
      `time_limit`, the steps after which episodes were cut, where the log does not say.
      `min_transitions`, below which a log is refused. `columns`, what the columns of a table are
      (`mcetm.Columns`, or a dictionary); else a file beside it says so (`mcetm data describe`).

    **Returns:** the log.
    """
    require("in_memory", in_memory, "True or False", bool)
    whole("window", window, least=1)
    if not in_memory:
        if infos:
            raise UserError("Of a log that is not in memory, infos cannot be kept.")
        return _mapped(source, folder, window, **options)
    text = str(path_of("source", source)) if isinstance(source, os.PathLike) else source
    require("source", text, "a path or the name of a dataset", str)
    scheme, _, name = text.rpartition(":")
    if scheme == "minari":
        return read_minari(name, **options)
    if scheme == "d4rl":
        if name not in D4RL_DATASETS:
            raise UserError(f"Unknown D4RL dataset '{name}'{suggestion(name, D4RL_DATASETS)}")
        return read_file(d4rl_file(name, folder=_path(folder)), infos=infos, **options)
    kind = path_kind(Path(text)) if text else "nothing"
    if kind in ("file", "other"):  # what is no plain file is refused there
        return read_file(Path(text), infos=infos, **options)
    if text in RECIPES:
        return _collected(text, infos=infos, **options)
    if text in D4RL_DATASETS:
        return read_file(d4rl_file(text, folder=_path(folder)), infos=infos, **options)
    if find_minari(text) is not None:
        return read_minari(text, **options)
    if kind == "folder":
        raise UserError(f"{text} is a folder, but not that of a Minari dataset; name a file in it.")
    if re.fullmatch(r"[^.]+/[^.]+-v\d+", text):
        return read_minari(text, **options)  # which says that it is not there, and how to get it
    if Path(text).suffix or os.sep in text:
        raise UserError(f"There is no file {text}.")
    if text in task_names():
        levels = ", ".join(name for name in RECIPES if RECIPES[name].task == text)
        raise UserError(f"'{text}' is a task, not a dataset; its datasets are: {levels or 'none yet'}.")
    raise UserError(f"Unknown dataset '{text}'{suggestion(text, dataset_names())}")


def _mapped(
    source: str | Path, folder: str | Path | None, window: int, **options: Unpack[ReadOptions]
) -> Transitions:
    """A log that stays in its file."""
    name = str(path_of("source", source)).removeprefix("d4rl:")
    if path_kind(Path(name)) == "file":
        return map_log(Path(name), window=window, **options)
    if name in RECIPES:
        return map_log(cached_dataset(RECIPES[name]), window=window, **options).with_metadata(source=name)
    if name in D4RL_DATASETS:
        return map_log(d4rl_file(name, folder=_path(folder)), window=window, **options)
    raise UserError(
        f"Only a file, one of our datasets or one of D4RL's can stay on disk, and '{name}' is none."
    )


def _collected(name: str, *, infos: bool, **options: Unpack[ReadOptions]) -> Transitions:
    """A dataset of ours, collected on first use."""
    path = cached_dataset(RECIPES[name])
    try:
        transitions = read_file(path, infos=infos, **options)
        if transitions.metadata.provenance.get("dataset") != name:
            raise UserError(f"{path} is not the dataset '{name}' that was collected.")
    except DataError:
        raise
    except UserError as error:
        raise UserError(f"{error} Delete it, and it will be collected again.") from None
    return transitions.with_metadata(source=name)


def described_columns(source: str | Path) -> Columns | None:
    """What a file beside a table says of its columns (`mcetm data describe`); None for any other source."""
    path = Path(source)
    return columns_beside(path) if os.fspath(source) and path_kind(path) == "file" else None


def _path(folder: str | Path | None) -> Path | None:
    return None if folder is None else path_of("folder", folder)


def dataset_names() -> list[str]:
    """Every name `load_dataset` knows at the moment."""
    return [*RECIPES, *D4RL_DATASETS, *minari_ids()]
