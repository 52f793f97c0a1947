"""A page for each part of the library with all its public names, and one for those of `mcetm` itself."""

from __future__ import annotations

import importlib
import inspect
import json

import mcetm
from words import cell, code, first_sentence, table

PARTS = {
    "data": "Reading, describing and checking logs.",
    "tasks": "What is known about environments and named datasets.",
    "envs": "Simulators, collecting, datasets by name.",
    "dynamics": "Transition models, the world, the trust region.",
    "agents": "Algorithms, learners, policies.",
    "pipeline": "The main job end to end, run folders, presets.",
    "pipeline.fit": "The one way to train.",
    "pipeline.loaded": "A finished run, read back.",
    "pipeline.estimate": "Estimates in one call.",
    "evaluation": "Statistics of returns and scores.",
    "evaluation.returns": "Returns in an environment.",
    "estimates": "What a policy would earn, without a simulator.",
    "export": "Policies and models as files for other programs.",
    "report": "Tables and figures.",
    "training": "The compiled loop, checkpoints, loggers.",
    "nn": "Small networks.",
    "settings": "What settings are made of; for settings of your own.",
    "errors": "Mistakes that a user can mend.",
}
"""What is documented: the sub-packages with public names, and the modules that hold further ones."""

_FOR_OWN_SETTINGS = [
    *("settings", "Positive", "NonNegative", "Rate", "Weight", "Number", "Share", "Fraction", "Discount"),
    *("Switch", "to_plain", "from_plain"),
]

_INTRO = """# Names in Python

*For people who write Python. Here you find every public name, what it is for, and what it takes.*

The most used names are in `mcetm` itself: `import mcetm`, then `mcetm.fit(…)`. The others are in its parts.
Settings of algorithms and models have [tables of their own](../settings/index.md).

"""


def names_of(part: str) -> list[str]:
    """The public names that a part documents."""
    if part == "settings":
        return _FOR_OWN_SETTINGS
    module = importlib.import_module(f"mcetm.{part}")
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed, key=str.lower)
    top = {name for home, names in mcetm._HOMES.items() if home == part for name in names}
    top |= {"PolicyEstimates"} & {*dir(module)} if part == "estimates" else set()
    return sorted(top, key=str.lower)


def _page(part: str, names: list[str]) -> str:
    lines = [
        f"# `mcetm.{part}`\n",
        f"*For people who use `mcetm.{part}` in Python. Here you find every name of it and its arguments.*\n",
        PARTS[part] + "\n",
    ]
    lines += [f"::: mcetm.{part}.{name}\n" for name in names]
    return "\n".join(lines)


def _home_of(name: str) -> str:
    """Which page has a name of `mcetm`."""
    homes = [home for home, names in mcetm._HOMES.items() if name in names]
    return homes[0] if homes else "pipeline"


def _listed(name: str) -> list[str]:
    found = getattr(mcetm, name)
    home = _home_of(name)
    anchor = f"mcetm.{home}.{found.__name__ if inspect.isfunction(found) else name}"
    return [f"[`mcetm.{name}`]({home}.md#{anchor})", cell(first_sentence(found.__doc__))]


def name_pages() -> dict[str, str]:
    """The pages by their place below `reference/`."""
    pages = {}
    for part in PARTS:
        pages[f"python/{part}.md"] = _page(part, names_of(part))
    own = table(["name", "what it is for"], [_listed(name) for name in sorted(mcetm.__all__, key=str.lower)])
    parts = table(["part", "what is in it"], [[f"[{code('mcetm.' + p)}]({p}.md)", PARTS[p]] for p in PARTS])
    pages["python/index.md"] = f"{_INTRO}## In `mcetm`\n\n{own}\n## The parts\n\n{parts}"
    order = [{f"mcetm.{part}": f"{part}.md"} for part in PARTS]
    pages["python/.nav.yml"] = "nav: " + json.dumps(["index.md", *order])
    return pages
