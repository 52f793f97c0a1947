"""What somebody in a hurry types or saves: other programs' tables, wrong files for a command, odd settings."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hostile_trial.material import ESTIMATES
from hostile_trial.trial import Case, Place, command

_HEAD = "t;level;flow;pump;cost;trip"
_ROWS = [
    f"2024-03-0{1 + i // 10}T06:{i % 10:02d}:00;{i}.5;{i * 7 % 5}.25;0.{i % 9}1;{i % 4}.5;{int(i % 10 == 9)}"
    for i in range(30)
]
GOOD = "\n".join([_HEAD, *_ROWS]) + "\n"
_OPTIONS = (
    "--obs",
    "level",
    "flow",
    "--action",
    "pump",
    "--reward",
    "cost",
    "--terminated",
    "trip",
    "--time",
    "t",
)


def _row(number: int, change: Callable[[str], str]) -> str:
    return "\n".join([_HEAD, *_ROWS[:number], change(_ROWS[number]), *_ROWS[number + 1 :]]) + "\n"


def _saved() -> dict[str, str | bytes]:
    """Tables as programs and people save them."""
    spaced = GOOD.replace(";", "   ")
    return {
        "separated by spaces": spaced, "separated by pipes": GOOD.replace(";", "|"), "a Markdown table": "\n".join(f"| {line.replace(';', ' | ')} |" for line in GOOD.splitlines()), "fixed widths": "\n".join("".join(cell.ljust(22) for cell in line.split(";")) for line in GOOD.splitlines()), "a unit row": _row(0, lambda r: "s;m;m3/h;%;EUR;-\n" + r),
        "two header rows": "plant A;;;;;\n" + GOOD, "a header in the middle": _row(15, lambda r: _HEAD + "\n" + r), "a total at the end": GOOD + "sum;435;70;15;20;3\n", "an average at the end": GOOD + "\n\naverage;14;2;0.4;1.5;0.1\n", "row numbers without a name": "\n".join(f"{i};{line}" for i, line in enumerate(GOOD.splitlines())), "index without a name": GOOD.replace(_HEAD, _HEAD.partition(";")[2], 1),
        "a comma too many": _row(7, lambda r: r + ";"), "every row with one too many": "\n".join(f"{line};" for line in GOOD.splitlines()), "a cell of two numbers": _row(7, lambda r: r.replace("7.5", "7.5 8.5")), "two dots": _row(7, lambda r: r.replace("7.5", "7.5.1")), "thousands": _row(7, lambda r: r.replace("7.5", "1,007.5")), "thousands with dots": _row(7, lambda r: r.replace("7.5", "1.007,5")),
        "thousands with spaces": _row(7, lambda r: r.replace("7.5", "1 007.5")), "a unit in a cell": _row(7, lambda r: r.replace("7.5", "7.5 m")), "a plus": _row(7, lambda r: r.replace("7.5", "++7.5")), "brackets for minus": _row(7, lambda r: r.replace("7.5", "(7.5)")), "minus behind": _row(7, lambda r: r.replace("7.5", "7.5-")), "N/A": _row(7, lambda r: r.replace("7.5", "N/A")), "a dash": _row(7, lambda r: r.replace("7.5", "-")),
        "#DIV/0!": _row(7, lambda r: r.replace("7.5", "#DIV/0!")), "null": _row(7, lambda r: r.replace("7.5", "null")), "None": _row(7, lambda r: r.replace("7.5", "None")), "NaN": _row(7, lambda r: r.replace("7.5", "NaN")), "minus infinity": _row(7, lambda r: r.replace("7.5", "-∞")), "-9999": _row(7, lambda r: r.replace("7.5", "")), "1e400": _row(7, lambda r: r.replace("7.5", "1e400")), "-1e400": _row(7, lambda r: r.replace("7.5", "-1e400")),
        "1.#IND": _row(7, lambda r: r.replace("7.5", "1.#IND")), "a complex number": _row(7, lambda r: r.replace("7.5", "7+5j")), "a fraction": _row(7, lambda r: r.replace("7.5", "15/2")), "a power": _row(7, lambda r: r.replace("7.5", "7.5E+")), "a date in a number": _row(7, lambda r: r.replace("7.5", "2024-01-01")), "full-width": _row(7, lambda r: r.replace("7.5", "７.５")), "Roman": _row(7, lambda r: r.replace("7.5", "Ⅶ")),
        "soft hyphen": _row(7, lambda r: r.replace("7.5", "7\u00ad.5")), "no-break space": _row(7, lambda r: r.replace("7.5", "\u00a07.5")), "zero width": _row(7, lambda r: r.replace("7.5", "7.5\u200b")), "right to left": _row(7, lambda r: r.replace("7.5", "\u202e7.5")), "bell": _row(7, lambda r: r.replace("7.5", "7.5\x07")), "escape": _row(7, lambda r: r.replace("7.5", "\x1b[31m7.5")), "vertical tab": _row(7, lambda r: r + "\x0b1"), "form feed": _row(7, lambda r: r + "\x0c"),
        "line separator": _row(7, lambda r: r + "\u2028"), "time backwards": "\n".join([_HEAD, *reversed(_ROWS)]), "time twice": _row(7, lambda r: _ROWS[6]), "month 13": _row(7, lambda r: r.replace("2024-03", "2024-13")), "30 February": _row(7, lambda r: r.replace("2024-03-01", "2024-02-30")), "year 0": _row(7, lambda r: r.replace("2024", "0000")), "year 99999": _row(7, lambda r: r.replace("2024", "99999")), "times of two kinds": _row(7, lambda r: r.replace("2024-03-01T06:07:00", "01.03.2024 06:07")),
        "a zone in one row": _row(7, lambda r: r.replace(":00;", ":00+02:00;", 1)), "time empty": _row(7, lambda r: ";" + r.partition(";")[2]), "trip of 2": _row(7, lambda r: r[:-1] + "2"), "trip of yes": GOOD.replace(";1\n", ";yes\n").replace(";0\n", ";no\n"), "trip of -1": GOOD.replace(";1\n", ";-1\n"), "trip of words": _row(7, lambda r: r[:-1] + "perhaps"), "trip always": GOOD.replace(";0\n", ";1\n"), "trip empty": _row(7, lambda r: r[:-1]),
        "latin-1": GOOD.replace("level", "füllstand").encode("latin-1"), "UTF-7": GOOD.encode("utf-7"), "UTF-16 big": b"\xfe\xff" + GOOD.encode("utf-16-be"), "two marks": b"\xef\xbb\xbf\xef\xbb\xbf" + GOOD.encode(), "a mark in the middle": _row(7, lambda r: "\ufeff" + r), "gzip": gzip.compress(GOOD.encode()), "EBCDIC": GOOD.encode("cp500"), "cut in a letter": GOOD.replace("cost", "cösts").encode()[:-1] + b"\xc3", "one row": _HEAD + "\n" + _ROWS[0] + "\n",
        "names of spaces": GOOD.replace("level", "   "), "names twice": GOOD.replace("flow", "level", 1), "names twice but for case": GOOD.replace("flow", "Level", 1), "names in quotes": GOOD.replace("level", '"level', 1), "a name of a formula": GOOD.replace("level", "=cmd|'/C calc'!A0", 1), "a name of HTML": GOOD.replace("level", "<script>alert(1)</script>", 1), "a name of NUL": GOOD.replace("level", "le\0vel", 1), "a name with a newline": GOOD.replace("level", '"le\nvel"', 1),
        "XML": "<?xml version='1.0'?><rows>" + GOOD + "</rows>", "SQL": "INSERT INTO t VALUES (1,2,3);\n" * 30, "a log of a server": "2024-03-01 INFO start\n" * 30, "JSON": json.dumps({"level": [1, 2, 3], "flow": [1, 2, 3]}), "a matrix": "1 2 3 4\n" * 30, "numbers alone": "\n".join(str(i) for i in range(60)), "an Excel file": b"PK\x03\x04\x14\x00\x06\x00" + bytes(600), "an old Excel file": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "SQLite": b"SQLite format 3\0" + bytes(600),
        "a pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.", "MATLAB": b"MATLAB 5.0 MAT-file" + bytes(600), "a tar": bytes(257) + b"ustar" + bytes(600), "an image": b"\x89PNG\r\n\x1a\n" + bytes(600), "one endless line": "1;" * 2_000_000, "one endless quote": GOOD + '"' + "x\n" * 300_000, "a million empty lines": GOOD + "\n" * 1_000_000, "a million separators": GOOD + ";" * 1_000_000,
    }  # fmt: skip


_READ = {
    "separated by pipes", "row numbers without a name", "UTF-7", "a unit row", "two header rows", "every row with one too many", "no-break space", "thousands", "thousands with dots", "latin-1", "two marks", "names twice but for case", "times of two kinds", "a zone in one row", "trip always", "trip of -1", "trip of yes",
    "a name of a formula", "a name of HTML", "a name of NUL", "a million empty lines", "form feed", "line separator", "UTF-16 big", "cut in a letter", "time twice", "full-width", "thousands with spaces", "names of spaces", "names twice", "a mark in the middle", "a name with a newline", "vertical tab", "zero width", "names in quotes",
}  # fmt: skip


def tables() -> Iterator[Case]:
    """The same columns are asked for in every table."""
    for number, (name, text) in enumerate(_saved().items()):

        def prepare(place: Place, text: str | bytes = text) -> None:
            place.write("plant.csv", text)

        yield command(
            "tables of other programs", f"inspect: {name}", "data", "inspect", "plant.csv", *_OPTIONS,
            prepare=prepare, words=("plant.csv",), expect="either" if name in _READ else "refused",
        )  # fmt: skip
        if number % 3 == 0:
            yield command(
                "tables of other programs", f"describe: {name}", "data", "describe", "plant.csv",
                prepare=prepare, words=("plant.csv",), expect="either",
            )  # fmt: skip
        if number % 5 == 0:
            line = ("trust", "{m}/mopo", "plant.csv", "--obs", "level", "flow", "cost", "--action", "pump")
            yield command(
                "tables of other programs", f"trust: {name}", *line, prepare=prepare, expect="either"
            )
        if number % 5 == 1:
            line = ("train", "plant.csv", *_OPTIONS, "--algo", "bc", "--seeds", "1", "--out", "run", "--set", "algorithm.steps=5", "algorithm.width=4")  # fmt: skip
            yield command(
                "tables of other programs", f"train: {name}", *line,
                prepare=prepare, expect="either" if name in _READ else "refused",
            )  # fmt: skip


def _wrong() -> dict[str, str]:
    """Every material for every command that takes another."""
    things = ("log.npz", "log.hdf5", "plant.csv", "bc", "mopo", "sweep", "bc/config.json", "bc/policy", "bc/policy/seed-0", "bc/policy/seed-0/policy.json", "select/plan.json", "mopo/models", "bc/report.html")  # fmt: skip
    lines = {
        "evaluate {x} --episodes 1": {"bc", "mopo", "bc/policy/seed-0", "bc/policy"}, "compare {x} --out d": {"bc", "mopo"}, "report {x}": {"bc", "mopo"}, "trust {x} {m}/log.npz": {"mopo"}, "trust {m}/mopo {x}": {"log.npz", "log.hdf5"}, "export {x} --to npz": {"bc", "mopo", "bc/policy/seed-0", "bc/policy"},
        "export {x} --part dynamics --to stablehlo": {"mopo"}, "export {x} --part energies --to stablehlo": set(), "train --resume {x}": {"bc", "mopo"}, "train {m}/log.npz --algo mopo --models {x} --out new --set algorithm.learner.steps=1": {"mopo"}, "data describe {x}": {"plant.csv"}, "data inspect {x}": {"log.npz", "log.hdf5"},
        "data convert {x} y.npz": {"log.npz", "log.hdf5"}, "data collect --task pendulum --steps 10 --out y.npz --policy {x}": set(), "sweep {x} --out d --minutes 0": set(), "sweep status {x}": {"sweep"}, "settings {x}": set(), "study benchmark --page --plan {x} --out d": set(),
        "estimate {x} --out d": {"bc", "mopo"}, "select {x} --out d": {"bc", "mopo"},
    }  # fmt: skip
    found = {}
    for line, good in lines.items():
        for thing in things:
            if thing in good and line.startswith(("estimate", "select", "report", "train")):
                continue
            found[line.replace("{x}", "{m}/" + thing)] = "fine" if thing in good else "refused"
    return found


def wrong_files() -> Iterator[Case]:
    """A file or folder of one kind where another is asked for."""
    for line, expect in _wrong().items():
        quick = ("--set", *ESTIMATES) if line.startswith(("estimate", "select")) else ()
        # A folder of seeds is no policy, nor a run; either answer is right.
        expected: Any = "either" if expect == "fine" or "bc/policy" in line else "refused"
        yield command("wrong files", line, *line.split(" "), *quick, expect=expected)


def lines() -> Iterator[Case]:
    """Commands that were not tried before, and the same words in other orders."""
    texts = [
        "settings nobody", "settings", "settings bc --preset nobody", "settings bc extra", "settings BC", "settings bc.steps", "settings os:path", "settings os:nobody", "settings :", "settings x:", "settings :x", "settings builtins:print", "settings json:loads", "settings /dev/zero", "settings \x1b[2J", "settings --preset",
        "settings estimates --preset ../x", "settings mcetm --set a=1", "settings run --preset paper-empo", "settings algorithm", "settings 3", "settings -1", "data describe nothing.csv", "data describe {m}", "data describe {m}/log.npz", "data describe /dev/zero", "data describe /dev/stdin", "data describe {m}/bc", "data describe {m}/plant.csv --obs level",
        "data card {m}/log.npz", "data inspect {m}/log.npz --out x", "data convert {m}/log.npz", "data convert {m}/log.npz x.csv", "data convert {m}/log.npz x.parquet", "data convert {m}/log.npz x", "data convert {m}/log.npz .npz", "data convert {m}/log.npz x.NPZ.", "data convert {m}/log.npz {m}/log.npz", "data convert {m}/log.npz x.npz y.npz",
        "data convert {m}/log.npz x.npz --task nobody", "data convert {m}/log.npz x.npz --task hopper", "data convert {m}/log.npz x.npz --obs obs_0", "data convert {m}/plant.csv x.npz", "data convert {m}/log.npz x.npz --time-limit 0", "data convert {m}/log.npz x.npz --folder nowhere", "data list --json", "data inspect minari:nobody", "data inspect D4RL/nobody/x-v0",
        "data inspect hopper-medium-v9", "data inspect hopper-medium-v2 --folder nowhere", "data inspect hopper-medium-v2 --folder {m}/log.npz", "data inspect http://127.0.0.1:9/x.npz", "data inspect file:///etc/passwd", "data inspect ~", "data inspect *", "data inspect {m}/*.npz", "data inspect {m}/log.npz,{m}/log.hdf5", "data inspect {m}/log.npz/",
        "evaluate {m}/bc --episodes 1 --task hopper", "evaluate {m}/bc --episodes 1 --task CartPole-v1", "evaluate {m}/bc --episodes 1 --task Nobody-v0", "evaluate {m}/bc --episodes 1 --task mcetm:Task", "evaluate {m}/bc --episodes 1 --task pendulum:", "evaluate {m}/bc --task", "evaluate {m}/bc {m}/mopo --episodes 1", "evaluate --episodes 1",
        "compare {m}/bc={m}/bc", "compare ={m}/bc --out d", "compare a= --out d", "compare a={m}/bc a={m}/mopo --out d", "compare \x1b[2J={m}/bc --out d", "compare a/b={m}/bc --out d", "compare {m}/bc --json --out /dev/full", "compare {m}/bc --csv x --markdown ./x --out d", "compare {m}/bc --task pendulum --out d", "compare {m}/bc --task os:system --out d", "compare --out d",
        "trust {m}/bc {m}/log.npz", "trust {m}/mopo", "trust {m}/mopo {m}/plant.csv", "trust {m}/mopo {m}/one.npz extra", "trust {m}/mopo /dev/zero", "trust nowhere {m}/log.npz", "trust {m}/mopo {m}/usual.csv", "trust {m}/mopo {m}/plain.npz --obs obs", "trust {m}/mopo/policy/seed-9 {m}/log.npz", "trust {m}/mopo {m}/log.npz --json extra",
        "export {m}/bc", "export {m}/bc --to csv", "export {m}/bc --to npz --out x.h", "export {m}/bc --out x", "export {m}/bc --out x.npz.h.zip", "export {m}/bc --to h --seed 9", "export {m}/bc --to h --seed -1", "export {m}/bc --to h --seed x", "export {m}/bc --part dynamics --to stablehlo", "export {m}/bc --part energies --to stablehlo", "export {m}/mopo --part energies --to stablehlo",
        "export {m}/mopo --part energies --to onnx", "export {m}/mopo --part dynamics --to npz", "export {m}/mopo --part dynamics --to h", "export {m}/mopo --part dynamics --to stablehlo --samples 0", "export {m}/mopo --part dynamics --to stablehlo --samples -3", "export {m}/mopo --part nobody --to npz", "export {m}/bc --to npz --out {m}", "export {m}/bc --to npz --out /dev/full --force",
        "export {m}/bc --to h --out 1x.h", "export {m}/bc --to npz --out /proc/nowhere/x.npz", "estimate", "estimate {m}/bc --seed x", "estimate {m}/bc --set nobody=1", "estimate {m}/bc --set fqe", "estimate {m}/bc --set fqe.steps=0", "estimate {m}/bc --set fqe.steps=x", "estimate {m}/bc --set discount=1.5", "estimate {m}/bc --set discount=nan", "estimate {m}/bc --set horizon=0",
        "estimate {m}/bc --set horizon=99999999999", "estimate {m}/bc --set estimators=[]", "estimate {m}/bc --set estimators=fqe", 'estimate {m}/bc --set estimators=["nobody"]', "estimate {m}/bc --set fqe.width=99999999", "estimate {m}/bc --set fqe.replicas=1", "estimate {m}/bc --set model.nobody=1", "estimate {m}/bc --log nowhere", "estimate {m}/bc --log {m}/plant.csv", "estimate {m}/bc --log {m}/one.npz",
        "estimate {m}/bc --task pendulum", "estimate {m}/bc --log {m}/log.npz --task hopper", "estimate nowhere", "estimate {m}/bc {m}/bc", "estimate {m}/log.npz", "select", "select nowhere", "select {m}/bc --measured", "select {m}/bc --measured x", "select {m}/bc --budget 3 --measured seed-7=1 --out d", "select {m}/bc --tournament --set fqe.steps=0", "select {m}/bc --set estimators=[]", "select {m}/bc {m}/bc --out d",
        "train --resume", "train --resume nowhere", "train --resume {m}/log.npz", "train --resume {m}/bc --steps 5", "train --resume {m}/bc --out x", "train --resume {m}/bc {m}/log.npz", "train --resume {m}/bc --set algorithm.width=4", "train --resume {m}/bc --algo cql", "train {m}/log.npz --resume {m}/bc", "train {m}/log.npz --algo bc --models {m}/mopo --model gaussian --out r", "train {m}/log.npz --models nowhere --out r",
        "train {m}/log.npz --models {m}/log.npz --out r", "train {m}/log.npz --algo mopo --models {m}/mopo --model manifold --out r", "train {m}/hopper.npz --models {m}/mopo --out r", "train {m}/plant.csv --algo bc --out r", "train {m}/plain.npz --algo mopo --models {m}/mopo --out r --set algorithm.learner.steps=1", "train {m}/log.npz --preset {m}/bc/config.json --out r", "train {m}/log.npz --preset nobody --out r",
        "train {m}/log.npz --devices 0 --out r", "train {m}/log.npz --devices 99 --out r", "train {m}/log.npz --devices -1 --out r", "train {m}/log.npz --devices x --out r", "train {m}/log.npz --log nobody --out r", "train {m}/log.npz --algo bc --task hopper --out r", "train {m}/log.npz --algo bc --out {m}/bc", "train {m}/log.npz --algo bc --out {m}", "train {m}/log.npz --algo bc --out {m}/log.npz", "train {m}/log.npz --algo bc --out .",
        "study benchmark --plan", "study benchmark --plan nothing --out d", "study benchmark --plan {m}/sweep --out d", "study benchmark --plan small --page --out nowhere/at/all --only nobody", "study benchmark --plan small --page --out {m}/log.npz", "study benchmark --plan small --retry x", "study benchmark --plan small --parallel 0", "study benchmark --plan small --executor cloud",
        "Train", "TRAIN", "--train", "train --help me", "-h -h -x", "--version x", "-V -V", "help", "train --halp", "train -- {m}/log.npz", "train ''", "data", "study", "bench", "bench nobody", "data --json", "--set a=1", "=", "-", "--", "\x1b[2J", "train --set", "train --set = --out r", "train --out", "train --seeds --out r",
    ]  # fmt: skip
    may = {
        "settings", "settings bc", "settings run --preset paper-empo", "data convert {m}/log.npz x.npz --task hopper", "data convert {m}/plant.csv x.npz", "trust {m}/mopo {m}/plant.csv", "train {m}/log.npz --algo bc --out .", "data inspect {m}/*.npz", "compare \x1b[2J={m}/bc --out d", "export {m}/bc --to h --out 1x.h", "help", "train -- {m}/log.npz", "-h -h -x",
        "estimate {m}/bc --set estimators=fqe", "estimate {m}/bc --set fqe.replicas=1", "train --help me", "estimate {m}/bc --log {m}/one.npz", "compare {m}/bc={m}/bc", "settings mcetm --set a=1", "estimate {m}/bc {m}/bc", "select {m}/bc {m}/bc --out d", "compare a/b={m}/bc --out d", "study benchmark --plan small --page --out nowhere/at/all --only nobody", "train {m}/plain.npz --algo mopo --models {m}/mopo --out r --set algorithm.learner.steps=1",
        "select {m}/bc --measured", "data convert {m}/log.npz x.npz --obs obs_0", "settings os:path", "data", "study", "bench", "-V -V", "select {m}/bc --set estimators=[]", "train {m}/log.npz --algo bc --out {m}",
    }  # fmt: skip
    for text in texts:
        parts = text.split(" ")
        quick: tuple[str, ...] = ()
        if text.startswith(("estimate {m}", "select {m}")) and "--set" not in text:
            quick = ("--set", *ESTIMATES)
        elif text.startswith("train ") and "--set" not in text and "--resume" not in text:
            quick = ("--set", "algorithm.steps=5") if "--algo bc" in text else ()
        yield command("clumsy lines", text, *parts, *quick, expect="either" if text in may else "refused")


def places() -> Iterator[Case]:
    """Current folders and variables of the environment that are none."""
    lines = (("data", "inspect", "{m}/log.npz"), ("data", "list"), ("compare", "{m}/bc", "--out", "d"), ("report", "{m}/bc"), ("evaluate", "{m}/bc", "--episodes", "1"), ("settings", "bc"), ("data", "inspect", "pendulum-mixed", "--min-transitions", "999999999"))  # fmt: skip
    values = {"MCETM_CACHE": ("/dev/null", "/proc/nowhere", "x" * 300, "\x1b[2J", "~nobody/x"), "MCETM_CONFIG": ("/dev/null", "/proc/nowhere", "x" * 300), "MCETM_DATA": ("/dev/zero", ":::", "/proc/self/mem", "x" * 5000), "MINARI_DATASETS_PATH": ("/dev/null", "nowhere", "x" * 300), "MCETM_COMPILATION_CACHE": ("/dev/null", "/proc/nowhere", "x" * 300),
              "COLUMNS": ("0", "-1", "x", "9" * 30), "MCETM_D4RL_URL": ("file:///etc", "http://example.org", "x", "https://[", "https://127.0.0.1:9/x")}  # fmt: skip
    for name, texts in values.items():
        for n, text in enumerate(texts):
            line = (
                ("data", "inspect", "hopper-medium-v2") if name == "MCETM_D4RL_URL" else lines[n % len(lines)]
            )
            if name == "MCETM_CONFIG":
                line = ("evaluate", "{m}/bc", "--episodes", "1", "--task", "own:thing")

            def act(place: Place, name: str = name, text: str = text, line: tuple[str, ...] = line) -> int:
                before = os.environ.get(name)
                os.environ[name] = text
                try:
                    return place.run(*(part.replace("{m}", str(place.material)) for part in line))
                finally:
                    if before is None:
                        del os.environ[name]
                    else:
                        os.environ[name] = before

            yield Case("environment variables", f"{name}={text[:20]!r}: {line[0]}", act, "either")


def actions() -> Iterator[Case]:
    """Logs whose numbers make no policy."""
    rng = np.random.default_rng(0)
    good = {
        "obs": rng.normal(size=(60, 2)),
        "action": rng.uniform(-1, 1, (60, 1)),
        "reward": rng.normal(size=60),
    }
    changed: dict[str, dict[str, Any]] = {
        "actions that never change": {"action": np.zeros((60, 1))}, "actions of denormals": {"action": np.full((60, 1), 1e-42)}, "actions too large": {"action": good["action"] * 1e30}, "observations that never change": {"obs": np.zeros((60, 2))}, "observations of denormals": {"obs": np.full((60, 2), 1e-42)}, "observations too large": {"obs": good["obs"] * 1e25},
        "rewards too large": {"reward": good["reward"] * 1e25}, "rewards that never change": {"reward": np.full(60, 1e30)}, "one observation far off": {"obs": np.concatenate([good["obs"][:-1], [[1e30, 0]]])}, "one reward far off": {"reward": np.concatenate([good["reward"][:-1], [1e30]])}, "every row its own episode": {"episode": np.arange(60)}, "one episode of one row": {"episode": np.r_[np.zeros(59), 1]},
        "all terminated": {"terminated": np.ones(60, bool)}, "terminated and truncated": {"terminated": np.ones(60, bool), "truncated": np.ones(60, bool)}, "two rows": {name: array[:2] for name, array in good.items()}, "wide": {"obs": rng.normal(size=(60, 3000))}, "next_obs elsewhere": {"next_obs": good["obs"] + 1e20},
        "episode labels too large": {"episode": np.full(60, 2**63, np.uint64)}, "episode labels of infinity": {"episode": np.full(60, np.inf)}, "half precision": {name: array.astype(np.float16) for name, array in good.items()}, "big endian": {name: array.astype(">f8") for name, array in good.items()}, "Fortran": {"obs": np.asfortranarray(good["obs"])},
    }  # fmt: skip
    settings = {"bc": ("algorithm.steps=30", "algorithm.width=4"), "td3bc": ("algorithm.learner.steps=30", "algorithm.learner.width=4"), "iql": ("algorithm.steps=30", "algorithm.width=4"), "mopo": ("algorithm.learner.steps=20", "algorithm.learner.width=4", "model.steps=20", "model.width=4", "world.reward.steps=20", "world.reward.width=4", "world.pairs.steps=20", "world.pairs.autoencoder_steps=20")}  # fmt: skip
    for number, (name, change) in enumerate(changed.items()):

        def prepare(place: Place, change: dict[str, Any] = change) -> None:
            arrays: Any = {**good, **change}
            np.savez(place.folder / "log.npz", **arrays)

        for algo in (list(settings)[number % 4], list(settings)[(number + 1) % 4]):
            line = (
                "train",
                "log.npz",
                "--algo",
                algo,
                "--seeds",
                "1",
                "--out",
                "run",
                "--set",
                *settings[algo],
            )
            yield command("odd numbers", f"{algo}: {name}", *line, prepare=prepare, expect="either")


def cases() -> Iterator[Case]:
    """All of them."""
    for make in (tables, wrong_files, lines, places, actions):
        yield from make()
