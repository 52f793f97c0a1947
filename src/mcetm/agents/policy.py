"""A trained policy on its own: exported from an actor, kept as safetensors and JSON, called with NumPy."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from mcetm.errors import UserError
from mcetm.files import write_bytes, write_json
from mcetm.nn.actor import LOG_STD_RANGE, Actor
from mcetm.nn.mlp import as_mlp
from mcetm.tasks.policy import TanhGaussianPolicy

_FORMAT = 1


@dataclass(frozen=True)
class Policy:
    """action = policy(obs): NumPy in and out, one observation or a batch; the mode unless asked to sample."""

    network: Any
    """A `BehaviourPolicy` that has widths and may be deterministic."""
    about: dict[str, Any]
    """What is known of it: task, algorithm, seed, updates."""
    world: Any = None
    """The world that it was trained in, where that is at hand."""

    def __call__(self, obs: Any, *, rng: np.random.Generator | None = None) -> np.ndarray:
        """Actions for one observation or for each row; with `rng` sampled, else the mode."""
        rows = np.asarray(obs, np.float32)
        if rows.shape[-1:] != (self.network.obs_dim,) or rows.ndim > 2:
            raise UserError(
                f"The policy takes observations of width {self.network.obs_dim}, not {rows.shape}."
            )
        batch = np.atleast_2d(rows)
        acting = replace(self.network, deterministic=rng is None)
        action = acting.sample(batch, rng or np.random.default_rng(0))
        return action if rows.ndim == 2 else action[0]

    def trust(self, obs: Any) -> Trust:
        """Whether the model knows what the policy does here; for one observation or for each row."""
        if self.world is None or self.world.trust is None:
            raise UserError("This policy has no world beside it, so nothing is known of where to trust it.")
        score = np.asarray(self.world.model.disagreement(obs, self(obs)))
        return Trust(score, float(self.world.trust.pair_limit))


@dataclass(frozen=True)
class Trust:
    """How far the members' predictions lie apart for what a policy does, and how far is too far."""

    score: np.ndarray
    limit: float
    """The quantile of held-out data that the trust region was calibrated to."""

    @property
    def trusted(self) -> np.ndarray:
        """Whether each is within the limit."""
        return np.asarray(self.score <= self.limit)

    def __str__(self) -> str:
        rows = ", ".join(
            f"{s:.3g}{'' if good else ' (outside)'}"
            for s, good in zip(np.ravel(self.score), np.ravel(self.trusted), strict=True)
        )
        return f"disagreement {rows}; trusted up to {self.limit:.3g}"


def numpy_policy(actor: Actor, *, deterministic: bool = True) -> TanhGaussianPolicy:
    """The actor as a NumPy network; the scaling of observations becomes part of its first layer."""
    network = as_mlp(actor.network)
    if network is None:
        raise UserError(
            "A policy with a network of your own cannot be written down as plain layers; keep the folder of "
            "its training, and fit it again with the same network=."
        )
    layers = [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in network.layers]
    mean, std = np.asarray(actor.obs_scale.mean), np.asarray(actor.obs_scale.std)
    weight, bias = layers[0]
    layers[0] = weight / std, bias - (weight / std) @ mean
    (last_weight, last_bias), actions = layers[-1], len(np.asarray(actor.action_scale.mean))
    as_stored = lambda w, b: (np.ascontiguousarray(w.T, np.float32), np.ascontiguousarray(b, np.float32))  # noqa: E731
    centre, half = (np.asarray(a, np.float64) for a in (actor.action_scale.mean, actor.action_scale.std))
    policy = TanhGaussianPolicy(
        layers=tuple(as_stored(w, b) for w, b in layers[:-1]),
        mean=as_stored(last_weight[:actions], last_bias[:actions]),
        log_std=as_stored(last_weight[actions:], last_bias[actions:]),
        deterministic=deterministic,
        log_std_range=LOG_STD_RANGE,
    )
    return policy.within(tuple((centre - half).tolist()), tuple((centre + half).tolist()))


def save_policy(folder: Path, actor: Actor, about: dict[str, Any]) -> None:
    """Write `policy.safetensors` and `policy.json`, each whole or not at all."""
    policy = numpy_policy(actor)
    arrays: dict[str, np.ndarray] = {}
    for name, (weight, bias) in _named(policy).items():
        arrays[f"{name}/weight"], arrays[f"{name}/bias"] = np.ascontiguousarray(weight.T), bias
    write_bytes(folder / "policy.safetensors", save(arrays))
    low = policy.low or (-1.0,) * policy.action_dim
    high = policy.high or (1.0,) * policy.action_dim
    content = {
        "format": _FORMAT,
        "kind": "tanh-Gaussian network",
        "obs_dim": policy.obs_dim,
        "action_low": low,
        "action_high": high,
        "log_std_range": policy.log_std_range,
        **about,
    }
    write_json(folder / "policy.json", content)


def load_policy(path: str | Path) -> Policy:
    """Read a policy's folder, or a run's (its first seed)."""
    folder = Path(path)
    places = [folder, folder / "policy", *seed_folders(folder)]
    found = next((place for place in places if (place / "policy.json").is_file()), None)
    if found is None:
        raise UserError(f"{path} holds no policy: there is no policy.json in it or in its folder policy/.")
    try:
        about = json.loads((found / "policy.json").read_text(encoding="utf-8"))
        arrays = load_file(found / "policy.safetensors")
        network = TanhGaussianPolicy.from_arrays(arrays, source=str(found))
        network = replace(network, log_std_range=tuple(about["log_std_range"]), deterministic=True)
        network = network.within(tuple(about["action_low"]), tuple(about["action_high"]))
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise UserError(f"The policy in {found} is damaged: {error}.") from None
    return Policy(network, about)


def seed_folders(run: Path) -> list[Path]:
    """The policies of a run, by seed."""
    found = [path for path in (run / "policy").glob("seed-*") if path.name.removeprefix("seed-").isdigit()]
    return sorted(found, key=lambda path: int(path.name.removeprefix("seed-")))


def _named(policy: TanhGaussianPolicy) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    hidden = {f"fc{i}": layer for i, layer in enumerate(policy.layers)}
    return {**hidden, "last_fc": policy.mean, "last_fc_log_std": policy.log_std}
