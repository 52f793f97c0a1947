"""The contract of every transition model: next states of each of its members, with energies or without.

A model says how *one* (s, a) is treated: `draw`, and `means` and `spreads` where it knows better than samples
do. Every public method takes any leading batch axes, of JAX's or NumPy's arrays; those written for one (s, a)
are made to. Any model works under any algorithm.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from mcetm.arguments import whole
from mcetm.data.transitions import Transitions
from mcetm.dynamics.batching import batched, over_batch
from mcetm.files import Folders
from mcetm.nn.mlp import NetworkFactory
from mcetm.training import Callback

Stages = Callable[[str], AbstractContextManager[None]]
"""Called with the name of each part of a world, around its training."""


def no_stages(name: str) -> AbstractContextManager[None]:
    """Nothing is done around a part."""
    return nullcontext()


class PartKeys(NamedTuple):
    """A random key for each part of a world, all of one seed: a part is the same whoever trains it."""

    regressor: PRNGKeyArray
    reward: PRNGKeyArray
    termination: PRNGKeyArray
    autoencoder: PRNGKeyArray
    model: PRNGKeyArray
    calibration: PRNGKeyArray
    held_out: PRNGKeyArray
    support: PRNGKeyArray
    pairs: PRNGKeyArray


def part_keys(seed: int) -> PartKeys:
    """The keys of a seed."""
    key = jax.random.key(seed)
    keys = jax.random.split(key, 6)
    calibration, held_out = jax.random.split(keys[5])
    support, pairs = jax.random.fold_in(key, 6), jax.random.fold_in(key, 7)
    return PartKeys(keys[0], keys[1], keys[2], keys[3], keys[4], calibration, held_out, support, pairs)


@dataclass(frozen=True)
class TrainingInputs:
    """What a model is trained on and with: all that its parts share."""

    log: Transitions
    holdout: Transitions
    keys: PartKeys
    folder: Path | Folders | None
    callbacks: Sequence[Callback]
    network: NetworkFactory | None
    stages: Stages

    def place(self, name: str) -> Path | None:
        """Where a part keeps its metrics and checkpoints."""
        return None if self.folder is None else self.folder / name

    @property
    def own(self) -> dict[str, Any]:
        """What belongs to the part that a model is named for: its callbacks, and a network of the user's."""
        return {"callbacks": self.callbacks, "network": self.network}


_MOST_SAMPLES = 1_000_000
"""Next states that each member draws, at most."""
_ENOUGH = 8
"""Samples of a member from which its mean and its spread are estimated, where the model knows neither."""


class Samples(eqx.Module):
    """N next states of each of M members for each (s, a), and the member's energy at each if it has one."""

    next_obs: Float[Array, "*batch members samples obs"]
    energy: Float[Array, "*batch members samples"] | None = None

    @property
    def aleatoric(self) -> Float[Array, "*batch obs"]:
        """Variance within a member, averaged over members: what noise the world has."""
        return self.next_obs.var(axis=-2).mean(axis=-2)

    @property
    def epistemic(self) -> Float[Array, "*batch obs"]:
        """Variance between the members' means: what the models do not agree on."""
        return self.next_obs.mean(axis=-2).var(axis=-2)

    @property
    def deviation(self) -> Float[Array, "*batch"]:
        """How far the mean of the member that is farthest off lies from the mean of all."""
        means = self.next_obs.mean(axis=-2)
        return jnp.linalg.norm(means - means.mean(axis=-2, keepdims=True), axis=-1).max(axis=-1)

    @property
    def member_spread(self) -> Float[Array, "*batch"]:
        """The spread over members of one sample each."""
        return jnp.linalg.norm(self.next_obs[..., 0, :].std(axis=-2), axis=-1)


class ModelSettings:
    """What a transition model is trained with; `fit` trains it."""

    trains_agents: ClassVar[bool] = False
    has_energy: ClassVar[bool] = False
    """Whether the trained model gives transitions an energy."""
    has_density: ClassVar[bool] = False
    """Whether its members know the density of a next state."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The stages that `train` has, as far as they are known beforehand."""
        return ()

    @property
    def num_members(self) -> int | None:
        """How many members will draw; None where that is not known beforehand."""
        return None

    def fit(
        self,
        train: Transitions,
        *,
        holdout: Transitions,
        seed: int = 0,
        folder: Path | Folders | None = None,
        callbacks: Sequence[Callback] = (),
        network: NetworkFactory | None = None,
        stages: Stages = no_stages,
    ) -> TransitionModel:
        """The trained model, or what the folder has of it.

        Rows that do not say what came after are left out. `stages` is called with the name of each part, and
        gives a context to train it in.
        """
        seen, unseen = train.with_next, holdout.excerpt().with_next
        return self.train(TrainingInputs(seen, unseen, part_keys(seed), folder, callbacks, network, stages))

    @abc.abstractmethod
    def train(self, inputs: TrainingInputs) -> TransitionModel:
        """Train the parts of the model, each in a stage."""


