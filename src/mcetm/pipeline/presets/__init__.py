"""Presets are data: the files beside this module. Here they are only read.

Settings of a run come from, in this order: the classes' own defaults; `parts`, which hold wherever a setting
of that name or kind occurs; the entry of the model and of the algorithm; published settings for the dataset.
The text "none" stands for no value, which TOML has no word for.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from mcetm.agents import ALGORITHMS
from mcetm.arguments import require
from mcetm.dynamics import WorldSettings
from mcetm.errors import UserError
from mcetm.pipeline.config import TrainConfig, algorithm_of, config_of, get, model_of, name_of, put
from mcetm.settings import from_plain, to_plain
from mcetm.tasks.registry import suggestion

_PUBLISHED = "published"
"""The file that is no preset."""
PRESETS = tuple(
    sorted(
        Path(file.name).stem
        for file in resources.files(__name__).iterdir()
        if file.name.endswith(".toml") and file.name != f"{_PUBLISHED}.toml"
    )
)
"""Every preset: one file each."""
_OF_ENTRY = ("name", "label", "model", "world", "baselines", "needs_energy")
"""What an algorithm's entry says beside the algorithm's own settings."""

__all__ = ["PRESETS", "algorithm_names", "make_config", "model_settings", "part_settings"]

_T = TypeVar("_T")


def make_config(
    preset: str | None = None,
    *,
    dataset: str | None = None,
    algo: str | None = None,
    model: str | None = None,
    seeds: int | None = None,
    seed: int = 0,
    task: str | None = None,
) -> TrainConfig:
    """The settings that a training has with a preset, to look at, to change and to train with.

    **Arguments:**

    - `preset`: `quick` (the default), `fast`, `paper` or `paper-empo`.
    - `dataset`: what to train on; by default the preset's usual log.
    - `algo`: the name of an algorithm.
    - `model`: the name of a model, if not the algorithm's usual one, or `module:Class` of your own.
    - `seeds`: how many policies to train.
    - `seed`: the first of their seeds.
    - `task`: where returns are measured, if the log does not say.

    **Returns:** all settings; `train(settings, folder)` trains with them.
    """
    preset = "quick" if preset is None else preset
    table = _table(preset)
    usual: dict[str, str] = table["usual"]
    dataset = usual["dataset"] if dataset is None else dataset
    algo = usual["algorithm"] if algo is None else algo
    require("algo", algo, "the name of an algorithm", str)
    entry = _entry(table, algo)
    algorithm = _algorithm(table, algo, entry)
    content: dict[str, Any] = {
        "dataset": dataset,
        "task": task,
        "preset": preset,
        "label": entry.get("label", algorithm_of(algorithm).label),
        "seeds": table["seeds"] if seeds is None else seeds,
        "seed": seed,
        "world": _merged(to_plain(WorldSettings()), table.get("world", {}), entry.get("world", {})),
        "algorithm": algorithm,
        "evaluation": table["evaluation"],
        "baselines": [_baseline(table, other) for other in entry.get("baselines", ())],
    }
    if algorithm_of(algorithm).model_based:
        content["model"] = _model(table, model, entry)
        if entry.get("needs_energy") and not model_of(content["model"]).has_energy:
            raise UserError(f"{algo} in the preset {preset} needs a model with energies.")
    elif model is not None:
        raise UserError(f"{content['label']} learns from the log alone; it takes no --model.")
    _publish(content, preset, algo, dataset, kept=table.get("keep_products", ()))
    return config_of(content)


def model_settings(name: str, preset: str | None = None) -> Any:
    """The settings of a transition model in a preset; `module:Class` is one of the user's own."""
    return model_of(_model(_table(preset), name, {}))


def part_settings(kind: type[_T], preset: str | None = None) -> _T:
    """The settings of a part that several algorithms have, such as a learner, in a preset."""
    part = re.sub(r"settings$", "", kind.__name__.lower())
    return from_plain(kind, _with_parts(to_plain(kind()), _table(preset)["parts"], part))


def _table(preset: str | None) -> dict[str, Any]:
    preset = "quick" if preset is None else preset
    if preset not in PRESETS:
        raise UserError(f"Unknown preset '{preset}'{suggestion(preset, PRESETS)}")
    return _read(preset)


