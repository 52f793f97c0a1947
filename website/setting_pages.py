"""Every setting with its range, its default and what it is for, by the code that answers `mcetm settings`."""

from __future__ import annotations

import json
from typing import Any

from mcetm.dynamics import WorldSettings
from mcetm.estimates import EstimateSettings
from mcetm.pipeline.config import model_names
from mcetm.pipeline.presets import algorithm_names, make_config
from mcetm.settings import rows_of
from words import cell, code, first_sentence, table

PRESETS = ("quick", "fast", "paper", "paper-empo")
_TOP = ("model", "world", "algorithm", "evaluation", "baselines", "format")
"""Parts of a run that have pages of their own."""

_WIDE = "---\nhide: [toc]\n---\n\n"
_INTRO = """# Settings

*For people who change a setting. Here you find every setting, which values it can have, and what it is for.*

A setting has a path. On the command line: `mcetm train --set algorithm.penalty=2`.
In Python it is an argument: `mcetm.MCETM(penalty=2.0)`.
`mcetm settings NAME` prints the same tables in a terminal.

A value that cannot be is refused before anything starts, with the whole path in the sentence.

"""


def _text(value: Any) -> str:
    return code(json.dumps(value, ensure_ascii=False))


def _rows(place: str, default: Any, presets: dict[str, Any]) -> str:
    """A row for each setting: what Python gives, and the presets that have another value."""
    shown = {name: rows_of(found, place) for name, found in presets.items()}
    values = {name: {path: value for path, value, *_ in rows} for name, rows in shown.items()}
    usual = next(iter(values.values())) if default is None else dict(r[:2] for r in rows_of(default, place))
    lines = []
    for path, _, possible, words in next(iter(shown.values())):
        plain = usual.get(path)
        others: dict[str, list[str]] = {}
        for name, value in values.items():
            if path in value and value[path] != plain:
                others.setdefault(value[path], []).append(f"`{name}`")
        told = "<br>".join(f"{_text(json.loads(v))} in {', '.join(names)}" for v, names in others.items())
        given = "" if plain is None else _text(json.loads(plain))
        lines.append([f"{code(path)}{{ #{path} }}<br>{cell(words)}", cell(possible), given, told])
    return table(["setting", "can be", "default", "in presets"], lines)


def _page(name: str, place: str, call: str, found: Any, presets: dict[str, Any]) -> str:
    kind = type(found)
    try:
        default = kind()
    except (TypeError, ValueError):  # some settings have no default
        default = None
    return (
        f"{_WIDE}# `{name}`\n\n*For people who train with `{name}`. Here you find its settings.*\n\n"
        f"{first_sentence(kind.__doc__)}\n\n{call}\n\n"
        f"{_rows(place, default, presets)}"
    )


def setting_pages() -> dict[str, str]:
    """The pages by their place below `reference/`."""
    pages: dict[str, str] = {}
    listed: list[list[str]] = []

    def add(name: str, place: str, call: str, presets: dict[str, Any], what: str) -> None:
        found = presets["quick"]
        pages[f"settings/{name}.md"] = _page(name, place, call, found, presets)
        listed.append([f"[`{name}`]({name}.md)", what, cell(first_sentence(type(found).__doc__))])

    for name in algorithm_names():
        presets = {preset: make_config(preset, algo=name).algorithm for preset in PRESETS}
        call = f"`mcetm train --algo {name}`; in Python `mcetm.{type(presets['quick']).__name__}(…)`."
        add(name, "algorithm", call, presets, "algorithm")
    for name in model_names():
        presets = {preset: make_config(preset, algo="mobile", model=name).model for preset in PRESETS}
        call = f"`mcetm train --model {name}`; in Python `mcetm.{type(presets['quick']).__name__}(…)`."
        add(name, "model", call, presets, "transition model")
    runs = {preset: make_config(preset) for preset in PRESETS}
    parts = {
        "world": ("`mcetm.World.of(model, train, config=mcetm.WorldSettings(…))`.", WorldSettings.__name__),
        "evaluation": (
            "How policies are measured in their environment, while they learn and at the end.",
            "",
        ),
    }
    for part, (call, _) in parts.items():
        add(part, part, call, {preset: getattr(run, part) for preset, run in runs.items()}, "part of a run")
    add(
        "estimates", "", "`mcetm estimate RUN --set …`.", {"quick": EstimateSettings()}, "of `mcetm estimate`"
    )
    top = {name: rows_of(run, "", skip=_TOP) for name, run in runs.items()}
    rows = [
        [f"{code(path)}{{ #{path} }}", cell(possible), _text(json.loads(value)), cell(words)]
        for path, value, possible, words in top["quick"]
    ]
    pages["settings/run.md"] = (
        "# `run`\n\n*For people who set up a run. Here you find the settings of a run as a whole.*\n\n"
        f"{table(['setting', 'can be', '`quick`', 'what it is for'], rows)}"
    )
    listed.append(["[`run`](run.md)", "part of a run", "Log, seeds, share that is held out."])
    pages["settings/index.md"] = _INTRO + table(["name", "of", "what it is"], listed)
    pages["settings/.nav.yml"] = "nav: " + json.dumps(
        ["index.md", *(place.removeprefix("settings/") for place in pages if place[9:] not in ("index.md",))]
    )
    return pages
