"""Behaviour policies in NumPy: the protocol, the tanh-Gaussian network of D4RL, and uniform actions.

These run inside simulator processes, where importing an accelerator library would cost more
than the few matrix products they need.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Float32

from mcetm.arguments import path_of
from mcetm.errors import UserError
from mcetm.formats import hdf5_arrays, kind_of, open_hdf5, read_npz

_LOG_STD_RANGE = (-20.0, 2.0)  # D4RL's clip
_ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0.0, out=x), "tanh": lambda x: np.tanh(x, out=x)}


@runtime_checkable
class BehaviourPolicy(Protocol):
    """Anything that chooses actions for a batch of observations."""

    @property
    def checksum(self) -> str:
        """Identity of the policy, recorded as provenance of what it collected."""
        ...

    def sample(
        self, obs: Float32[np.ndarray, "batch obs"], rng: np.random.Generator
    ) -> Float32[np.ndarray, "batch action"]:
        """One action per observation; all randomness comes from `rng`."""
        ...


@dataclass(frozen=True)
class UniformPolicy:
    """Actions drawn uniformly between the bounds."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def checksum(self) -> str:
        """Identity of the policy."""
        return f"uniform{list(self.low)}{list(self.high)}"

    def sample(
        self, obs: Float32[np.ndarray, "batch obs"], rng: np.random.Generator
    ) -> Float32[np.ndarray, "batch action"]:
        """Uniform actions, whatever the observation."""
        return rng.uniform(self.low, self.high, size=(len(obs), len(self.low))).astype(np.float32)