def algorithm_names() -> list[str]:
    """What `--algo` can be."""
    return list(dict.fromkeys([*_read("quick")["algorithm"], *(name_of(kind) for kind in ALGORITHMS)]))


@cache
def _read(name: str) -> dict[str, Any]:
    """A file's content, over that of the preset it extends."""
    found = tomllib.loads(resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    return _over(_read(found.pop("extends")), found) if "extends" in found else found


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One table over another, deeply; "none" stays the word that it is in a file."""
    both = [key for key, value in above.items() if isinstance(value, dict) and key in below]
    return {**below, **above, **{key: _over(below[key], above[key]) for key in both}}


def _entry(table: Mapping[str, Any], algo: str) -> Mapping[str, Any]:
    if algo not in algorithm_names():
        raise UserError(f"Unknown algorithm '{algo}'{suggestion(algo, algorithm_names())}")
    return table["algorithm"].get(algo, {})


def _algorithm(table: Mapping[str, Any], algo: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in entry.items() if key not in _OF_ENTRY}
    skeleton = {"name": entry.get("name", algo), **_names(own)}
    return _merged(_with_parts(to_plain(algorithm_of(skeleton)), table["parts"]), own)


def _model(table: Mapping[str, Any], chosen: str | None, entry: Mapping[str, Any]) -> dict[str, Any]:
    """A model by its name, with what the algorithm's entry says of it if it is the usual one."""
    usual = entry.get("model", table["usual"]["model"])
    usual = {"name": usual} if isinstance(usual, str) else usual
    name = usual["name"] if chosen is None else chosen
    if ":" in name:  # the user's own, which no preset knows
        return {"name": name}
    own = table["model"].get(name, {})
    plain = _with_parts(to_plain(model_of({"name": name})), table["parts"])
    return _merged(plain, own, usual if chosen in (None, usual["name"]) else {})


def _baseline(table: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    algo = given["algorithm"]
    own = {key: value for key, value in given.items() if key not in ("label", "algorithm", "part")}
    algorithm = _merged(_algorithm(table, algo, _entry(table, algo)), own)
    return {"label": given["label"], "algorithm": algorithm, "part": given.get("part")}


def _publish(
    content: dict[str, Any], preset: str, algo: str, dataset: str, *, kept: Sequence[Sequence[str]]
) -> None:
    """Take over what was published for this algorithm or model on this dataset.

    Where a setting changes, the other one of a `kept` pair changes too, so that their product stays.
    """
    name = (
        Path(dataset).name.removeprefix("d4rl:").removesuffix(".hdf5").replace("_", "-").removesuffix("-v2")
    )
    model = (content.get("model") or {}).get("name")
    for block in _read(_PUBLISHED)["published"]:
        if preset not in block.get("presets", PRESETS):
            continue
        if algo not in block.get("algorithm", ()) and model not in block.get("model", ()):
            continue
        for row in (row for pattern, row in block["rows"].items() if fnmatch(name, pattern)):
            for path, value in zip(block["columns"], row, strict=True):
                for other in (other for changing, other in kept if changing == path):
                    put(content, other, get(content, other) * get(content, path) // value)
                put(content, path, value)


def _names(own: Mapping[str, Any]) -> dict[str, Any]:
    """Which kind of part an entry asks for, such as another learner."""
    return {
        key: {"name": part["name"]} for key, part in own.items() if isinstance(part, dict) and "name" in part
    }


def _with_parts(plain: dict[str, Any], parts: Mapping[str, Any], kind: str = "") -> dict[str, Any]:
    """Plain settings, each part of them with what the preset says of parts of its name."""
    plain = _merged(plain, parts.get(plain.get("name", kind), {}))
    return {
        key: _with_parts(value, parts, key) if isinstance(value, dict) else value
        for key, value in plain.items()
    }


def _merged(plain: Any, *others: Mapping[str, Any]) -> Any:
    """Plain settings with those of others over them, deeply."""
    for other in others:
        plain = dict(plain or {})
        for key, value in other.items():
            if isinstance(value, dict):
                value = _merged(plain.get(key), value)
            plain[key] = None if value == "none" else value
    return plain
