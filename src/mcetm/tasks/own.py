"""Tasks in modules of the user's own: a module is imported only if the user has named it.

A person names `my_module:reach` on the command line or in a script. Files name tasks too (`config.json` and
`policy.json` of a run), and files may come from anybody. So the command line notes what was named in the
user's configuration folder: the module, its file and the file's SHA-256. A name found in a file imports what
is noted there and unchanged, and nothing else. What a noted module imports itself is not looked at.

A module that is not here, because the command runs in another folder, is looked for where it was when it was
named; a run says which file its module was, so that two modules of one name are told apart.
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
from mcetm.tasks.environments import attribute_of
from mcetm.tasks.registry import Task, check_module_name, get_task, import_module, known_task


class UnnamedModuleError(UserError):
    """A file names a task in a module that is here and that the user has not named, or not as it is now."""


def remember(name: str | None) -> None:
    """Note the module of a task that somebody names on the command line; nothing is imported yet."""
    module = _module_of(name or "")
    if not module or (name is not None and known_task(name) is not None):
        return
    check_module_name(module)
    entries = _entries(module)
    if not entries and (root := _root_of(module, _noted(), None)) is not None:
        entries = _entries(module, root)
        _look_in(root, module, entries)
    if not entries:
        raise UserError(f"Cannot import '{module}': there is no such module here.")
    noted = _noted()
    if all(entry in noted for entry in entries):
        return
    places = [_place(entry) for entry in entries]
    write_json(_record(), [*(entry for entry in noted if _place(entry) not in places), *entries])


def task_in_file(name: str, file: Path | str, *, module_file: str | None = None) -> Task:
    """The task that a file names; a module is imported only if it was named before and is unchanged.

    `module_file` is what the module was, as far as the file says.
    """
    if known_task(name) is None:
        _check_named(name, file, "task", module_file)
    return get_task(name)


def module_file(name: str) -> str | None:
    """The file of the module that a task's name begins with, once it is imported."""
    found = sys.modules.get(_module_of(name))
    origin = getattr(found, "__file__", None)
    return None if origin is None else str(Path(origin).resolve())


def named_class(name: str, file: str | None = None) -> Any:
    """The class `module:Class`; where a file names it, only if it was named before and is unchanged."""
    if file is not None:
        _check_named(name, file, "model")
    module, _, attribute = name.rpartition(":")
    found = attribute_of(import_module(module), attribute)
    if not isinstance(found, type):
        raise UserError(f"There is no class '{attribute}' in the module '{module}'.")
    return found


def _check_named(name: str, file: Path | str, what: str, module_file: str | None = None) -> None:
    module = _module_of(name)
    if not module:
        return
    entries, noted, root = _entries(module), _noted(), None
    if not entries or (module_file is not None and entries[-1]["path"] != module_file):
        root = _root_of(module, noted, module_file)
        entries = entries if root is None else _entries(module, root)
    if not entries:
        raise UserError(
            f"{file} names the {what} '{name}', and there is no module '{module}' here; "
            f"say which {what} it is with --{what}."
        )
    for entry in entries:
        if entry not in noted:
            known = _place(entry) in map(_place, noted)
            why = "has changed since you named it" if known else "you have not named before"
            raise UnnamedModuleError(
                f"{file} names the {what} '{name}', which runs {entry['path']}, and that {why}; "
                f"if you trust it, add --{what} {name}."
            )
    if root is not None:
        _look_in(root, module, entries)


def _root_of(module: str, noted: list[dict[str, str]], module_file: str | None) -> Path | None:
    """The folder that a module was imported from when it was named, where its file still is."""
    paths = {Path(e["path"]) for e in noted if e["module"] == module and module_file in (None, e["path"])}
    roots = set()
    for path in (path for path in paths if path.is_file()):
        depth = module.count(".") + (path.name == "__init__.py")
        roots.add(path.parents[depth])
    if len(roots) > 1:
        raise UserError(
            f"The module '{module}' was named in several folders, {' and '.join(map(str, sorted(roots)))}; "
            "run this in the one that is meant."
        )
    return roots.pop() if roots else None


def _look_in(root: Path, module: str, entries: list[dict[str, str]]) -> None:
    """Let a module be imported from a folder, unless another one of its name already was."""
    loaded = module_file(f"{module}:")
    if loaded is not None and entries and loaded != entries[-1]["path"]:
        raise UserError(
            f"Two modules are called '{module}', {loaded} and {entries[-1]['path']}; one command uses only "
            "one of them."
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def _module_of(name: str) -> str:
    return name.partition("{")[0].rpartition(":")[0]


def _entries(module: str, *first: Path) -> list[dict[str, str]]:
    """The files that importing a module would run, packages around it first; empty where there is none."""
    entries: list[dict[str, str]] = []
    parts = module.split(".")
    places: Any = [*map(str, first), *sys.path, str(Path.cwd())]  # where `get_task` looks
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