@dataclass(frozen=True, eq=False, repr=False)
class TanhGaussianPolicy:
    """action = tanh(mean(obs) + std(obs) · noise): how D4RL stores its behaviour policies."""

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    """(weight, bias) of each hidden layer; weights are (inputs, outputs), which small batches like best."""
    mean: tuple[np.ndarray, np.ndarray]
    log_std: tuple[np.ndarray, np.ndarray]
    nonlinearity: str = "relu"
    deterministic: bool = False
    """Act with tanh(mean) instead of a sample."""
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    """What the ends of [-1, 1] stand for; None: themselves."""
    log_std_range: tuple[float, float] = _LOG_STD_RANGE

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], *, source: str) -> TanhGaussianPolicy:
        """Build from arrays named `fc0/weight`, `fc0/bias`, …, `last_fc/…`, `last_fc_log_std/…`."""

        def layer(name: str) -> tuple[np.ndarray, np.ndarray]:
            try:
                weight, bias = (np.asarray(arrays[f"{name}/{part}"]) for part in ("weight", "bias"))
            except KeyError as missing:
                raise UserError(
                    f"{source} is not a tanh-Gaussian policy: it has no array {missing}."
                ) from None
            if weight.dtype.kind not in "fiu" or bias.dtype.kind not in "fiu":
                raise UserError(f"{source} is not a tanh-Gaussian policy: '{name}' is not numeric.")
            if weight.ndim != 2 or bias.shape != weight.shape[:1]:
                shapes = f"{weight.shape} and {bias.shape}"
                raise UserError(f"{source} is not a tanh-Gaussian policy: '{name}' has shapes {shapes}.")
            if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
                raise UserError(f"{source} cannot be used as a policy: '{name}' holds NaN or infinity.")
            return np.ascontiguousarray(weight.T, np.float32), np.ascontiguousarray(bias, np.float32)

        depth = 0
        while f"fc{depth}/weight" in arrays:
            depth += 1
        policy = cls(
            layers=tuple(layer(f"fc{i}") for i in range(depth)),
            mean=layer("last_fc"),
            log_std=layer("last_fc_log_std"),
            nonlinearity=_text(arrays.get("nonlinearity", "relu")),
        )
        if policy.nonlinearity not in _ACTIVATIONS:
            raise UserError(f"{source} has the unknown nonlinearity '{policy.nonlinearity}'.")
        widths = [weight.shape for weight, _ in (*policy.layers, policy.mean)]
        if any(below[1] != above[0] for below, above in itertools.pairwise(widths)):
            raise UserError(
                f"{source} is not a tanh-Gaussian policy: its layers do not fit each other, {widths}."
            )
        if policy.log_std[0].shape != policy.mean[0].shape:
            raise UserError(f"{source} is not a tanh-Gaussian policy: mean and log-std differ in shape.")
        return policy

    def __repr__(self) -> str:
        widths = " → ".join(str(len(bias)) for _, bias in self.layers)
        return f"TanhGaussianPolicy({self.obs_dim} → {widths} → {self.action_dim}, {self.checksum[:8]})"

    def within(self, low: tuple[float, ...], high: tuple[float, ...]) -> TanhGaussianPolicy:
        """The same network acting between these bounds, which −1 and 1 are mapped to."""
        if set(low) == {-1.0} and set(high) == {1.0}:
            return self
        return replace(self, low=low, high=high)

    @property
    def obs_dim(self) -> int:
        """Width of the observations it takes."""
        return (*self.layers, self.mean)[0][0].shape[0]

    @property
    def action_dim(self) -> int:
        """Width of the actions it gives."""
        return len(self.mean[1])

    @property
    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The least and the largest value of each action."""
        return self.low or (-1.0,) * self.action_dim, self.high or (1.0,) * self.action_dim

    @property
    def plain(self) -> TanhGaussianPolicy:
        """Itself: plain layers, as files hold them."""
        return self

    @property
    def checksum(self) -> str:
        """SHA-256 over all weights, the non-linearity and the mode."""
        digest = hashlib.sha256(f"{self.nonlinearity},{self.deterministic},{self.low},{self.high}".encode())
        for weight, bias in (*self.layers, self.mean, self.log_std):
            digest.update(weight.astype("<f4").tobytes())
            digest.update(bias.astype("<f4").tobytes())
        return digest.hexdigest()

    def distribution(
        self, obs: Float32[np.ndarray, "batch obs"]
    ) -> tuple[Float32[np.ndarray, "batch action"], Float32[np.ndarray, "batch action"]]:
        """Mean and log standard deviation before the tanh."""
        hidden = obs
        activation = _ACTIVATIONS[self.nonlinearity]
        for weight, bias in self.layers:
            hidden = hidden @ weight
            hidden += bias
            hidden = activation(hidden)
        mean = hidden @ self.mean[0] + self.mean[1]
        log_std = np.clip(hidden @ self.log_std[0] + self.log_std[1], *self.log_std_range)
        return mean, log_std

    def mode(self, obs: Float32[np.ndarray, "batch obs"]) -> Float32[np.ndarray, "batch action"]:
        """The deterministic action, tanh of the mean."""
        return self._scaled(np.tanh(self.distribution(obs)[0]))

    def sample(
        self, obs: Float32[np.ndarray, "batch obs"], rng: np.random.Generator
    ) -> Float32[np.ndarray, "batch action"]:
        """One action per observation."""
        mean, log_std = self.distribution(obs)
        if self.deterministic:
            return self._scaled(np.tanh(mean))
        noise = rng.standard_normal(mean.shape, dtype=np.float32)
        return self._scaled(np.tanh(mean + np.exp(log_std) * noise))

    def _scaled(self, squashed: np.ndarray) -> np.ndarray:
        if self.low is None or self.high is None:
            return squashed
        low, high = np.array(self.low, np.float32), np.array(self.high, np.float32)
        return low + (squashed + 1.0) / 2.0 * (high - low)

    def log_prob(
        self, obs: Float32[np.ndarray, "batch obs"], action: Float32[np.ndarray, "batch action"]
    ) -> Float[np.ndarray, " batch"]:
        """Log-density of squashed actions in [−1, 1], with D4RL's 1e-6 guard at the bounds."""
        mean, log_std = (x.astype(np.float64) for x in self.distribution(obs))
        squashed = action.astype(np.float64)
        before = np.arctanh(np.clip(squashed, -1.0 + 1e-7, 1.0 - 1e-7))
        gaussian = -0.5 * ((before - mean) / np.exp(log_std)) ** 2 - log_std - 0.5 * np.log(2.0 * np.pi)
        return (gaussian - np.log(1.0 - squashed**2 + 1e-6)).sum(axis=-1)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def read_policy(path: str | Path) -> TanhGaussianPolicy:
    """A policy from an `.npz` of arrays or from `metadata/policy` of a D4RL file.

    **Arguments:**

    - `path`: the file.

    **Returns:** a policy of a tanh Gaussian, which `collect` takes.
    """
    path = path_of("path", path)
    kind = kind_of(path)
    if kind == "npz":
        return TanhGaussianPolicy.from_arrays(read_npz(path), source=str(path))
    if kind != "hdf5":
        raise UserError(f"{path} is not a policy: an .npz of arrays or a D4RL HDF5 file is needed.")
    with open_hdf5(path) as file:
        if "metadata/policy" not in file:
            raise UserError(f"{path} holds no behaviour policy (there is no 'metadata/policy' in it).")
        names: list[str] = []
        group: Any = file["metadata/policy"]
        if not hasattr(group, "visititems"):
            raise UserError(f"{path} holds no behaviour policy ('metadata/policy' is an array).")
        group.visititems(lambda name, item: names.append(name) if hasattr(item, "dtype") else None)
        stored = hdf5_arrays(file, [f"metadata/policy/{name}" for name in names])
    arrays = {name.removeprefix("metadata/policy/"): array for name, array in stored.items()}
    return TanhGaussianPolicy.from_arrays(arrays, source=f"{path} (metadata/policy)")
