"""Files of behaviour policies that somebody got wrong: one sentence, before anything is collected."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.hostile.files import d4rl, raw
from tests.hostile.outcomes import assert_refused, contents, run

LAYERS = {"fc0": (8, 3), "last_fc": (1, 8), "last_fc_log_std": (1, 8)}


def weights(**changes: Any) -> dict[str, Any]:
    """A small network for the pendulum; names have `__` for `/`, and None leaves an array out."""
    arrays: dict[str, Any] = {}
    for name, shape in LAYERS.items():
        arrays |= {
            f"{name}/weight": np.zeros(shape, np.float32),
            f"{name}/bias": np.zeros(shape[:1], np.float32),
        }
    arrays |= {name.replace("__", "/"): value for name, value in changes.items()}
    return {name: value for name, value in arrays.items() if value is not None}


def npz(**changes: Any) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        np.savez(folder / "policy.npz", allow_pickle=True, **weights(**changes))
        return folder / "policy.npz"

    return build


def hdf5(edit: Callable[[Any], object]) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        path = d4rl(folder)
        with h5py.File(path, "a") as file:
            edit(file)
        return path

    return build


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "policy.npz")
    return folder / "policy.npz"


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a layer left out": (npz(last_fc__weight=None), "it has no array 'last_fc/weight'"),
    "text": (npz(fc0__weight=np.full((8, 3), "one")), "'fc0' is not numeric"),
    "objects": (npz(fc0__weight=np.array([{}], object)), "holds Python objects"),
    "NaN": (npz(fc0__bias=np.full(8, np.nan)), "'fc0' holds NaN or infinity"),
    "one number": (npz(fc0__weight=np.float32(1)), "'fc0' has shapes"),
    "layers that do not fit": (
        npz(fc0__weight=np.zeros((5, 3)), fc0__bias=np.zeros(5)),
        "do not fit each other",
    ),
    "another non-linearity": (npz(nonlinearity=np.array("\x1b[2J")), r"unknown nonlinearity '\x1b[2J'"),
    "bytes for a non-linearity": (npz(nonlinearity=np.bytes_(b"\xff")), "unknown nonlinearity"),
    "another width": (npz(fc0__weight=np.zeros((8, 4), np.float32)), "takes 4 observations"),
    "no policy in the file": (d4rl, "holds no behaviour policy"),
    "an array for a policy": (
        hdf5(lambda h: h.create_dataset("metadata/policy", data=np.zeros(3))),
        "'metadata/policy' is an array",
    ),
    "an empty policy": (
        hdf5(lambda h: h.create_group("metadata/policy")),
        "it has no array 'last_fc/weight'",
    ),
    "a link into another file": (
        hdf5(lambda h: h.create_group("metadata/policy").__setitem__("x", h5py.ExternalLink("a", "/b"))),
        "a link into another file",
    ),
    "a table": (lambda f: raw(f, "policy.csv", b"a,b\n1,2\n"), "is not a policy"),
    "a pipe": (pipe, "policy.npz"),
    "a name too long": (lambda f: f / f"{'x' * 300}.npz", "File name too long"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_policy_is_one_sentence(case: str, tmp_path: Path) -> None:
    build, words = BAD[case]
    source, out = build(tmp_path), tmp_path / "out.hdf5"
    before = contents(tmp_path)
    found = run("data", "collect", "--task", "pendulum", "--steps", 20, "--policy", source, "--out", out)
    assert_refused(found, words)
    assert contents(tmp_path) == before
