"""An untrained policy whose score of pairs has every part, made in no time."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import Policy, Transitions, World
from mcetm.agents.policy import numpy_policy
from mcetm.dynamics import PairScore, TrustRegion
from mcetm.dynamics.manifold import Autoencoder, AutoencoderSettings
from mcetm.export.standalone import Policy as StandalonePolicy
from mcetm.nn.actor import Actor
from mcetm.nn.mlp import MLP, Activation
from mcetm.nn.scaling import InputScaling, Scaling
from tests.conftest import random_fields
from tests.dynamics.test_model import TOY

ABOUT: dict[str, Any] = {
    "task": None,
    "algorithm": "MC-ETM",
    "seed": 3,
    "obs_names": ["level of tank 1", 'flow "in" */ \\', "Δp %s"],
    "action_names": ["pump", "valve"],
    "obs_mean": [1.0, -2.0, 0.5],
    "obs_std": [2.0, 0.1, 3.0],
    "data_checksum": "ab" * 32,
    "mcetm": "0.1.0",
}


def scaling(columns: int, seed: int) -> Scaling:
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=columns), rng.uniform(0.2, 3.0, columns)
    return Scaling(jnp.asarray(mean, jnp.float32), jnp.asarray(std, jnp.float32))


def steep(network: MLP) -> MLP:
    """A network that says more than fresh weights do."""
    last = network.layers[-1]
    return eqx.tree_at(lambda n: n.layers[-1].weight, network, 30.0 * last.weight)


def pair_score(
    obs: int = 3, action: int = 2, odds: Activation | None = "silu", far: bool = True
) -> PairScore:
    """A score with random weights; its limit is in the midst of what it gives near its middle."""
    keys = jax.random.split(jax.random.key(1), 3)
    columns = obs + action
    sizes = AutoencoderSettings(latent_dim=3, width=8, depth=2)
    autoencoder = Autoencoder(sizes, scaling(columns, 2), key=keys[0])
    autoencoder = eqx.tree_at(lambda a: a.code_scale, autoencoder, scaling(3, 3))
    return PairScore(
        InputScaling(scaling(obs, 4), scaling(action, 5)),
        autoencoder,
        jnp.asarray(1.5),
        jnp.asarray(0.4),
        jax.random.normal(keys[1], (columns, columns)),
        None if odds is None else steep(MLP(columns + 1, 1, width=8, depth=2, activation=odds, key=keys[2])),
        bound=5.0,
        far=far,
        limit=jnp.asarray(6.0),
        ladder=jnp.linspace(-2.0, 9.0, 12),
        unseen=jnp.asarray(999.0),
        reach=jnp.asarray(5.0),
        extent=jnp.asarray(20.0),
    )


@cache
def scored_policy(odds: Activation | None = "silu", *, trust: bool = True, far: bool = True) -> Policy:
    """Observations of 3 numbers, actions of 2 between bounds of their own."""
    low, high = jnp.array([-2.0, 0.0]), jnp.array([2.0, 10.0])
    actor = Actor(scaling(3, 6), low, high, width=16, key=jax.random.key(0))
    region = TrustRegion(jnp.asarray(1.0), pairs=pair_score(odds=odds, far=far)) if trust else None
    return Policy(numpy_policy(actor), dict(ABOUT), World(TOY, lambda o, a, s: s[0], trust=region))


def observations() -> np.ndarray:
    """Near the middle, far from it, extreme, and rows of a log that nothing was fitted to."""
    rng = np.random.default_rng(7)
    near, far = rng.normal(size=(40, 3)), 30.0 * rng.normal(size=(20, 3))
    held_out = Transitions.from_arrays(**random_fields()).obs
    extreme = [np.zeros((1, 3)), *(size * np.eye(3) for size in (1e-30, 1e3, -1e3, 1e6, -1e6))]
    return np.concatenate([near, far, held_out, *extreme]).astype(np.float32)


def assert_exports(policy: Policy, obs: np.ndarray, folder: Path) -> None:
    """A trained policy says the same as a file of numbers, with Python alone and in onnxruntime."""
    wanted, scored = policy(obs), policy.pairs is not None
    alone = StandalonePolicy(policy.export(folder / "plant.npz")[0])
    actions, scores = zip(*(alone(row) for row in obs.tolist()), strict=True)
    np.testing.assert_allclose(actions, wanted, rtol=1e-4, atol=1e-4)
    assert [score is not None for score in scores] == [scored] * len(obs)
    runtime = pytest.importorskip("onnxruntime")
    found = runtime.InferenceSession(policy.export(folder / "plant.onnx")[0]).run(None, {"obs": obs})
    np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-4)
    assert len(found) == (3 if scored else 1)
    if scored:
        score = policy.trust(obs).score
        np.testing.assert_allclose(np.array(scores, float), score, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(found[1], score, rtol=1e-3, atol=1e-3)
