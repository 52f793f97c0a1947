"""Plans of a benchmark that cannot be, and folders in which one cannot go on."""

from __future__ import annotations

from collections.abc import Iterator

from hostile_trial.trial import Case, Place, command

_PLAN = """title = "T"
preset = "quick"
episodes = 1
[[table]]
name = "a"
title = "A"
logs = ["{m}/log.npz"]
[[table.systems]]
algorithm = "bc"
worlds = [[0]]
set = ["algorithm.steps=5", "algorithm.width=4", "evaluation.episodes=1"]
"""


def cases() -> Iterator[Case]:
    """Plans of a benchmark."""
    changes = {
        "empty": (_PLAN, ""), "no TOML": (_PLAN, "[["), "no title": ('title = "T"\n', ""), "preset unknown": ("quick", "nobody"), "episodes 0": ("episodes = 1", "episodes = 0"), "episodes words": ("episodes = 1", 'episodes = "x"'), "episodes true": ("episodes = 1", "episodes = true"),
        "odd entry": ("episodes = 1", "odd = 1"), "name with a slash": ('name = "a"', 'name = "../a"'), "name empty": ('name = "a"', 'name = ""'), "no logs": ('["{m}/log.npz"]', "[]"), "a log that is none": ("{m}/log.npz", "nothing.npz"), "a log of numbers": ('["{m}/log.npz"]', "[1]"),
        "algorithm unknown": ('"bc"', '"nobody"'), "no worlds": ("[[0]]", "[]"), "an empty world": ("[[0]]", "[[]]"), "seeds apart": ("[[0]]", "[[0, 5]]"), "seeds negative": ("[[0]]", "[[-1]]"), "seeds twice": ("[[0]]", "[[0], [0]]"), "seeds huge": ("[[0]]", "[[99999999999999999999]]"),
        "a setting that is none": ("algorithm.width=4", "algorithm.nothing=4"), "a setting without a value": ("algorithm.width=4", "algorithm.width"), "steps 0": ('worlds = [[0]]', 'worlds = [[0]]\nsteps = 0'), "steps huge": ('worlds = [[0]]', 'worlds = [[0]]\nsteps = 99999999999999'),
        "share 0": ('title = "A"', 'title = "A"\nshare = 0.0'), "share 2": ('title = "A"', 'title = "A"\nshare = 2.0'), "share tiny": ('title = "A"', 'title = "A"\nshare = 1e-9'), "share NaN": ('title = "A"', 'title = "A"\nshare = nan'), "axis without places": ('title = "A"', 'title = "A"\naxis = "x"'),
        "model unknown": ('worlds = [[0]]', 'worlds = [[0]]\nmodel = "nobody"'), "model of a module": ('worlds = [[0]]', 'worlds = [[0]]\nmodel = "os:path"'), "label of slashes": ('worlds = [[0]]', 'worlds = [[0]]\nlabel = "../../x"'), "label of escapes": ('worlds = [[0]]', 'worlds = [[0]]\nlabel = "\\u001b[31m"'),
        "published short": ("[[table]]", '[published]\nsource = "x"\nlogs = ["a"]\nscores = {BC = []}\n[[table]]'), "published NaN": ("[[table]]", '[published]\nsource = "x"\nlogs = ["a"]\nscores = {BC = [nan]}\n[[table]]'), "published without any": ('title = "A"', 'title = "A"\npublished = true'),
        "a group of itself": ("[[table]]", '[groups]\ng = ["g"]\n[[table]]'), "the same table twice": (_PLAN, _PLAN + _PLAN.partition("episodes = 1\n")[2]), "two systems of one name": (_PLAN, _PLAN + _PLAN[_PLAN.index("[[table.systems]]"):].replace("steps=5", "steps=6")), "tries 0": ("episodes = 1", "episodes = 1\ntries = 0"),
        "a date": ("episodes = 1", "episodes = 2024-01-01"), "worst_after": ("episodes = 1", "worst_after = -1"), "a task of a module": ("algorithm.width=4", "task=os:system"), "dataset in set": ("algorithm.width=4", "dataset=nothing.npz"), "seeds in set": ("algorithm.width=4", "seeds=3"), "label in set": ("algorithm.width=4", "label=x/y"),
        "baselines in set": ("algorithm.width=4", 'baselines=[{\\"label\\":\\"x\\"}]'), "inf places": ('worlds = [[0]]', 'worlds = [[0]]\nlabel="b"\nat = inf'),
    }  # fmt: skip
    may = {"published without any", "share tiny", "a group of itself"}
    for name, (old, new) in changes.items():

        def prepare(place: Place, old: str = old, new: str = new) -> None:
            place.write("plan.toml", _PLAN.replace(old, new, 1).replace("{m}", str(place.material)))

        yield command(
            "benchmark plans",
            name,
            "study",
            "benchmark",
            "--plan",
            "plan.toml",
            "--out",
            "out",
            prepare=prepare,
            words=("plan.toml", "plan", "setting", "nothing.npz", "nobody", "table"),
            expect="either" if name in may else "refused",
        )
    for name, damage in {"cells": "cells", "failures": "failures", "page": "index.html"}.items():

        def spoilt(place: Place, damage: str = damage) -> None:
            place.write("plan.toml", _PLAN.replace("{m}", str(place.material)))
            place.write(f"out/{damage}", "x")

        yield command(
            "benchmark plans",
            f"a file for {name}",
            "study",
            "benchmark",
            "--plan",
            "plan.toml",
            "--out",
            "out",
            prepare=spoilt,
            expect="either",
        )
    for content in ("", "{}", "[]", '{"a":', "\xff", '{"format": 1}', "null"):

        def cell(place: Place, content: str = content) -> None:
            place.write("plan.toml", _PLAN.replace("{m}", str(place.material)))
            place.write("out/cells/log/bc-0.json", content)
            place.write("out/cells/log.json", content)

        yield command(
            "benchmark plans",
            f"a cell of {content!r}",
            "study",
            "benchmark",
            "--plan",
            "plan.toml",
            "--page",
            "--out",
            "out",
            prepare=cell,
            expect="either",
        )
