"""What runs and `select` keep: weights of policies that are signed but wrong, and plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from hostile_trial.runs import DAMAGE, read
from hostile_trial.trial import Case, Place, command


def weights() -> Iterator[Case]:
    """Other weights, signed as their writer would."""
    from mcetm.agents.policy import _checksum

    def signed(change: Callable[[dict[str, Any]], Any]) -> Callable[[Place], None]:
        def prepare(place: Place) -> None:
            folder = place.copy("mopo", "run") / "policy" / "seed-0"
            arrays = {
                name: np.array(array)
                for name, array in load((folder / "policy.safetensors").read_bytes()).items()
            }
            changed = change(arrays) or arrays
            (folder / "policy.safetensors").write_bytes(
                save({n: np.ascontiguousarray(a) for n, a in changed.items()})
            )
            about = json.loads((folder / "policy.json").read_text())
            about["checksum"] = _checksum(about, (folder / "policy.safetensors").read_bytes())
            (folder / "policy.json").write_text(json.dumps(about))

        return prepare

    def each(prefix: str, value: Callable[[Any], Any]) -> Callable[[dict[str, Any]], Any]:
        return lambda arrays: {name: value(a) if name.startswith(prefix) else a for name, a in arrays.items()}

    changes: dict[str, Callable[[dict[str, Any]], Any]] = {
        "NaN": each("", lambda a: a * np.float32("nan")), "inf": each("fc0", lambda a: a + np.float32("inf")), "1e38": each("", lambda a: a * 0 + np.float32(3e38)),
        "other widths": each("fc0", lambda a: a[..., :2]), "turned": each("", lambda a: a.T), "no rows": each("fc0", lambda a: a[:0]), "float64": each("", lambda a: a.astype(np.float64)),
        "score NaN": each("trust", lambda a: a * np.float32("nan")), "score cut": each("trust", lambda a: a[:1]), "score inf": each("trust", lambda a: a + np.float32("inf")),
        "score gone": lambda arrays: {n: a for n, a in arrays.items() if not n.startswith(("trust", "pairs", "score"))}, "last gone": lambda arrays: {n: a for n, a in arrays.items() if "log_std" not in n},
        "one more": lambda arrays: {**arrays, "odd": np.zeros(3, np.float32)}, "nothing": lambda arrays: {"x": np.zeros(1, np.float32)}, "names of escapes": lambda arrays: {**arrays, "\x1b[31m": np.zeros(1, np.float32)},
        "three axes": each("fc0", lambda a: a[None]), "zero std": each("", lambda a: a * 0), "scalars": each("", lambda a: a.reshape(-1)[0]),
    }  # fmt: skip
    for name, change in changes.items():
        for reader in ("evaluate", "trust", "export", "estimate"):
            if reader == "estimate" and name not in ("NaN", "1e38", "score NaN", "zero std"):
                continue
            yield command(
                f"run folders: {reader}",
                f"weights: {name}",
                *read(reader),
                expect="either",
                words=("policy", "The policy"),
                prepare=signed(change),
            )
    for kind in ("h", "onnx", "stablehlo"):
        for name in ("1e38", "score NaN", "zero std"):
            yield command(
                "run folders: export",
                f"weights: {name} to {kind}",
                "export",
                "run",
                "--to",
                kind,
                expect="either",
                words=("policy",),
                prepare=signed(changes[name]),
            )


def plans() -> Iterator[Case]:
    """The plan that `select` keeps, and returns that are none."""

    def plan(text: str) -> Callable[[Place], None]:
        def prepare(place: Place) -> None:
            place.copy("bc", "run")
            place.write("chosen/plan.json", text)

        return prepare

    good = '{"format": 1, "budget": 5, "noise": 1.0, "priors": [{"policy": "seed-0", "mean": 0.0, "spread": 1.0}, {"policy": "seed-1", "mean": 0.0, "spread": 1.0}], "measured": []}'
    changes = {
        "budget 0": ("5", "0"), "budget huge": ("5", "9" * 30), "noise 0": ("1.0, \"priors", '0, "priors'), "noise NaN": ("1.0, \"priors", 'NaN, "priors'), "spread -1": ('"spread": 1.0}, ', '"spread": -1}, '),
        "mean 1e308": ("0.0", "1e308"), "spread 1e308": ('"spread": 1.0', '"spread": 1e308'), "spread 1e-320": ('"spread": 1.0', '"spread": 1e-320'), "twice": ("seed-1", "seed-0"), "another": ("seed-1", "seed-9"),
        "measured unknown": ("[]}", '[{"policy": "x", "value": 1}]}'), "measured too many": ("[]}", "[" + ",".join(['{"policy": "seed-0", "value": 1}'] * 9) + "]}"),
        "measured huge": ("[]}", '[{"policy": "seed-0", "value": 1e308}, {"policy": "seed-0", "value": 1e308}]}'), "format 2": ('"format": 1', '"format": 2'), "no priors": (good, '{"format":1,"budget":5,"noise":1.0,"priors":[]}'),
        "noise 1e-320": ("1.0, \"priors", '1e-320, "priors'), "noise 1e308": ("1.0, \"priors", '1e308, "priors'),
    }  # fmt: skip
    for name, (old, new) in changes.items():
        yield command(
            "select and its plan",
            name,
            "select",
            "run",
            "--out",
            "chosen",
            "--json",
            prepare=plan(good.replace(old, new, 1)),
            words=("plan.json", "plan"),
            expect="either",
        )
    for name, damage in list(DAMAGE.items())[::2]:

        def prepare(place: Place, damage: Callable[[Path], object] = damage) -> None:
            plan(good)(place)
            damage(place.folder / "chosen" / "plan.json")

        yield command(
            "select and its plan",
            f"plan.json: {name}",
            "select",
            "run",
            "--out",
            "chosen",
            prepare=prepare,
            words=("plan",),
            expect="either",
        )
    for text in (
        "",
        "=",
        "seed-0",
        "seed-0=",
        "seed-0=x",
        "seed-0=nan",
        "seed-0=inf",
        "seed-0=1e31",
        "seed-9=1",
        "=1",
        "seed-0=1=2",
        "seed-0=１",
        "seed-0=1_0",
        "seed-0= 1",
        "\x1b[31m=1",
    ):
        yield command(
            "select and its plan",
            f"--measured {text!r}",
            "select",
            "run",
            "--budget",
            5,
            "--out",
            "chosen",
            "--measured",
            text,
            prepare=plan(good),
            words=("return", "plan"),
            expect="either" if text in ("seed-0= 1", "seed-0=１", "seed-0=1_0") else "refused",
        )
    for number in ("0", "-1", "10001", "x", "1.5", "nan", "6", ""):
        yield command(
            "select and its plan",
            f"--budget {number}",
            "select",
            "run",
            "--budget",
            number,
            "--out",
            "chosen",
            prepare=plan(good),
            words=("plan", "budget"),
        )
        yield command(
            "select and its plan",
            f"--budget {number}, no plan yet",
            "select",
            "{m}/bc",
            "--budget",
            number,
            "--out",
            "chosen",
            words=("plan", "budget", "episodes"),
            expect="either" if number == "6" else "refused",
        )


def cases() -> Iterator[Case]:
    """All of them."""
    for make in (weights, plans):
        yield from make()