_FOR_ONE = {"draw": 2, "means": 2, "spreads": 2, "apart": 2, "total_spread": 2, "energies": 3}
"""Methods that are written for one (s, a), or one (s, a, s'), and how many vectors each takes."""


class TransitionModel(eqx.Module):
    """Predicts next states: p(s' | s, a), as M members know it.

    A model of your own needs `num_members` and `draw`. What is written for one (s, a) can be called with
    leading batch axes too; each row then gets a key of its own.
    """

    trains_agents: ClassVar[bool] = False
    has_energy: ClassVar[bool] = False
    """Whether samples come with energies."""
    has_density: ClassVar[bool] = False
    """Whether members know the density of a next state."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for name, arrays in _FOR_ONE.items():
            if name in vars(cls):
                setattr(cls, name, batched(vars(cls)[name], arrays, needs_key=True))

    @property
    def parts(self) -> tuple[str, ...]:
        """The stages of its training: a model that is one already has none."""
        return ()

    @property
    @abc.abstractmethod
    def num_members(self) -> int:
        """M: how many members draw."""

    @property
    def widths(self) -> tuple[int, int] | None:
        """How many numbers its states have, and its actions; None where it takes any."""
        return None

    def part(self, name: str) -> TransitionModel:
        """A model inside this one that stands alone, such as its `regressor`; itself if it has none."""
        return self

    @abc.abstractmethod
    def draw(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], count: int, *, key: PRNGKeyArray
    ) -> Samples:
        """`count` next states of every member for one (s, a)."""

    def fit(self, train: Transitions, **more: Any) -> TransitionModel:
        """The model itself: one that needs no training can stand where settings do."""
        return self

    @functools.partial(batched, needs_key=True)
    def means(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, "members obs"]:
        """Each member's own point prediction for one (s, a)."""
        return self.draw(obs, action, _ENOUGH, key=key).next_obs.mean(axis=1)

    @functools.partial(batched, needs_key=True)
    def spreads(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, "members obs"]:
        """The standard deviation that each member expects for one (s, a)."""
        return self.draw(obs, action, _ENOUGH, key=key).next_obs.std(axis=1, ddof=1)

    @functools.partial(batched, needs_key=True)
    def apart(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """The largest distance between two members' predictions, for one (s, a); near 0 for one member."""
        return farthest(self.means(obs, action, key=key))

    @functools.partial(batched, needs_key=True)
    def total_spread(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Float[Array, " obs"]:
        """What members expect to be off by, and how far they lie apart, as one standard deviation."""
        means = self.means(obs, action, key=key)
        apart = means.var(axis=0, ddof=1) if self.num_members > 1 else jnp.zeros_like(means[0])
        return jnp.sqrt((self.spreads(obs, action, key=key) ** 2).mean(axis=0) + apart)

    def samples(
        self, obs: ArrayLike, action: ArrayLike, count: int, *, key: PRNGKeyArray | None = None
    ) -> Samples:
        """`count` next states of every member, for any leading batch axes."""
        whole("count", count, least=1, most=_MOST_SAMPLES)
        return over_batch(_draw, self, (obs, action), count, key=key)

    def predict(
        self, obs: ArrayLike, action: ArrayLike, *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "*batch obs"]:
        """A point prediction, the mean of the members', for any leading batch axes."""
        return over_batch(_predict, self, (obs, action), key=key)

    def disagreement(
        self, obs: ArrayLike, action: ArrayLike, *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "*batch"]:
        """How far apart the two most distant predictions of members lie, for any leading batch axes."""
        return over_batch(_apart, self, (obs, action), key=key)


class EnergyModel(TransitionModel):
    """A transition model whose members give every transition an energy: p(s' | s, a) ∝ exp(−E(s, a, s'))."""

    has_energy: ClassVar[bool] = True

    @abc.abstractmethod
    def energies(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, " members"]:
        """The energy of one transition under each member."""

    def energy(
        self, obs: ArrayLike, action: ArrayLike, next_obs: ArrayLike
    ) -> Float[Array, "*batch members"]:
        """The energy of transitions under each member, for any leading batch axes."""
        return over_batch(_energies, self, (obs, action, next_obs))


def farthest(means: Float[Array, "members obs"]) -> Float[Array, ""]:
    """The largest distance between two rows."""
    # The tiny constant keeps the root differentiable where a mean is compared with itself.
    return jnp.sqrt(((means[:, None] - means) ** 2).sum(axis=-1) + 1e-12).max()


def _draw(model: TransitionModel, obs: Array, action: Array, count: int, *, key: PRNGKeyArray) -> Samples:
    return model.draw(obs, action, count, key=key)


def _predict(model: TransitionModel, obs: Array, action: Array, *, key: PRNGKeyArray) -> Array:
    return model.means(obs, action, key=key).mean(axis=0)


def _apart(model: TransitionModel, obs: Array, action: Array, *, key: PRNGKeyArray) -> Array:
    return model.apart(obs, action, key=key)


def _energies(model: EnergyModel, obs: Array, action: Array, next_obs: Array, *, key: PRNGKeyArray) -> Array:
    return model.energies(obs, action, next_obs)
