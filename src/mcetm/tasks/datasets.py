"""Datasets known by name: recipes for those we collect, file names for those D4RL publishes.

The locomotion recipes follow D4RL where D4RL's own ingredients are at hand (random, medium) and
substitute where they are not (medium-replay, medium-expert); `Recipe.note` says so and travels
with every file collected from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RecipePart:
    """A share of a dataset, collected by one policy or by a mixture drawn anew for each episode."""

    policies: tuple[str, ...]
    """'uniform', the name of an analytic controller, or the stem of a policy file."""
    weight: float = 1.0
    """Share of the dataset's transitions, relative to the other parts."""


@dataclass(frozen=True)
class Recipe:
    """How to collect a named dataset: parts in sequence, each with its policies."""

    name: str
    task: str
    transitions: int
    parts: tuple[RecipePart, ...]
    note: str = ""


_SUBSTITUTE = "substitute for D4RL's level of this name: SAC snapshots of the deep OPE benchmark"


def _locomotion(task: str, replay: tuple[str, ...], replay_size: int, expert: str) -> tuple[Recipe, ...]:
    medium = f"{task}_d4rl_medium_v2"
    return (
        Recipe(f"{task}-random", task, 1_000_000, (RecipePart(("uniform",)),)),
        Recipe(f"{task}-medium", task, 1_000_000, (RecipePart((medium,)),)),
        Recipe(
            f"{task}-medium-replay",
            task,
            replay_size,
            tuple(RecipePart((policy,)) for policy in ("uniform", *replay)),
            note=_SUBSTITUTE,
        ),
        Recipe(
            f"{task}-medium-expert",
            task,
            2_000_000,
            (RecipePart((medium,)), RecipePart((expert,))),
            note=_SUBSTITUTE,
        ),
    )


def _snapshots(task: str, last: int) -> tuple[str, ...]:
    return tuple(f"{task}_sac_snapshot_{i:02d}" for i in range(last + 1))


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        # A mixture, not a sequence: any prefix of the file looks like the whole.
        Recipe("pendulum-mixed", "pendulum", 40_000, (RecipePart(("swing-up-noisy", "uniform")),)),
        # As small as the logs of many plants: about twenty batches.
        Recipe("tank-mixed", "tank", 6_000, (RecipePart(("tank-operator", "uniform")),)),
        *_locomotion("hopper", _snapshots("hopper", 5), 402_000, "hopper_sac_snapshot_08"),
        *_locomotion("walker2d", _snapshots("walker2d", 6), 302_000, "walker2d_sac_snapshot_09"),
        *_locomotion(
            "halfcheetah",
            (*_snapshots("halfcheetah", 1), "halfcheetah_d4rl_medium_v2"),
            202_000,
            "halfcheetah_sac_snapshot_10",
        ),
    )
}

D4RL_LEVELS = ("random", "medium", "medium-replay", "medium-expert")
D4RL_DATASETS: dict[str, str] = {
    f"{task}-{level}-v2": f"{task}_{level.replace('-', '_')}-v2.hdf5"
    for task in ("hopper", "walker2d", "halfcheetah")
    for level in D4RL_LEVELS
}
"""D4RL's name of each dataset of the paper, and the file it is published as."""

D4RL_SHA256: dict[str, str] = {
    "hopper_random-v2.hdf5": "63103ef7059db4c0819bd054f4e83ff339030b50bcdb46bdbe50385f234b5054",
    "hopper_medium-v2.hdf5": "5bdf1bc4a713c82941de44633df669b36c89850b652a25985166796d25cf71a0",
    "hopper_medium_replay-v2.hdf5": "e121c5f7c9857a307baa9edc6a2c3b48e85fedb9ac316ecddd0f48ca7ef4e39b",
    "hopper_medium_expert-v2.hdf5": "9d51ad87f8c905be3880d84c6140bcdb7fbf39a19e046a237f238ba34fec9e26",
    "walker2d_random-v2.hdf5": "4e863bb6090cf4a461548bd470564b32f1ae5b32ef3085f816b2ede7f092e7fa",
    "walker2d_medium-v2.hdf5": "cf00f43add04c17fdfc2958dd581dea0851b2e5bedbe6fda073758a8f841aeda",
    "walker2d_medium_replay-v2.hdf5": "e75de96a4f77acf7d4e0d6fdf0d7ccb177c26c44bb4388e4fd99f543ccfa18db",
    "walker2d_medium_expert-v2.hdf5": "6b8d7f868c45bbaedf460be797fb7271b46dee6ebe45fe7a64319f2005b59a04",
    "halfcheetah_random-v2.hdf5": "25407aef85b5d16c0f36b4149341edb4acc6a9e88c1db529b2de19e7464874ba",
    "halfcheetah_medium-v2.hdf5": "41324e8487a9556d8cfa4538827f8937f4d63dae3030825ebc9f3a726ed08ca0",
    "halfcheetah_medium_replay-v2.hdf5": "48d494a4770c11f48260736dec090b78bdca8375647ed4d24bfa5b6610c7f683",
    "halfcheetah_medium_expert-v2.hdf5": "015db75dae5bbe8e94029b71fa0bafc2073365df0c94744e71031189f3f79c06",
}
"""SHA-256 of those files. D4RL publishes none; TensorFlow Datasets does, in the `checksums.tsv` of its
`d4rl_mujoco_*` datasets."""


def task_of(name: str) -> str | None:
    """The locomotion task a D4RL-like file or dataset name starts with, if any."""
    head = name.replace("_", "-").split("-")[0]
    return head if head in ("hopper", "walker2d", "halfcheetah") else None


FILES = (".hdf5", ".h5", ".npz", ".csv", ".tsv", ".txt", ".parquet", ".arrow", ".feather")
"""What the names of files with logs end in."""
_D4RL_NAMES = {file: name for name, file in D4RL_DATASETS.items()}


def source_name(source: str) -> str:
    """A D4RL file by its dataset's name, another file by its own."""
    path = Path(source)
    if path.suffix.lower() in FILES:
        return _D4RL_NAMES.get(path.name, path.stem)
    return path.name if path.is_absolute() else source.removeprefix("d4rl:").removeprefix("minari:")
