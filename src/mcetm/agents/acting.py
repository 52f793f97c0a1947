"""An actor as a policy that acts on NumPy arrays: its own layers in NumPy, or a user's network in JAX."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float32, PRNGKeyArray

from mcetm.agents.policy import numpy_policy
from mcetm.nn.actor import Actor
from mcetm.nn.mlp import as_mlp
from mcetm.tasks.policy import TanhGaussianPolicy


@dataclass(frozen=True, eq=False)
class ActorPolicy:
    """An actor whose network is a user's own; only the process that knows the network can run it."""

    actor: Actor
    deterministic: bool = True
    """Act with the mode instead of a sample."""

    @property
    def obs_dim(self) -> int:
        """Width of the observations it takes."""
        return self.actor.obs_scale.mean.shape[-1]

    @property
    def action_dim(self) -> int:
        """Width of the actions it gives."""
        return self.actor.action_scale.mean.shape[-1]

    @property
    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The least and the largest value of each action."""
        centre, half = np.asarray(self.actor.action_scale.mean), np.asarray(self.actor.action_scale.std)
        return tuple((centre - half).tolist()), tuple((centre + half).tolist())

    @property
    def plain(self) -> TanhGaussianPolicy:
        """Plain layers, of which nothing is known here: a sentence says so."""
        return numpy_policy(self.actor)

    @property
    def checksum(self) -> str:
        """SHA-256 over all arrays and the mode."""
        digest = hashlib.sha256(str(self.deterministic).encode())
        for leaf in jax.tree_util.tree_leaves(eqx.filter(self.actor, eqx.is_array)):
            digest.update(np.asarray(leaf).tobytes())
        return digest.hexdigest()

    def sample(
        self, obs: Float32[np.ndarray, "batch obs"], rng: np.random.Generator
    ) -> Float32[np.ndarray, "batch action"]:
        """One action per observation; all randomness comes from `rng`."""
        key = jax.random.key(0 if self.deterministic else int(rng.integers(2**31)))
        return np.asarray(_act(self.actor, obs, self.deterministic, key))


@eqx.filter_jit
def _act(actor: Actor, obs: Any, deterministic: bool, key: PRNGKeyArray) -> Any:
    if deterministic:
        return jax.vmap(actor.mode)(obs)
    keys = jax.random.split(key, len(obs))
    return jax.vmap(lambda o, k: actor.sample(o, key=k)[0])(obs, keys)


def acting(actor: Actor) -> TanhGaussianPolicy | ActorPolicy:
    """The policy of an actor; where its network is ours, one that any process can run."""
    return ActorPolicy(actor) if as_mlp(actor.network) is None else numpy_policy(actor)
