"""Several devices: seeds and members are shared out, and learn what they learn on one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

import mcetm
from mcetm import UserError

_SCRIPT = """
import json, sys, tempfile
import jax, numpy as np
import mcetm
from mcetm.training import devices as own

jax.config.update("jax_disable_most_optimizations", True)
log = mcetm.collect("pendulum", 600, "uniform", processes=1)
train, holdout = log.split(holdout=0.34, seed=0)
used = []
mesh_for = own.mesh_for
def noted(lanes):
    mesh = mesh_for(lanes)
    used.append(1 if mesh is None else mesh.size)
    return mesh
from mcetm.training import loop
loop.mesh_for = noted

def leaves(tree):
    found = jax.tree_util.tree_leaves(tree)
    return [np.asarray(x) for x in found if getattr(x, "dtype", None) == np.float32]

def off(one, other):
    pairs = zip(leaves(one), leaves(other), strict=True)
    return max(float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs)

gauss = mcetm.GaussianEnsemble(members=4, elites=4, width=8, depth=1, steps=20, batch_size=16)
models = [mcetm.fit(gauss, train, holdout=holdout, devices=n) for n in (None, 8)]
models += [mcetm.fit(gauss, train, holdout=holdout, devices=8, share_rows=True)]
world = mcetm.World.of(
    models[0], train, holdout=holdout, task=mcetm.get_task("pendulum"),
    config=mcetm.WorldSettings(reward={"width": 8, "steps": 20}, pairs=None),
)
learner = mcetm.SAC(width=8, depth=1, steps=20, batch_size=16)
mopo = mcetm.MOPO(learner=learner, rollout={"batch": 8, "horizon": 2, "every": 10, "retain": 2})
alone = mcetm.fit(mopo, train, world=world, seeds=8)
mcetm.fit(mcetm.BC(width=8, depth=1, steps=5, batch_size=16), train, seeds=6, devices=4)
with tempfile.TemporaryDirectory() as folder:
    count = iter(range(9))
    begun = [lambda line: next(count) == 0]
    mcetm.fit(mopo, train, world=world, seeds=8, devices=8, folder=folder, callbacks=begun)
    resumed = mcetm.fit(mopo, train, world=world, seeds=8, devices=2, folder=folder)
print(json.dumps({
    "used": used,
    "models": off(models[0], models[1]),
    "shared": off(models[1], models[2]),
    "agents": off(alone.learner, resumed.learner),
    "free": not jax.tree_util.tree_leaves(resumed.learner)[0].committed,
}))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    told = {**os.environ, "XLA_FLAGS": flags.strip(), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=told, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_what_learns_on_its_own_is_shared_out_equally(found: dict[str, Any]) -> None:
    shared = [count for count in found["used"] if count > 1]
    # Four members on eight, twice, six seeds on four, and eight seeds on eight and then on two.
    assert shared == [4, 4, 3, 8, 2]


def test_the_numbers_are_those_of_one_device_but_for_their_last_digits(found: dict[str, Any]) -> None:
    # Quotients of many numbers by one become products on one device, and stay what they are on several.
    assert found["models"] < 1e-6
    assert found["agents"] < 1e-5, "begun on eight, gone on with on two"


def test_rows_that_are_shared_out_are_drawn_as_from_one_device(found: dict[str, Any]) -> None:
    assert found["shared"] < 1e-6


def test_what_was_learned_may_go_anywhere_afterwards(found: dict[str, Any]) -> None:
    assert found["free"]


def test_devices_that_are_not_there_are_refused() -> None:
    log = mcetm.collect("pendulum", 400, "uniform", processes=1)
    with pytest.raises(UserError, match="devices here, so 99 cannot be used"):
        mcetm.fit(mcetm.BC(steps=1), log, devices=99)
