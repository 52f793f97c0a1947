"""What is exported of a policy: plain layers, action bounds, the score of pairs, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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


def source_name(source: str | None) -> str | None:
    """What a dataset is called, without the folders that its file lies in."""
    if source is None or not Path(source).suffix:
        return source
    return Path(source).name
