"""The task registry: what the library knows about an environment, as plain data.

A task says how to make the environment, what its returns are measured against and when it
ends by itself. A dataset needs no task, and a task needs no dataset. To add one:

    mcetm.register_task(mcetm.Task(name="reach", env_id="my_package:Reach-v0", obs_dim=10,
                                   action_low=(-1.0,) * 4, action_high=(1.0,) * 4, time_limit=200))
"""

from __future__ import annotations

import difflib
import importlib
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcetm.arguments import require
from mcetm.errors import UserError
from mcetm.tasks.environments import (
    environments_in,
    find_environment,
    looks_like_an_id,
    open_environment,
    registered_ids,
    spaces_of,
    split_options,
)
from mcetm.tasks.termination import HealthyBox


@dataclass(frozen=True)
class ReferenceScores:
    """The two returns that are 0 and 100 on the normalised scale, and where they come from."""

    random: float
    expert: float
    origin: str

    def __post_init__(self) -> None:
        require("random", self.random, "a number", int, float)
        require("expert", self.expert, "a number", int, float)
        if not 0.0 < abs(self.expert - self.random) < math.inf:
            raise UserError("The reference returns of random and expert must be finite, and differ.")

    def normalize(self, returns: Any) -> Any:
        """100 · (return − random) / (expert − random); works on numbers and arrays."""
        return 100.0 * (returns - self.random) / (self.expert - self.random)

    def normalize_spread(self, spread: Any) -> Any:
        """A standard deviation on the normalised scale: a spread is divided by the range, never shifted."""
        return 100.0 * spread / (self.expert - self.random)


@dataclass(frozen=True)
class Task:
    """One environment: how to make it, how to score it, when it ends."""

    name: str
    env_id: str
    """Gymnasium id; `my_module:MyEnv-v0` imports `my_module` first, so that it can register itself."""
    obs_dim: int
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    time_limit: int | None
    """Steps after which episodes are cut (`truncated`); without a limit, collection cuts at 1000."""
    termination: Callable[[Any], Any] | None = None
    """Rule on raw next observations; None when the environment never terminates by itself."""
    scores: ReferenceScores | None = None
    env_kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        numbers = (self.obs_dim, self.time_limit or 1, *self.action_low, *self.action_high)
        if not all(isinstance(one, int | float) for one in numbers):
            raise UserError(f"Task '{self.name}' has a width, a bound or a time limit that is no number.")
        if len(self.action_low) != len(self.action_high):
            counts = f"{len(self.action_low)} lower and {len(self.action_high)} upper"
            raise UserError(f"Task '{self.name}' has {counts} action bounds.")
        if any(not low < high for low, high in zip(self.action_low, self.action_high, strict=True)):
            raise UserError(f"Task '{self.name}' has a lower action bound that is not below its upper one.")
        if self.obs_dim < 1 or (self.time_limit is not None and self.time_limit < 1):
            raise UserError(f"Task '{self.name}' needs at least one observation and a time limit above 0.")

    @property
    def action_dim(self) -> int:
        """Number of action components."""
        return len(self.action_low)


_D4RL = "D4RL's reference returns (d4rl/gym_mujoco)"

# Healthy ranges are Gymnasium's own for the v4 environments.
_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="pendulum",
            env_id="Pendulum-v1",
            obs_dim=3,
            action_low=(-2.0,),
            action_high=(2.0,),
            time_limit=200,
            scores=ReferenceScores(
                random=-1227.0,
                expert=-152.0,
                origin="measured here: uniform actions, and energy shaping with a linear catch "
                "(benchmarks/pendulum_scores.py)",
            ),
        ),
        Task(
            name="tank",
            env_id="mcetm.envs.tank:TwoTanks-v0",
            obs_dim=4,
            action_low=(0.0,) * 2,
            action_high=(1.0,) * 2,
            time_limit=300,
            termination=HealthyBox({0: (-1.0, 1.0), 1: (-1.0, 1.0)}, default=(-100.0, 100.0)),
        ),
        Task(
            name="hopper",
            env_id="Hopper-v4",
            obs_dim=11,
            action_low=(-1.0,) * 3,
            action_high=(1.0,) * 3,
            time_limit=1000,
            termination=HealthyBox({0: (0.7, float("inf")), 1: (-0.2, 0.2)}, default=(-100.0, 100.0)),
            scores=ReferenceScores(random=-20.272305, expert=3234.3, origin=_D4RL),
        ),
        Task(
            name="walker2d",
            env_id="Walker2d-v4",
            obs_dim=17,
            action_low=(-1.0,) * 6,
            action_high=(1.0,) * 6,
            time_limit=1000,
            termination=HealthyBox({0: (0.8, 2.0), 1: (-1.0, 1.0)}, default=(-100.0, 100.0)),
            scores=ReferenceScores(random=1.629008, expert=4592.3, origin=_D4RL),
        ),
        Task(
            name="halfcheetah",
            env_id="HalfCheetah-v4",
            obs_dim=17,
            action_low=(-1.0,) * 6,
            action_high=(1.0,) * 6,
            time_limit=1000,
            # The environment never terminates; the guard stops a learned model that has diverged.
            termination=HealthyBox({}, default=(-100.0, 100.0)),
            scores=ReferenceScores(random=-280.178953, expert=12135.0, origin=_D4RL),
        ),
    )
}


