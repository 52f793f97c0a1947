"""Presets are data: what reads them knows no names, and all that they say exists and can be read back."""

import ast
import json
import re
import tomllib
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from mcetm import UserError
from mcetm.agents import ALGORITHMS
from mcetm.pipeline import presets
from mcetm.pipeline.config import TrainConfig, config_of, model_names, name_of, plain_of
from mcetm.pipeline.presets import PRESETS, algorithm_names, make_config
from mcetm.tasks.datasets import D4RL_DATASETS, RECIPES
from mcetm.tasks.registry import _TASKS

FOLDER = Path(presets.__file__).parent
PUBLISHED: list[dict[str, Any]] = tomllib.loads((FOLDER / "published.toml").read_text())["published"]
DATASETS = [
    f"{task}-{level}"
    for task in ("halfcheetah", "hopper", "walker2d")
    for level in ("random", "medium", "medium-replay", "medium-expert")
]


def test_what_reads_presets_names_no_algorithm_model_or_task() -> None:
    names = {name_of(kind) for kind in ALGORITHMS} | set(model_names()) | set(_TASKS)
    names |= {*D4RL_DATASETS, *RECIPES, *algorithm_names()} | {kind.__name__ for kind in ALGORITHMS}
    tree = ast.parse(Path(presets.__file__).read_text())
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    words = {word for text in texts if isinstance(text, str) for word in re.findall(r"[\w-]+", text)}
    assert words & names == set()
    identifiers = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert identifiers & names == set()


def get(plain: Any, path: str) -> Any:
    for part in path.split("."):
        assert part in plain, f"{path}: there is no '{part}'"
        plain = plain[part]
    return plain


@pytest.mark.parametrize("block", PUBLISHED, ids=lambda block: "-".join(block.get("algorithm", ["model"])))
def test_what_was_published_has_a_source_and_reaches_its_settings(block: dict[str, Any]) -> None:
    assert len(block["source"]) > 3
    assert set(block) <= {"algorithm", "model", "presets", "source", "columns", "rows"}
    algorithms = block.get("algorithm") or ["mobile"]
    assert set(algorithms) <= set(algorithm_names())
    assert set(block.get("model", ())) <= set(model_names())
    assert set(block.get("presets", PRESETS)) <= set(PRESETS)
    for pattern, row in block["rows"].items():
        assert any(fnmatch(dataset, pattern) for dataset in DATASETS), f"{pattern} is no dataset"
        assert len(row) == len(block["columns"])
    preset = block.get("presets", PRESETS)[-1]
    pattern, row = list(block["rows"].items())[-1]
    dataset = next(name for name in DATASETS if fnmatch(name, pattern))
    for algo in algorithms:
        for model in block.get("model", [None]):
            config = plain_of(make_config(preset, dataset=dataset, algo=algo, model=model))
            found = {path: get(config, path) for path in block["columns"]}
            later = [  # a row may give way to one below it
                path
                for other in PUBLISHED[PUBLISHED.index(block) + 1 :]
                if algo in other.get("algorithm", ()) and preset in other.get("presets", PRESETS)
                for path in (other["columns"] if dataset in other["rows"] else ())
            ]
            for path, value in zip(block["columns"], row, strict=True):
                assert path in later or found[path] == value


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_of_every_algorithm_survives_being_written_and_read(preset: str) -> None:
    for algo in algorithm_names():
        config = make_config(preset, dataset="hopper-medium", algo=algo)
        assert config_of(json.loads(json.dumps(plain_of(config)))) == config
    for model in model_names():
        config = make_config(preset, dataset="hopper-medium", algo="mobile", model=model)
        assert name_of(type(config.model)) == model
        assert config_of(json.loads(json.dumps(plain_of(config)))) == config


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_says_nothing_that_nobody_reads(preset: str) -> None:
    table = presets._read(preset)
    kinds = {name_of(kind) for kind in ALGORITHMS}
    assert {entry.get("name", algo) for algo, entry in table["algorithm"].items()} == kinds
    assert set(table["model"]) == set(model_names())
    written = json.dumps([plain_of(make_config(preset, algo=algo)) for algo in algorithm_names()])
    written += json.dumps(
        [plain_of(make_config(preset, algo="mobile", model=model)) for model in model_names()]
    )
    for part in table["parts"]:
        assert f'"name": "{part}"' in written or f'"{part}": {{' in written, f"nothing has a part '{part}'"


def test_names_of_a_dataset_all_find_what_was_published() -> None:
    names = ("hopper-medium", "hopper-medium-v2", "d4rl:hopper-medium-v2", "data/hopper_medium-v2.hdf5")
    found = [replace(make_config("fast", dataset=name, algo="mobile"), dataset="x") for name in names]
    assert found[0] == found[1] == found[2] == found[3]
    other: Any = make_config("fast", dataset="hopper-random", algo="mobile")
    assert other.algorithm.learner.temperature is None
    assert found[0].algorithm.learner.temperature == 0.2


def rollout(algo: str, dataset: str, preset: str = "fast") -> Any:
    config: Any = make_config(preset, dataset=dataset, algo=algo)
    return config.algorithm.rollout


def test_fast_imagines_as_much_for_every_algorithm_whatever_the_horizon() -> None:
    ours = rollout("mcetm", "walker2d-medium-replay")
    for algo in ("mobile", "mopo"):
        assert rollout(algo, "walker2d-medium-replay") == ours, "fast imagines alike for all three"
    short = rollout("combo", "walker2d-medium")
    assert short.horizon < ours.horizon
    assert short.capacity == ours.capacity
    assert rollout("mopo", "walker2d-medium", "paper").horizon < ours.horizon, "paper is literal"


def test_the_paper_is_longer_than_what_is_quick() -> None:
    def updates(preset: str, algo: str) -> int:
        return make_config(preset, algo=algo).algorithm.updates

    for algo in algorithm_names():
        assert updates("quick", algo) < updates("paper", algo)
        if algo != "bc":  # nobody published how long to clone
            assert updates("fast", algo) <= updates("paper", algo)


def test_an_unknown_preset_or_algorithm_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match=r"Unknown preset 'fastt'; did you mean 'fast'\?"):
        make_config("fastt")
    with pytest.raises(UserError, match=r"Unknown algorithm 'moppo'; did you mean 'mopo'\?"):
        make_config("quick", algo="moppo")


def test_what_is_trained_where_nothing_is_asked_for_is_the_same_in_a_command() -> None:
    from mcetm.cli.train import Train

    config: TrainConfig = make_config()
    assert Train().source is None
    assert (config.dataset, name_of(type(config.algorithm)), config.preset) == (
        "pendulum-mixed",
        Train.algo,
        Train.preset,
    )
