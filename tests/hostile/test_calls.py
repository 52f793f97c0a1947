"""Calls of the library with what cannot be: one sentence that names the argument, not a traceback.

They are made in a process of their own: in this one, types are checked at every call, which users do not do.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import mcetm
from tests.conftest import random_fields
from tests.hostile.calls import CALLS, Still, log

Outcomes = dict[str, list[str]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("calls")


@pytest.fixture(scope="module")
def outcomes(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    root = Path(__file__).parents[2]
    made = subprocess.run(
        [sys.executable, "-m", "tests.hostile.calls", str(tmp_path_factory.mktemp("policy"))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
        cwd=place,
        capture_output=True,
        check=True,
    )
    return json.loads(made.stdout.decode().splitlines()[-1])


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_cannot_be(call: str, outcomes: Outcomes) -> None:
    kind, said = outcomes[call]
    # Settings are refused as pydantic does, with an error of its own.
    assert kind in ("UserError", "DataError", *(["ValidationError"] if call.startswith("settings") else []))
    assert re.search(CALLS[call][1], said), said


def test_nothing_half_written_stays(place: Path, outcomes: Outcomes) -> None:
    assert outcomes
    assert not any(place.iterdir())


def test_what_can_be_is_taken() -> None:
    """Seeds of NumPy, keys of both styles, and episodes with more than is known."""
    pairs = np.zeros((2, 3)), np.zeros((2, 1), int)
    for key in (None, jax.random.PRNGKey(0), jax.random.key(0)):
        assert Still().samples(*pairs, 4, key=key).next_obs.shape == (2, 2, 4, 3)
    train, _ = log().split(0.1, seed=1)
    assert len(train) > 0
    fields = random_fields()
    episode = {"obs": fields["obs"], "notes": "a windy day", "action": fields["action"]}
    assert len(mcetm.Transitions.from_episodes([episode])) > 0
