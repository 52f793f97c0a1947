"""What is exported of a policy: plain layers, action bounds, the score of pairs, and what is known of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.dynamics.pairs import RUNGS
from mcetm.dynamics.plain_pairs import Layers, PlainPairScore
from mcetm.tasks.policy import TanhGaussianPolicy
from mcetm.versions import version_of

_KEPT = (
    "obs_names",
    "action_names",
    "obs_mean",
    "obs_std",
    "task",
    "dataset",
    "data_checksum",
    "algorithm",
    "preset",
    "seed",
    "updates",
    "saved",
    "mcetm",
)
"""What a policy knows of itself that travels with it."""
_PLACES = (0.0, 1.0, -1.0, 30.0)
"""Where examples are: in spreads of each column from its mean; the last is far from any log."""


@dataclass(frozen=True)
class PolicyContent:
    """action = low + (high − low) · (tanh(network(obs)) + 1) / 2, and the score of (obs, action)."""

    layers: Layers
    nonlinearity: str
    low: np.ndarray
    high: np.ndarray
    pairs: PlainPairScore | None
    about: Mapping[str, Any]
    """Metadata that every format carries."""

    @classmethod
    def of(
        cls, network: TanhGaussianPolicy, pairs: PlainPairScore | None, about: Mapping[str, Any]
    ) -> PolicyContent:
        """The deterministic policy of a network."""
        low = np.array(network.low or (-1.0,) * network.action_dim, np.float32)
        high = np.array(network.high or (1.0,) * network.action_dim, np.float32)
        # A path says where somebody's files lie; its last name is enough for others.
        about = {**about, "dataset": source_name(about.get("dataset"))}
        said = {
            "obs_dim": network.obs_dim,
            "action_dim": network.action_dim,
            **{name: about[name] for name in _KEPT if about.get(name) is not None},
            "action_low": low.tolist(),
            "action_high": high.tolist(),
            "trust_limit": None if pairs is None else pairs.limit,
            **({} if pairs is None else {"trust_rarity": rarity(pairs)}),
            "examples": examples(network, pairs, about),
            "policy_checksum": network.checksum,
            "exported_by": f"mcetm {version_of('mcetm')}",
        }
        return cls((*network.layers, network.mean), network.nonlinearity, low, high, pairs, said)

    @property
    def obs_dim(self) -> int:
        """Width of an observation."""
        return len(self.layers[0][0])

    @property
    def action_dim(self) -> int:
        """Width of an action."""
        return len(self.low)


def examples(
    network: TanhGaussianPolicy, pairs: PlainPairScore | None, about: Mapping[str, Any]
) -> dict[str, Any]:
    """Observations with the answers of the NumPy policy, by which whoever runs a file can check it."""
    middle = np.array(about.get("obs_mean") or [0.0] * network.obs_dim, np.float32)
    spread = np.array(about.get("obs_std") or [1.0] * network.obs_dim, np.float32)
    obs = np.stack([middle + np.float32(place) * spread for place in _PLACES])
    action = network.mode(obs)
    found: dict[str, Any] = {"obs": obs.tolist(), "action": action.tolist()}
    if pairs is not None:
        found["trust_score"] = finite_or_none(pairs(obs, action).tolist())
    return found


def finite_or_none(numbers: Sequence[float] | None) -> list[float | None] | None:
    """As JSON has numbers: what is infinite, or no number, is nothing."""
    return None if numbers is None else [x if math.isfinite(x) else None for x in numbers]


def rarity(pairs: PlainPairScore) -> dict[str, float]:
    """The score that one in so many fresh pairs of the log is above, as far as could be counted."""
    counted = [many for many in RUNGS if many <= pairs.unseen]
    return {str(many): float(pairs.ladder[RUNGS.index(many)]) for many in counted}


def source_name(source: str | None) -> str | None:
    """What a dataset is called, without the folders that its file lies in."""
    if source is None or not Path(source).suffix:
        return source
    return Path(source).name
