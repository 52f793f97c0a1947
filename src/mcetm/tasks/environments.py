"""Environments by name: what Gymnasium has registered, and classes in modules of the user's own.

A name is `Pendulum-v1`, `module:Tank-v0` (Gymnasium's own way to import a module first) or `module:Tank`, a
class or a function that makes an environment. Options follow as JSON: `Hopper-v4{"ctrl_cost_weight": 0.1}`.
They are numbers, truth values and plain words, so that a name found in a file can open no other file.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import json
import re
import sys
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.console import one_line
from mcetm.errors import UserError

_ID = re.compile(r"([\w-]+/)?[\w.-]+-v\d+", re.ASCII)
_WORD = re.compile(r"[\w -]*", re.ASCII)
_MOST_OPTIONS = 100_000


def split_options(name: str) -> tuple[str, dict[str, Any]]:
    """A name without its options, and the options."""
    bare, brace, rest = name.partition("{")
    if not brace:
        return name, {}
    try:
        options = json.loads(brace + rest) if len(rest) < _MOST_OPTIONS else None
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict) or not are_options(options):
        raise UserError(
            f"""'{one_line(name)}' has options that cannot be used: write numbers, truth values and words """
            """as JSON, such as Hopper-v4{"ctrl_cost_weight": 0.1}, or register a task."""
        )
    return bare, options


def with_options(name: str, options: Mapping[str, Any]) -> str:
    """The name of an environment with options; the counterpart of `split_options`."""
    return f"{name}{json.dumps(options, sort_keys=True)}" if options else name


def are_options(value: Any, depth: int = 5) -> bool:
    """Whether this is plain data with nothing in it that could name a file or a module."""
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None
    if isinstance(value, dict):
        return depth > 0 and all(
            isinstance(key, str) and are_options(key, 0) and are_options(item, depth - 1)
            for key, item in value.items()
        )
    if isinstance(value, list):
        return depth > 0 and all(are_options(item, depth - 1) for item in value)
    return value is None or isinstance(value, bool | int | float)


def looks_like_an_id(name: str) -> bool:
    """Whether a name has the form of Gymnasium's ids."""
    return _ID.fullmatch(name) is not None


def registered_ids() -> list[str]:
    """The ids that Gymnasium knows at the moment."""
    import gymnasium

    return list(gymnasium.registry)


def find_environment(module: str, name: str) -> bool:
    """Whether a module that is imported, or Gymnasium itself where it is none, has this environment."""
    if name in registered_ids():
        return True
    return module != "" and callable(attribute_of(sys.modules[module], name))


def environments_in(module: Any) -> list[str]:
    """The environments that a module defines."""
    import gymnasium

    return [
        name
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and issubclass(kind, gymnasium.Env) and kind.__module__ == module.__name__
    ]


def open_environment(env_id: str, env_kwargs: Mapping[str, Any]) -> Any:
    """The environment, without Gymnasium's checks and without its advice to move on to v5 physics.

    Observations and actions with parts are one vector each, laid out as in logs (`tasks/layout.py`).
    """
    import gymnasium

    _require_mujoco(env_id, gymnasium.registry.get(env_id))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*out of date.*", category=DeprecationWarning)
            _keep_mujoco_quiet(gymnasium.registry.get(env_id))
            made = gymnasium.make(_spec(env_id), disable_env_checker=True, **env_kwargs)
            _ = made.observation_space, made.action_space  # somebody's environment may have none
    except Exception as error:  # Gymnasium's own, or whatever somebody's environment raises
        reason = " ".join(str(error).split()).rstrip(".")
        raise UserError(f"The environment {env_id} cannot be made: {reason}{_where(error)}.") from None
    from mcetm.tasks.flat import flat

    return flat(made, env_id)


def check_environment(env_id: str, env_kwargs: Mapping[str, Any]) -> None:
    """Make an environment and close it again: what cannot be simulated is said before hours of training."""
    open_environment(env_id, env_kwargs).close()


def failed(env_id: str, doing: str, error: Exception) -> UserError:
    """What somebody's environment raised, as one sentence with the place."""
    words = " ".join(str(error).split()).rstrip(".")
    kind = type(error).__name__
    return UserError(f"The environment {env_id} failed in {doing}: {kind}: {words}{_where(error)}.")


def _where(error: Exception) -> str:
    """The line of somebody's own code that an error comes from; nothing for one from a library."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _IN_A_LIBRARY.search(frame.filename)]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


_IN_A_LIBRARY = re.compile(r"[/\\](site-packages|dist-packages|lib[/\\]python3[^/\\]*|mcetm)[/\\]|^<")


def _spec(env_id: str) -> Any:
    """What Gymnasium makes: an id, or a specification for a class that nobody has registered."""
    import gymnasium
    from gymnasium.envs.registration import EnvSpec

    module, _, name = env_id.rpartition(":")
    if not module:
        return env_id
    found = importlib.import_module(module)
    if name in gymnasium.registry or not callable(attribute_of(found, name)):
        return env_id
    return EnvSpec(env_id, entry_point=lambda **more: _made(found, name, more))


def _made(module: Any, name: str, options: dict[str, Any]) -> Any:
    import gymnasium

    made = attribute_of(module, name)(**options)
    if not isinstance(made, gymnasium.Env):
        raise UserError(f"'{name}' makes no Gymnasium environment, but a {type(made).__name__}")
    return made


def attribute_of(module: Any, name: str) -> Any:
    """What a module of the user's own calls so, parts of it after dots; None where nothing is."""
    called = module.__name__
    try:
        for part in name.split("."):
            module = getattr(module, part, None)
        return module
    except Exception as error:  # a module may have a `__getattr__` of its own
        raise UserError(
            one_line(f"Cannot take '{name}' from '{called}': {type(error).__name__}: {error}.", 300)
        ) from None


def spaces_of(env: Any, env_id: str) -> tuple[int, tuple[float, ...], tuple[float, ...]]:
    """Width of the observations, and bounds of the actions; what is not continuous is refused."""
    action = env.action_space
    for what, space in (("observations", env.observation_space), ("actions", action)):
        if not space.shape or not space.shape[0]:
            raise UserError(f"The environment {env_id} has {what} without any number.")
    width = int(env.observation_space.shape[0])
    low, high = (tuple(np.asarray(side, np.float64).tolist()) for side in (action.low, action.high))
    return width, low, high


def _require_mujoco(env_id: str, spec: Any) -> None:
    """Gymnasium's own simulators of bodies need a package that not everybody installs."""
    own = spec is not None and str(spec.entry_point).startswith("gymnasium.envs.mujoco")
    if own and importlib.util.find_spec("mujoco") is None:
        raise UserError(
            f'The environment {env_id} needs MuJoCo, which is not installed: pip install "mcetm[mujoco]".'
        )


def _keep_mujoco_quiet(spec: Any) -> None:
    """MuJoCo writes its advice into a log file in the current folder unless somebody else takes it."""
    if spec is not None and "mujoco" not in str(spec.entry_point):
        return
    with contextlib.suppress(ImportError):
        mujoco: Any = importlib.import_module("mujoco")
        mujoco.set_mju_user_warning(lambda message: None)
