"""Tasks in modules of the user's own: a module is imported only if the user has named it.

A person names `my_module:reach` on the command line or in a script. Files name tasks too (`config.json` and
`policy.json` of a run), and files may come from anybody. So the command line notes what was named in the
user's configuration folder: the module, its file and the file's SHA-256. A name found in a file imports what
is noted there and unchanged, and nothing else. What a noted module imports itself is not looked at.
"""

from __future__ import annotations

import json
import sys
from importlib.machinery import ModuleSpec
from itertools import accumulate
from pathlib import Path
from typing import Any

from mcetm.errors import UserError
from mcetm.files import config_folder, sha256_of, write_json
from mcetm.tasks.registry import Task, check_module_name, get_task, import_module


class UnnamedModuleError(UserError):
    """A file names a task in a module that is here and that the user has not named, or not as it is now."""


def remember(name: str | None) -> None:
    """Note the module of a task that somebody names on the command line; nothing is imported yet."""
    module = _module_of(name or "")
    if module:
        check_module_name(module)
    entries = _entries(module)
    if module and not entries:
        raise UserError(f"Cannot import '{module}': there is no such module here.")
    noted = _noted() if entries else []
    if all(entry in noted for entry in entries):
        return
    places = [_place(entry) for entry in entries]
    write_json(_record(), [*(entry for entry in noted if _place(entry) not in places), *entries])


def task_in_file(name: str, file: Path | str) -> Task:
    """The task that a file names; a module is imported only if it was named before and is unchanged."""
    _check_named(name, file, "task")
    return get_task(name)


def named_class(name: str, file: str | None = None) -> Any:
    """The class `module:Class`; where a file names it, only if it was named before and is unchanged."""
    if file is not None:
        _check_named(name, file, "model")
    module, _, attribute = name.rpartition(":")
    found = getattr(import_module(module), attribute, None)
    if not isinstance(found, type):
        raise UserError(f"There is no class '{attribute}' in the module '{module}'.")
    return found


def _check_named(name: str, file: Path | str, what: str) -> None:
    if module := _module_of(name):
        entries = _entries(module)
        if not entries:
            raise UserError(
                f"{file} names the {what} '{name}', and there is no module '{module}' here; "
                f"say which {what} it is with --{what}."
            )
        noted = _noted()
        for entry in entries:
            if entry not in noted:
                known = _place(entry) in map(_place, noted)
                why = "has changed since you named it" if known else "you have not named before"
                raise UnnamedModuleError(
                    f"{file} names the {what} '{name}', which runs {entry['path']}, and that {why}; "
                    f"if you trust it, add --{what} {name}."
                )


def _module_of(name: str) -> str:
    return name.rpartition(":")[0]


def _entries(module: str) -> list[dict[str, str]]:
    """The files that importing a module would run, packages around it first; empty where there is none."""
    entries: list[dict[str, str]] = []
    parts = module.split(".")
    places: Any = [*sys.path, str(Path.cwd())]  # where `get_task` looks
    if not all(part.isidentifier() for part in parts):
        return []
    try:
        for name in accumulate(parts, "{}.{}".format):
            if (spec := _spec(name, places)) is None:
                return []
            if spec.has_location and spec.origin is not None:
                path = Path(spec.origin).resolve()
                entries.append({"module": name, "path": str(path), "sha256": sha256_of(path)})
            places = spec.submodule_search_locations or ()
    except (KeyError, OSError):  # plain folders inside each other, or a file that cannot be read
        return []
    return entries if entries and entries[-1]["module"] == module else []


def _spec(name: str, places: Any) -> ModuleSpec | None:
    """As `importlib.util.find_spec`, which would import the packages around a module to find it."""
    found = (finder.find_spec(name, places) for finder in sys.meta_path)
    return next((spec for spec in found if spec is not None), None)


def _record() -> Path:
    return config_folder() / "modules.json"


def _noted() -> list[dict[str, str]]:
    try:
        content = json.loads(_record().read_text(encoding="utf-8"))
        return [{key: str(entry[key]) for key in ("module", "path", "sha256")} for entry in content]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError):
        raise UserError(
            f"{_record()} cannot be read; delete it, and name your tasks with --task again."
        ) from None


def _place(entry: dict[str, str]) -> tuple[str, str]:
    return entry["module"], entry["path"]
