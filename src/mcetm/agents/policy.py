"""A trained policy on its own: exported from an actor, kept as safetensors and JSON, called with NumPy."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, model_validator
from safetensors.numpy import load, save

from mcetm.agents.fallback import fallback_actions
from mcetm.agents.trust import Trust
from mcetm.arguments import path_of, require, whole
from mcetm.console import say
from mcetm.data.names import are_names
from mcetm.documents import Checksum, Count, FileError, Finite, Record, Text, checked, parse, read_bytes
from mcetm.dynamics.plain_pairs import PlainPairsAbout, PlainPairScore
from mcetm.errors import UserError
from mcetm.export import export_policy
from mcetm.files import write_bytes, write_json
from mcetm.nn.actor import LOG_STD_RANGE, Actor
from mcetm.nn.mlp import as_mlp
from mcetm.tasks.policy import TanhGaussianPolicy

_FORMAT = 3
"""Format 1 had no checksum, format 2 no score of pairs; both are read."""
_SCORE = "trust/"
"""What the names of the arrays of a score of pairs begin with."""
_SEED = re.compile(r"seed-(0|[1-9][0-9]*)", re.ASCII)

Bounds = Annotated[list[Finite], Field(min_length=1)]


class _About(Record):
    """What `policy.json` says, whatever its format; anything else is the writer's own."""

    model_config = ConfigDict(extra="allow")

    kind: Literal["tanh-Gaussian network"]
    obs_dim: Annotated[int, Field(ge=1, le=10**9)]
    action_low: Bounds
    action_high: Bounds
    log_std_range: Annotated[
        list[Annotated[Finite, Field(ge=-100, le=20)]], Field(min_length=2, max_length=2)
    ]
    obs_names: list[str] | None = None
    action_names: list[str] | None = None
    """What the log calls each number of an observation and of an action."""
    task: Text | None = None
    dataset: Text | None = None
    algorithm: Text | None = None
    preset: Text | None = None
    seed: Count | None = None
    updates: Count | None = None
    saved: Text | None = None
    obs_mean: list[Finite] | None = None
    obs_std: list[Finite] | None = None
    """What observations were scaled by; the first layer does it."""
    data_checksum: Checksum | None = None
    """Of the log that it learned from."""
    mcetm: Text | None = None
    """The version that trained it."""

    @model_validator(mode="after")
    def _in_order(self) -> _About:
        if len(self.action_low) != len(self.action_high):
            raise ValueError("has 'action_low' and 'action_high' of different widths")
        for low, high in (*zip(self.action_low, self.action_high, strict=True), self.log_std_range):
            if not low < high:
                raise ValueError(f"has a lower bound {low:g} that is not below its upper one {high:g}")
        for name in ("obs_mean", "obs_std"):
            numbers = getattr(self, name)
            if numbers is not None and len(numbers) != self.obs_dim:
                raise ValueError(f"has {len(numbers)} '{name}' for {self.obs_dim} numbers")
        widths = {"obs_names": self.obs_dim, "action_names": len(self.action_low)}
        for named, width in widths.items():
            names = getattr(self, named)
            if not are_names(names):
                raise ValueError(f"has '{named}' that are not names of columns, each once")
            if names is not None and len(names) != width:
                raise ValueError(f"has {len(names)} '{named}' for {width} numbers")
        return self


class _First(_About):
    format: Literal[1]
    checksum: None = None


class _Second(_About):
    format: Literal[2]
    checksum: Checksum
    """Over the weights and all that is said here."""


class _Third(_About):
    format: Literal[3]
    checksum: Checksum
    trust: PlainPairsAbout | None = None
    """How the score of pairs is made of its arrays, where there is one."""


