"""Datasets known by name: recipes for those we collect, file names for those D4RL publishes.

The locomotion recipes follow D4RL where D4RL's own ingredients are at hand (random, medium) and
substitute where they are not (medium-replay, medium-expert); `Recipe.note` says so and travels
with every file collected from it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
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
    parts: tuple[Part, ...]
    note: str = ""


_SUBSTITUTE = "substitute for D4RL's level of this name: SAC snapshots of the deep OPE benchmark"


def _locomotion(task: str, replay: tuple[str, ...], replay_size: int, expert: str) -> tuple[Recipe, ...]:
    medium = f"{task}_d4rl_medium_v2"
    return (
        Recipe(f"{task}-random", task, 1_000_000, (Part(("uniform",)),)),
        Recipe(f"{task}-medium", task, 1_000_000, (Part((medium,)),)),
        Recipe(
            f"{task}-medium-replay",
            task,
            replay_size,
            tuple(Part((policy,)) for policy in ("uniform", *replay)),
            note=_SUBSTITUTE,
        ),
        Recipe(
            f"{task}-medium-expert", task, 2_000_000, (Part((medium,)), Part((expert,))), note=_SUBSTITUTE
        ),
    )


def _snapshots(task: str, last: int) -> tuple[str, ...]:
    return tuple(f"{task}_sac_snapshot_{i:02d}" for i in range(last + 1))


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        # A mixture, not a sequence: any prefix of the file looks like the whole.
        Recipe("pendulum-mixed", "pendulum", 40_000, (Part(("swing-up-noisy", "uniform")),)),
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


def task_of(name: str) -> str | None:
    """The locomotion task a D4RL-like file or dataset name starts with, if any."""
    head = name.replace("_", "-").split("-")[0]
    return head if head in ("hopper", "walker2d", "halfcheetah") else None
