"""Command lines that cannot be understood, modules that hide things, and settings outside their ranges."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mcetm import UserError
from mcetm.agents import ALGORITHMS
from mcetm.cli import main
from mcetm.pipeline.config import model_names, name_of
from mcetm.pipeline.presets import make_config
from mcetm.settings import from_plain, rows_of, to_plain
from tests.hostile.outcomes import assert_refused, run

LINES = {
    "nobody": "'nobody' is not known here; there are data, train, ",
    "data colect": "'colect' is not known here; there are inspect, collect, ",
    "data inspect": "mcetm data inspect needs SOURCE; see mcetm data inspect --help.",
    "train --nobody 3": "'--nobody, 3' is not known here; see mcetm train --help.",
    "train --seeds 0x10": "--seeds takes a whole number, not '0x10'; see mcetm train --help.",
    "select x --budget=nan": "--budget takes a whole number, not 'nan'",
    "data inspect x --split-gaps wide": "--split-gaps takes a number, not 'wide'",
    "data inspect x --action-low a": "--action-low takes a number, not 'a'",
    "data inspect x --reward -cost": "--reward needs a value (write --reward=-cost if that is meant)",
    "evaluate x --episodes": "--episodes needs a value; see mcetm evaluate --help.",
    "export x --to word": "--to takes one of h, npz, onnx, stablehlo, not 'word'",
}


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_that_is_none(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    said = capsys.readouterr()
    assert (stop.value.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.err.startswith("mcetm: ")
    assert LINES[line] in said.err


def test_a_name_of_a_thousand_letters_is_shown_by_its_ends() -> None:
    outcome = run("evaluate", "a" * 5000)
    assert_refused(outcome, "aaa…aaa")
    assert len(outcome.err) < 500


@pytest.mark.parametrize("command", ["evaluate policy --task", "train --model"])
def test_a_module_that_raises_when_it_is_asked(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.pipeline.runs import write_policy

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    Path("hiding.py").write_text("def __getattr__(name):\n    raise RuntimeError('no')\n")
    write_policy(Path("policy"), "pendulum")
    assert_refused(run(*command.split(), "hiding:thing"), "thing")
    sys.modules.pop("hiding", None)


BAD = {
    "number": [0, -1, 1.5, True, "x", float("nan"), 10**40],
    "true": [0, "true", None, [], 1.0],
    "word": [0, None, [], "x" * 5000, "\x1b[31m"],
    "list": [0, None, {}, ["x"], [[1]], [float("nan")], "x", [10**400]],
}


def can_be(value: Any, allowed: str) -> bool:
    """Whether a value is among those that `mcetm settings` names."""
    if value is None or isinstance(value, bool) or "list" in allowed:
        return value is None and "null" in allowed
    if "number" not in allowed or not isinstance(value, int | float):
        return False
    if "whole" in allowed and (isinstance(value, float) or value > 10**9):
        return False
    bounds = allowed.partition(" or ")[0].split()
    number: Any = value
    checks = {">": number.__gt__, "≥": number.__ge__, "<": number.__lt__, "≤": number.__le__}
    return abs(value) < float("inf") and all(
        checks[sign](type(value)(float(end))) for sign, end in pairwise(bounds) if sign in checks
    )


CHOICES = [
    *({"algo": name_of(kind)} for kind in ALGORITHMS),
    *({"algo": "mobile", "model": name} for name in model_names()),
]


def test_every_setting_refuses_what_its_range_leaves_out() -> None:
    seen = set()
    for choice in CHOICES:
        config = make_config("quick", algo=choice["algo"], model=choice.get("model"))
        for part in ("model", "algorithm", "world", "evaluation"):
            whole: Any = getattr(config, part)
            for path, _, allowed, _ in () if whole is None else rows_of(whole, part):
                if (path, allowed) not in seen and not path.endswith(".name"):
                    check(whole, part, path, allowed)
                seen.add((path, allowed))
    assert len(seen) > 150


def check(whole: Any, part: str, path: str, allowed: str) -> None:
    kind = next((kind for kind in ("list", "true", "number") if kind in allowed), "word")
    plain = to_plain(whole)
    *places, name = path.split(".")[1:]
    inner = plain
    for place in places:
        inner = inner[place]
    for value in BAD[kind]:
        if can_be(value, allowed):
            continue
        inner[name] = value
        with pytest.raises(UserError) as refusal:
            from_plain(type(whole), plain, part)
        assert path in str(refusal.value), (path, value)
        assert len(str(refusal.value)) < 400