@dataclass(frozen=True)
class Policy:
    """action = policy(obs): NumPy in and out, one observation or a batch; the mode unless asked to sample."""

    network: Any
    """A `BehaviourPolicy` that has widths and may be deterministic."""
    about: dict[str, Any]
    """What is known of it: task, algorithm, seed, updates."""
    world: Any = None
    """The world that it was trained in, where that is at hand."""
    find_world: Callable[[], Any] | None = field(default=None, repr=False)
    """Reads the world when it is first asked for; of a policy that belongs to a run."""
    loaded: PlainPairScore | None = field(default=None, repr=False)
    """The score of pairs that was saved with it."""

    @cached_property
    def pairs(self) -> PlainPairScore | None:
        """What scores its pairs of observation and action, in NumPy; None where nothing does."""
        trust = None if self.world is None else self.world.trust
        if trust is None or trust.pairs is None:
            return self.loaded
        return PlainPairScore.of(trust.pairs)

    def __call__(
        self, obs: Any, *, rng: np.random.Generator | None = None, fallback: Any = None
    ) -> np.ndarray:
        """Actions for one observation or for each row; with `rng` sampled, else the mode.

        `fallback` acts where the policy is not trusted: an action, or what makes actions of observations. It
        keeps to the policy's own bounds.
        """
        require("rng", rng, "a generator, such as np.random.default_rng(0)", np.random.Generator, NoneType)
        if fallback is not None:
            return self._with_fallback(_rows(obs, self.network.obs_dim), fallback, rng)
        rows = _rows(obs, self.network.obs_dim)
        if rows.shape[-1:] != (self.network.obs_dim,) or rows.ndim > 2:
            raise UserError(
                f"The policy takes observations of width {self.network.obs_dim}, not {rows.shape}."
            )
        batch = np.atleast_2d(rows)
        _require_finite("an observation", batch)
        acting = replace(self.network, deterministic=rng is None)
        with np.errstate(over="ignore", invalid="ignore"):  # said below, in words
            action = acting.sample(batch, rng or np.random.default_rng(0))
        _require_finite("its action", action)
        return action if rows.ndim == 2 else action[0]

    def _with_fallback(self, obs: np.ndarray, fallback: Any, rng: np.random.Generator | None) -> np.ndarray:
        action = np.atleast_2d(self(obs, rng=rng))
        pairs, rows = self.pairs, np.atleast_2d(obs)
        trusted = np.atleast_1d(
            self.trust(obs).trusted if pairs is None else pairs(rows, action) <= pairs.limit
        )
        if not (callable(fallback) and trusted.all()):  # an action that cannot be is refused at once
            action, bounds = action.copy(), self.network.bounds
            action[~trusted] = fallback_actions(fallback, rows[~trusted], action[~trusted], bounds)
        return action if obs.ndim == 2 else action[0]

    def trust(self, obs: Any) -> Trust:
        """Whether the model knows what the policy does here; for one observation or for each row."""
        action = self(obs)  # an observation that cannot be is refused first
        if self.pairs is not None:
            return self._trust(self.pairs, _rows(obs, self.network.obs_dim), action)
        world = self.find_world() if self.world is None and self.find_world is not None else self.world
        if world is None or world.trust is None:
            raise UserError(
                "This policy has no world beside it and no score of pairs in its files, so nothing is known "
                "of where to trust it; those of algorithms that learn in a world have both."
            )
        score = np.asarray(world.pair_score(np.asarray(obs, np.float32), action))
        return Trust(score, float(world.trust.pair_limit))

    def _trust(self, pairs: PlainPairScore, obs: np.ndarray, action: np.ndarray) -> Trust:
        score = pairs(obs, action)
        shape = (*score.shape, obs.shape[-1] + action.shape[-1])
        rows = np.atleast_2d(obs), np.atleast_2d(action)
        return Trust(
            score, pairs.limit, pairs.one_in(score), self.names, lambda: pairs.columns(*rows).reshape(shape)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers of an observation and of an action are called."""
        widths = {"obs": self.network.obs_dim, "action": self.network.action_dim}
        found: list[str] = []
        for part, width in widths.items():
            found += self.about.get(f"{part}_names") or [f"{part}_{i}" for i in range(width)]
        return tuple(found)

    def save(self, folder: str | Path) -> None:
        """Write `policy.safetensors` and `policy.json`, each whole or not at all; `load_policy` reads them.

        Of the world only the score of pairs is written, so that `trust` works without it. Where trust is the
        disagreement of a model's members, it is known only while the world is at hand.
        """
        folder, network = path_of("folder", folder), self.network.plain
        require("about", self.about, "a dictionary", Mapping)
        arrays: dict[str, np.ndarray] = {}
        for name, (weight, bias) in _named(network).items():
            arrays[f"{name}/weight"], arrays[f"{name}/bias"] = np.ascontiguousarray(weight.T), bias
        if self.pairs is not None:
            arrays |= {_SCORE + name: array for name, array in self.pairs.to_arrays().items()}
        weights = save(arrays)
        content: dict[str, Any] = {
            **self.about,
            "trust": None if self.pairs is None else self.pairs.about().model_dump(),
            "format": _FORMAT,
            "kind": "tanh-Gaussian network",
            "obs_dim": network.obs_dim,
            "action_low": list(network.bounds[0]),
            "action_high": list(network.bounds[1]),
            "log_std_range": list(network.log_std_range),
        }
        try:
            json.dumps(content, allow_nan=False, default=lambda array: array.tolist())
        except (AttributeError, TypeError, ValueError) as error:  # `load_policy` would refuse it
            raise UserError(f"What is said of the policy (about) cannot be written: {error}.") from None
        write_bytes(folder / "policy.safetensors", weights)
        write_json(folder / "policy.json", {**content, "checksum": _checksum(content, weights)})

    def export(self, path: str | Path) -> list[Path]:
        """Write it for other programs: `.npz` (and a Python file), `.h`, `.onnx` or `.stablehlo`.

        Each gives the deterministic action and, where the policy has a score of pairs, that and its limit.
        What is written is returned.
        """
        return export_policy(self.network.plain, self.pairs, self.about, path)


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


def load_policy(path: str | Path, *, seed: int | None = None) -> Policy:
    """Read a policy's folder, or a run's.

    **Arguments:**

    - `path`: the folder of a run, or of one policy.
    - `seed`: which of a run's policies. Without it the first is taken; a line says so if there are others.

    **Returns:** the policy, without the world it was trained in; `mcetm.load_run` has that too.
    """
    folder = path_of("path", path)
    if seed is not None:
        whole("seed", seed)
    seeds = {int(place.name.removeprefix("seed-")): place for place in seed_folders(folder)}
    if seed is not None and seeds:
        if seed not in seeds:
            raise UserError(f"{path} has no policy of seed {seed}, but of {', '.join(map(str, seeds))}.")
        places = [seeds[seed]]
    else:
        places = [folder, folder / "policy", *seeds.values()]
    found = next((place for place in places if (place / "policy.json").is_file()), None)
    if found is None:
        raise UserError(f"{path} holds no policy: there is no policy.json in it or in its folder policy/.")
    about = read_about(found)
    if seed is not None and not seeds and about.get("seed") != seed:
        raise UserError(f"{path} is the policy of seed {about.get('seed')}, not of {seed}.")
    if seed is None and found in seeds.values() and len(seeds) > 1:
        taken = next(number for number, place in seeds.items() if place == found)
        say(
            f"{path} has policies of the seeds {', '.join(map(str, seeds))}; this is that of seed {taken} "
            "(choose with seed=).",
            file=sys.stderr,
        )
    network, pairs = _weights(found / "policy.safetensors", about)
    return Policy(network, about, loaded=pairs)


def read_about(folder: Path) -> dict[str, Any]:
    """What the `policy.json` of a folder says, checked by itself; `load_policy` checks the weights too."""
    path = folder / "policy.json"
    about = parse(path, read_bytes(path, largest=2**20))
    number = about.get("format") if isinstance(about, dict) else None
    number = number if type(number) is int else _FORMAT  # the schema refuses any other
    if number not in (1, 2, _FORMAT):
        raise FileError(path, f"another version of mcetm wrote it (format {number}, here {_FORMAT})")
    checked(path, about, {1: _First, 2: _Second}.get(number, _Third))
    return about


def _weights(path: Path, about: dict[str, Any]) -> tuple[TanhGaussianPolicy, PlainPairScore | None]:
    """The weights of a policy, which must be those that `about` was written with, and its score of pairs."""
    weights = read_bytes(path)
    if "checksum" in about and about["checksum"] != _checksum(about, weights):
        raise FileError(
            path, "its checksum is not the one in policy.json; one of the two is damaged or of another policy"
        )
    try:
        arrays = load(weights)
    except Exception as error:  # safetensors has its own errors, and NumPy others for kinds it lacks
        raise FileError(path, f"it holds no arrays ({type(error).__name__})") from None
    for name, array in arrays.items():
        if array.dtype != np.float32:
            raise FileError(path, f"its array {name!r:.100} is {array.dtype}, not float32")
    scored = about.get("trust") is not None and about["format"] > 2
    beside = {name: array for name, array in arrays.items() if scored and name.startswith(_SCORE)}
    arrays = {name: array for name, array in arrays.items() if name not in beside}
    network = TanhGaussianPolicy.from_arrays(arrays, source=str(path))
    if odd := sorted(
        set(arrays) - {f"{name}/{part}" for name in _named(network) for part in ("weight", "bias")}
    ):
        raise FileError(path, f"its array {odd[0]!r:.100} is not known")
    widths = {"obs_dim": network.obs_dim, "action_low": network.action_dim}
    said = {"obs_dim": about["obs_dim"], "action_low": len(about["action_low"])}
    for name, width in widths.items():
        if width != said[name]:
            raise FileError(
                path.with_name("policy.json"), f"'{name}' is for {said[name]}, and the network has {width}"
            )
    low, high = tuple(map(float, about["action_low"])), tuple(map(float, about["action_high"]))
    least, most = map(float, about["log_std_range"])
    pairs = None
    if scored:
        pairs = PlainPairScore.from_arrays(
            {name.removeprefix(_SCORE): array for name, array in beside.items()},
            PlainPairsAbout.model_validate(about["trust"]),
            columns=network.obs_dim + network.action_dim,
            source=str(path),
        )
        if odd := sorted(set(beside) - {_SCORE + name for name in pairs.to_arrays()}):
            raise FileError(path, f"its array {odd[0]!r:.100} is not known")
    return replace(network, log_std_range=(least, most), deterministic=True).within(low, high), pairs


def _checksum(about: Mapping[str, Any], weights: bytes) -> str:
    """SHA-256 over the weights and all that is said of them."""
    said = {name: value for name, value in about.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True, default=lambda array: array.tolist()).encode())
    digest.update(weights)
    return digest.hexdigest()


def _rows(obs: Any, width: int) -> np.ndarray:
    try:
        found = np.asarray(obs)
        if found.dtype.kind not in "biuf":  # the imaginary part of a complex number would be lost
            raise TypeError
        with np.errstate(over="ignore"):  # what is too large is infinite, and refused as that
            return found.astype(np.float32, copy=False)
    except (TypeError, ValueError):
        raise UserError(
            f"The policy takes {width} numbers for each observation, and this {type(obs).__name__} has not."
        ) from None


def _require_finite(what: str, rows: np.ndarray) -> None:
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=-1))
    if len(bad):
        raise UserError(f"The policy has no action to give: {what} is not finite (row {bad[0]}).")


def seed_folders(run: Path) -> list[Path]:
    """The policies of a run, by seed."""
    found = {path: _SEED.fullmatch(path.name) for path in (run / "policy").glob("seed-*")}
    numbered = {path: int(match[1]) for path, match in found.items() if match is not None}
    return sorted(numbered, key=lambda path: numbered[path])


def _named(policy: TanhGaussianPolicy) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    hidden = {f"fc{i}": layer for i, layer in enumerate(policy.layers)}
    return {**hidden, "last_fc": policy.mean, "last_fc_log_std": policy.log_std}
