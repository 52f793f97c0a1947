"""Text tables that cannot be, the descriptions beside them, and options that name columns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hostile_trial.trial import Case, Place, command

GOOD = "obs_0,obs_1,action_0,reward,terminated\n" + "".join(
    f"{i}.5,{i}.25,0.{i % 9}1,1.{i},{int(i == 19)}\n" for i in range(20)
)
_LINES = GOOD.split("\n")


def _line(number: int, text: str) -> str:
    return "\n".join([*_LINES[:number], text, *_LINES[number + 1 :]])


_TEXTS: dict[str, str | bytes] = {
    "header alone": _LINES[0] + "\n",
    "no header": "\n".join(_LINES[1:]),
    "nothing but newlines": "\n" * 40,
    "spaces": " " * 100,
    "a mark alone": b"\xef\xbb\xbf",
    "utf-16 without a mark": GOOD.encode("utf-16-le"),
    "utf-32": GOOD.encode("utf-32"),
    "utf-16, odd bytes": GOOD.encode("utf-16")[:-1],
    "zero bytes": GOOD.replace("0.31", "0\x003").encode(),
    "carriage returns alone": GOOD.replace("\n", "\r"),
    "nan": _line(5, "nan,1,0.1,1,0"),
    "inf": _line(5, "1,1,0.1,inf,0"),
    "Infinity": _line(5, "1,-Infinity,0.1,1,0"),
    "too large": _line(5, "1e39,1,0.1,1,0"),
    "huge exponent": _line(5, "1e999999999,1,0.1,1,0"),
    "hexadecimal": _line(5, "0x10,1,0.1,1,0"),
    "underscores": _line(5, "1_0,1,0.1,1,0"),
    "arabic digits": _line(5, "\u0661,1,0.1,1,0"),
    "minus sign of typographers": _line(5, "\u22121,1,0.1,1,0"),
    "words": _line(5, "one,1,0.1,1,0"),
    "a formula": _line(5, "=1+1,1,0.1,1,0"),
    "percent": _line(5, "10%,1,0.1,1,0"),
    "currency": _line(5, "$10,1,0.1,1,0"),
    "empty cell": _line(5, ",1,0.1,1,0"),
    "empty action": _line(5, "1,1,,1,0"),
    "one more cell": _line(5, "1,1,0.1,1,0,7"),
    "one less cell": _line(5, "1,1,0.1,1"),
    "a quote that does not end": _line(5, '"1,1,0.1,1,0'),
    "a quote in a number": _line(5, '1"2,1,0.1,1,0'),
    "a newline in a cell": _line(5, '"1\n2",1,0.1,1,0'),
    "flag is 2": _line(5, "1,1,0.1,1,2"),
    "flag is a word": _line(5, "1,1,0.1,1,maybe"),
    "flag is half": _line(5, "1,1,0.1,1,0.5"),
    "two columns of one name": GOOD.replace("obs_1", "obs_0", 1),
    "a gap in the numbers": GOOD.replace("obs_1", "obs_2", 1),
    "obs_00": GOOD.replace("obs_1", "obs_00", 1),
    "obs_-1": GOOD.replace("obs_0", "obs_-1", 1),
    "a number of 30 digits": GOOD.replace("obs_1", "obs_" + 30 * "9", 1),
    "no observation": GOOD.replace("obs_0", "x").replace("obs_1", "y"),
    "empty names": GOOD.replace(_LINES[0], ",,,,"),
    "a name of 100,000 letters": GOOD.replace("obs_0", "x" * 100_000, 1),
    "escapes in names": GOOD.replace("obs_0", "\x1b[2J\x1b]0;x\x07", 1),
    "markup in names": GOOD.replace("obs_0", "[/red][bold]", 1),
    "a cell of 10 MB": _line(5, "1" * 10_000_000 + ",1,0.1,1,0"),
    "200,000 columns": ",".join(f"c{i}" for i in range(200_000)) + "\n" + ",".join("1" * 200_000) + "\n",
    "commas and semicolons": GOOD.replace(",", ";", 40),
    "decimal commas between commas": GOOD.replace(".", ","),
    "HTML": "<html><body><table>" + GOOD + "</table>",
    "JSON lines": '{"obs_0": 1}\n' * 20,
    "a JSON list": json.dumps([{"obs_0": 1}] * 20),
    "YAML": "obs_0: [1, 2]\nreward: 1\n" * 10,
    "sep and nothing": "sep=,\n",
    "sep of two letters": "sep=ab\n" + GOOD,
    "a PDF": b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n" + b"x" * 400,
    "random bytes": np.random.default_rng(0).bytes(5000),
    "a comment before": "# a log\n" + GOOD,
    "two tables": GOOD + "\n" + GOOD,
    "a footer": GOOD + "Total,190,1,1,1\n",
    "a row of names again": GOOD + _LINES[0] + "\n",
    "mixed decimals": GOOD.replace("3.5,", '"3,5",'),
}
_TAKEN = {
    "carriage returns alone",
    "a comment before",
    "mixed decimals",
    "escapes in names",
    "markup in names",
    "a number of 30 digits",
    "minus sign of typographers",
}
"""Which may as well be read, if what is read is right: looked at by hand."""


def tables() -> Iterator[Case]:
    """Text tables, looked at, converted and described."""
    for name, content in _TEXTS.items():

        def prepare(place: Place, content: str | bytes = content) -> None:
            place.write("log.csv", content)

        expect: Any = "either" if name in _TAKEN else "refused"
        yield command(
            "text tables",
            f"inspect: {name}",
            "data",
            "inspect",
            "log.csv",
            prepare=prepare,
            words=("log.csv",),
            expect=expect,
        )
    for name in list(_TEXTS)[::2]:

        def prepare(place: Place, content: str | bytes = _TEXTS[name]) -> None:
            place.write("log.csv", content)

        yield command(
            "text tables",
            f"describe: {name}",
            "data",
            "describe",
            "log.csv",
            prepare=prepare,
            words=("log.csv",),
            expect="either",
        )
        yield command(
            "text tables",
            f"describe --json and read: {name}",
            "data",
            "convert",
            "log.csv",
            "out.npz",
            prepare=prepare,
            words=("log.csv",),
            expect="either" if name in _TAKEN else "refused",
        )


_DESCRIPTIONS: dict[str, str | bytes] = {
    "empty list": "obs = []\naction = []",
    "a number": "obs = 1",
    "a list of numbers": "obs = [1, 2]",
    "an unknown column": 'obs = ["level", "none"]',
    "an empty name": 'obs = [""]',
    "twice": 'obs = ["level", "level"]',
    "obs and action": 'obs = ["level"]\naction = ["level"]',
    "an unknown entry": 'obs = ["level"]\nodd = 1',
    "a table": '[obs]\na = "level"',
    "no TOML": "obs = [",
    "two keys": 'obs = ["level"]\nobs = ["flow"]',
    "not UTF-8": b'obs = ["\xff\xfe"]',
    "NUL": b'obs = ["a\x00"]',
    "deep": "a = " + "[" * 3000 + "]" * 3000,
    "deep tables": "[" + ".".join("a" * 3000) + "]\nx=1",
    "a date": "obs = 2024-01-01",
    "bounds that are words": 'obs = ["level"]\naction = ["pump"]\naction_low = ["x"]\naction_high = [1]',
    "one bound": 'obs = ["level"]\naction = ["pump"]\naction_low = [0]',
    "bounds crossed": 'obs = ["level"]\naction = ["pump"]\naction_low = [1]\naction_high = [0]',
    "bounds equal": 'obs = ["level"]\naction = ["pump"]\naction_low = [1]\naction_high = [1]',
    "bounds NaN": 'obs = ["level"]\naction = ["pump"]\naction_low = [nan]\naction_high = [1]',
    "bounds inf": 'obs = ["level"]\naction = ["pump"]\naction_low = [-inf]\naction_high = [inf]',
    "two bounds for one": 'obs = ["level"]\naction = ["pump"]\naction_low = [0, 0]\naction_high = [1, 1]',
    "no bounds": 'obs = ["level"]\naction = ["pump"]\naction_low = []\naction_high = []',
    "bounds too narrow": 'obs = ["level"]\naction = ["pump"]\naction_low = [0.4]\naction_high = [0.5]',
    "a huge bound": 'obs = ["level"]\naction = ["pump"]\naction_low = [-1e300]\naction_high = [1e300]',
    "gaps": 'obs = ["level"]\ntime = "when"\nsplit_gaps = 0',
    "gaps, NaN": 'obs = ["level"]\ntime = "when"\nsplit_gaps = nan',
    "gaps without time": 'obs = ["level"]\nsplit_gaps = 3.0',
    "decimal": 'obs = ["level"]\ndecimal = ";"',
    "reward is words": 'obs = ["level"]\nreward = "batch"',
    "reward of two": 'obs = ["level"]\nreward = ["cost", "level"]',
    "reward is a minus": 'obs = ["level"]\nreward = "-"',
    "terminated is no flag": 'obs = ["level"]\nterminated = "level"',
    "time is words": 'obs = ["level"]\ntime = "batch"',
    "next_obs of another width": 'obs = ["level"]\nnext_obs = ["flow", "level"]',
    "episode is unknown": 'obs = ["level"]\nepisode = "lot"',
    "a star for nothing": 'obs = ["zz*"]',
    "star alone": 'obs = ["*"]',
    "many stars": 'obs = ["' + "*" * 200 + 'q"]',
    "a huge number": "split_gaps = " + "9" * 5000,
    "truth": "obs = true",
    "empty": "",
    "obs is the time": 'obs = ["when"]',
    "reward is observed": 'obs = ["level", "cost"]\nreward = "cost"',
    "action is the reward": 'obs = ["level"]\naction = ["cost"]\nreward = "cost"',
    "flags are the same column": 'obs = ["level"]\nterminated = "trip"\ntruncated = "trip"',
    "action is the episode": 'obs = ["level"]\naction = ["batch"]\nepisode = "batch"',
    "terminated is observed": 'obs = ["level", "trip"]\nterminated = "trip"',
}
_MAY = {"empty list", "gaps without time", "reward is observed", "terminated is observed", "star alone"}


def descriptions() -> Iterator[Case]:
    """Descriptions beside a table, and the same as options."""
    for name, content in _DESCRIPTIONS.items():

        def prepare(place: Place, content: str | bytes = content) -> None:
            place.copy("plant.csv")
            place.write("plant.mcetm.toml", content)

        what = (
            ("data", "inspect", "plant.csv"),
            ("train", "plant.csv", "--algo", "bc", "--out", "run", "--set", "algorithm.steps=1"),
        )
        yield command(
            "descriptions of tables",
            name,
            *what[len(name) % 2],
            prepare=prepare,
            words=("plant.",),
            expect="either" if name in _MAY else "refused",
        )

    def beside(make: Callable[[Path], object]) -> Callable[[Place], None]:
        def prepare(place: Place) -> None:
            place.copy("plant.csv")
            make(place.folder / "plant.mcetm.toml")

        return prepare

    for name, make in {
        "a pipe": os.mkfifo,
        "a folder": Path.mkdir,
        "a loop": lambda p: p.symlink_to(p.name),
        "a device": lambda p: p.symlink_to("/dev/zero"),
        "a huge file": lambda p: (p.touch(), os.truncate(p, 2**33)),
    }.items():
        yield command(
            "descriptions of tables",
            name,
            "data",
            "inspect",
            "plant.csv",
            prepare=beside(make),
            words=("plant.",),
        )
        yield command(
            "descriptions of tables",
            f"describe over {name}",
            "data",
            "describe",
            "plant.csv",
            "--force",
            prepare=beside(make),
            words=("plant.",),
            expect="either" if name == "a huge file" else "refused",
        )


_OPTIONS = [
    "--obs", "--obs none", "--obs level level", "--obs level --action level", "--obs level --reward none", "--obs level --cost cost --reward cost",
    "--obs level --reward -cost", "--obs level --cost -cost", "--obs level --cost=-", "--obs level --episode none", "--obs level --time batch",
    "--obs level --time level", "--obs level --terminated cost", "--obs level --truncated batch", "--obs level --action-low 1",
    "--obs level --action pump --action-low 1 --action-high 0", "--obs level --action pump --action-low nan --action-high 1",
    "--obs level --action pump --action-low -inf --action-high inf", "--obs level --action pump --action-low 0 0 --action-high 1 1",
    "--obs level --action pump --action-low a --action-high b", "--obs level --split-gaps 0 --time when", "--obs level --split-gaps 1 --time when",
    "--obs level --split-gaps nan --time when", "--obs level --split-gaps inf --time when", "--obs level --decimal x", "--obs level --decimal ''",
    "--obs level --decimal ,", "--obs level --next-obs flow pump", "--obs level --next-obs level", "--obs * --action pump", "--obs batch",
    "--obs when", "--obs [red]", "--obs level --action batch", "--obs ../level", "--obs LEVEL", "--obs level, flow",
    "--obs level,flow", "--action pump", "--reward cost", "--obs level --min-transitions -5", "--obs level --min-transitions 1000",
    "--obs level --time-limit 0", "--obs level --time-limit -3", "--obs level --task nobody", "--obs level --task pendulum",
    "--obs level --min-transitions x", "--obs level --action pump --action-low 1e300 --action-high 1e301", "--obs level --split-gaps 5",
]  # fmt: skip


def options() -> Iterator[Case]:
    """Options that name columns."""
    may = {
        "--obs level --next-obs level",
        "--obs level --decimal ,",
        "--obs level --split-gaps 5",
        "--obs level --split-gaps inf --time when",
    }
    for text in _OPTIONS:
        parts = ["" if part == "''" else part for part in text.split()]
        yield command(
            "options for columns",
            text,
            "data",
            "inspect",
            "{m}/plant.csv",
            *parts,
            expect="either" if text in may else "refused",
        )
    for text in _OPTIONS[:24:2]:
        parts = text.split()
        yield command(
            "options for columns",
            f"train {text}",
            "train",
            "{m}/plant.csv",
            *parts,
            "--algo",
            "bc",
            "--out",
            "run",
            "--set",
            "algorithm.steps=1",
        )
        yield command("options for columns", f"npz: {text}", "data", "inspect", "{m}/plain.npz", *parts)


def cases() -> Iterator[Case]:
    """All of them."""
    for make in (tables, descriptions, options):
        yield from make()
