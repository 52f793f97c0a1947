"""The log of a run: where it is, also from another folder, and what tables call it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from mcetm.data.transitions import Transitions
from mcetm.envs import load_dataset
from mcetm.errors import UserError
from mcetm.files import path_kind
from mcetm.pipeline.config import TrainConfig
from mcetm.pipeline.results import read_environment, read_module_file
from mcetm.tasks.datasets import FILES
from mcetm.tasks.own import task_in_file


def located(source: str) -> str:
    """A source that means the same from any folder: a file by its whole path, a name as it is."""
    path = Path(source)
    if path_kind(path) in ("file", "other") or path_kind(path / "data" / "metadata.json") == "file":
        return os.path.abspath(path)  # noqa: PTH100 (a link keeps the name that was typed)
    return source


def read_log(config: TrainConfig, folder: Path | None = None, *, infos: bool = False) -> Transitions:
    """The dataset of a run, which must have actions and rewards; `folder` is where its settings come from."""
    if config.task is not None:
        file = Path("config.json") if folder is None else folder / "config.json"
        told = None if folder is None else read_module_file(folder)
        task_in_file(config.task, file, module_file=told)
    log = load_dataset(config.dataset, task=config.task, infos=infos, columns=config.columns)
    log.require("reward", "action")
    return log


def read_log_again(
    config: TrainConfig, folder: Path, elsewhere: str | None = None, *, infos: bool = False
) -> Transitions:
    """The log that a run was begun with, which may have moved `elsewhere`; another one is refused."""
    path = Path(config.dataset)
    is_file = path.is_absolute() or path.suffix.lower() in FILES
    if elsewhere is None and is_file and path_kind(path) == "nothing":
        raise UserError(
            f"{folder} was begun with {path}, and there is no such file; say where it is now: "
            f"mcetm train --resume {folder} --dataset FILE"
        )
    found = config if elsewhere is None else replace(config, dataset=located(elsewhere))
    log, noted = read_log(found, folder, infos=infos), read_environment(folder).dataset_checksum
    if noted is not None and log.checksum != noted:
        raise UserError(
            f"{found.dataset} is not the log that {folder} was begun with: its data have another checksum."
        )
    return log