_MADE: dict[str, Task] = {}
"""Tasks of environments that nobody has registered as tasks, by the names that were asked for."""


def register_task(task: Task) -> Task:
    """Make a task known by its name; the same name again must mean the same task.

    **Arguments:**

    - `task`: what is to be known from now on, in this process.

    **Returns:** the same task.
    """
    require("task", task, "a Task", Task)
    if _TASKS.setdefault(task.name, task) != task:
        raise UserError(f"A different task named '{task.name}' is already registered; choose another name.")
    return task


def get_task(name: str) -> Task:
    """The task of this name; an unknown name suggests the nearest.

    A name is that of a registered task, a Gymnasium id such as `Swimmer-v4`, or one of these with a module in
    front, which is imported first: `my_module:reach` for a task that it registers, `my_module:Reach-v0`,
    `my_module:Reach` for a class of environments. For a name that was found in a file there is
    `mcetm.tasks.own.task_in_file`.

    **Arguments:**

    - `name`: as above.

    **Returns:** the task.
    """
    require("name", name, "the name of a task", str)
    if (known := known_task(name)) is not None:
        return known
    bare, options = split_options(name)
    module, _, short = bare.rpartition(":")
    found = import_module(module) if module else None
    if short in _TASKS and not options:
        return _TASKS[short]
    if not _is_environment(module, short):
        raise UserError(f"Unknown task '{name}'{_unknown(found, short)}")
    if name not in _MADE:
        env = open_environment(bare, options)
        try:
            width, low, high = spaces_of(env, bare)
            limit = None if env.spec is None else env.spec.max_episode_steps
        finally:
            env.close()
        _MADE[name] = Task(name, bare, width, low, high, limit, env_kwargs=options)
    return _MADE[name]


def known_task(name: str) -> Task | None:
    """The registered task of this name, or of the environment with this id; nothing is imported for it."""
    if name in _TASKS:
        return _TASKS[name]
    return next((task for task in _TASKS.values() if task.env_id == name and not task.env_kwargs), None)


def is_at_hand(name: str) -> bool:
    """Whether a task can be had without importing a module that nobody has named."""
    bare = name.partition("{")[0]
    return known_task(name) is not None or (looks_like_an_id(bare) and bare in registered_ids())


def _is_environment(module: str, short: str) -> bool:
    return (module != "" or looks_like_an_id(short)) and find_environment(module, short)


def _unknown(module: Any, short: str) -> str:
    """How to go on after an unknown name."""
    if module is not None:
        own = environments_in(module)
        nearest = difflib.get_close_matches(short, own, n=1, cutoff=0.6)
        if nearest:
            return f"; did you mean '{module.__name__}:{nearest[0]}'?"
        has = f"has {', '.join(own[:6])}" if own else f"has no environment and registers no task '{short}'"
        return f": the module '{module.__name__}' {has}."
    if looks_like_an_id(short):
        nearest = difflib.get_close_matches(short, registered_ids(), n=1, cutoff=0.6)
        if nearest:
            return f"; did you mean '{nearest[0]}'?"
        return f": Gymnasium has no such id; the package that registers it goes in front, PACKAGE:{short}."
    return suggestion(short, _TASKS)


def import_module(module: str) -> Any:
    """Import a module of the user's own, from the current folder too."""
    check_module_name(module)
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # an installed command does not look in the current folder
    try:
        return importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the user's own code may do, exit included
        words = " ".join(str(error).split()).rstrip(".")
        why = words if isinstance(error, ImportError) else f"{type(error).__name__}: {words}".rstrip(": ")
        raise UserError(f"Cannot import '{module}': {why}.") from None


def check_module_name(module: str) -> None:
    """Refuse a path or a relative name in the place of a module's."""
    if not all(part.isidentifier() for part in module.split(".")):
        raise UserError(
            f"Cannot import {module!r:.100}: write the full name of a module, such as my_package.tasks."
        )


def task_names() -> list[str]:
    """Names of all registered tasks, in order of registration."""
    return list(_TASKS)


def suggestion(name: str, known: Iterable[str]) -> str:
    """How to go on after an unknown name: the nearest known one, or all of them."""
    known = list(known)
    nearest = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    if nearest:
        return f"; did you mean '{nearest[0]}'?"
    shown = ", ".join(known[:6]) + (", …" if len(known) > 6 else "")
    return f"; known: {shown}."
