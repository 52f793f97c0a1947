"""The complete settings of one run: frozen, written to `config.json`, and read back from it."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from mcetm.agents.bc import BCConfig
from mcetm.agents.iql import IQLConfig
from mcetm.agents.rollout import RolloutConfig
from mcetm.agents.sac import SACConfig
from mcetm.agents.targets import SpreadOf
from mcetm.agents.td3 import TD3Config
from mcetm.dynamics import (
    AutoencoderConfig,
    CalibrationConfig,
    EnergyConfig,
    GaussianConfig,
    HeadConfig,
    InferenceConfig,
    SupportConfig,
)
from mcetm.dynamics.calibrate import Rule
from mcetm.errors import UserError
from mcetm.pipeline.names import Algo

_T = TypeVar("_T")


@dataclass(frozen=True)
class ModelsConfig:
    """The model of the world."""

    gaussian: GaussianConfig = field(default_factory=GaussianConfig)
    autoencoder: AutoencoderConfig = field(default_factory=AutoencoderConfig)
    energy: EnergyConfig = field(default_factory=EnergyConfig)
    inference: InferenceConfig | None = None
    support: SupportConfig | None = None
    """None: energies know next states only, and not whether (s, a) is known."""
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)
    reward: HeadConfig = field(default_factory=HeadConfig)
    termination: Literal["auto", "learned", "none"] = "auto"
    """auto: the task's own rule; without a task learned, if the log has terminations."""


@dataclass(frozen=True)
class PolicyConfig:
    """How the policy is learned in it."""

    penalty: float = 1.0
    """λ."""
    truncate: bool = True
    value_floor: float | None = None
    """Worth of a truncated sample and least target; None estimates it from the log's rewards."""
    spread_of: SpreadOf = "values"
    samples: int = 10
    """N, next states of each member."""
    rollout_rule: Rule = "minimum"
    target_rule: Rule = "minimum"
    """The paper tests each sample by itself; a rare false alarm then costs every target a little."""
    sac: SACConfig = field(default_factory=SACConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    td3: TD3Config = field(default_factory=TD3Config)
    iql: IQLConfig = field(default_factory=IQLConfig)
    bc: BCConfig = field(default_factory=BCConfig)
    conservatism: float = 5.0
    """Weight of CQL's and COMBO's regulariser."""
    kit_compat: bool = False
    """CQL's log-sum-exp over three values at a time, as OfflineRL-Kit ships it."""
    adversarial: float = 3e-4
    """Weight of RAMBO's adversarial term."""
    diversity: float = 1.0
    """Weight of EDAC's regulariser."""
    evaluate_every: int = 10_000
    """Updates between evaluations."""
    episodes: int = 10


@dataclass(frozen=True)
class TrainConfig:
    """One run of `mcetm train`."""

    dataset: str = "pendulum-mixed"
    task: str | None = None
    algo: Algo = "mcetm"
    preset: str = "quick"
    seeds: int = 3
    seed: int = 0
    """The first seed; models are trained with this one and shared."""
    holdout: float = 0.1
    models_from: str | None = None
    """Folder of an earlier run whose models are used."""
    compare: bool = False
    """Also train behaviour cloning, MOBILE and MC-ETM without truncation and penalty, for the table."""
    models: ModelsConfig = field(default_factory=ModelsConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)


def to_plain(config: Any) -> dict[str, Any]:
    """As JSON would hold it."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def read_config(path: Path) -> TrainConfig:
    """The settings in a `config.json`."""
    try:
        return from_plain(TrainConfig, json.loads(path.read_text(encoding="utf-8")))
    except OSError:
        raise UserError(f"{path.parent} is not a run: there is no config.json in it to read.") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{path} is not the configuration of a run: {error}.") from None


def changed(config: TrainConfig, changes: Sequence[str]) -> TrainConfig:
    """The settings with some of them changed, each given as `path.to.setting=value`, the value as JSON."""
    content = to_plain(config)
    for change in changes:
        path, sign, text = change.partition("=")
        *folders, name = path.split(".")
        place: Any = content
        for folder in folders:
            place = place.get(folder) if isinstance(place, dict) else None
        if not sign or not isinstance(place, dict) or name not in place:
            raise UserError(f"There is no setting '{path}' to change; config.json of any run shows all.")
        try:
            place[name] = json.loads(text)
        except ValueError:
            place[name] = text
    try:
        return from_plain(TrainConfig, content)
    except ValueError as error:
        raise UserError(f"A setting cannot be changed like that: {error}.") from None


def from_plain(kind: type[_T], content: Any) -> _T:
    """A dataclass from plain data, nested ones included."""
    if not isinstance(content, dict):
        raise ValueError(f"settings are expected where there is {content!r}")
    hints = typing.get_type_hints(kind)
    unknown = set(content) - set(hints)
    if unknown:
        raise ValueError(f"unknown setting '{sorted(unknown)[0]}'")
    return kind(**{name: _value(hints[name], value) for name, value in content.items()})


def _value(hint: Any, value: Any) -> Any:
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    for option in options:
        if dataclasses.is_dataclass(option) and isinstance(value, dict):
            return from_plain(option, value)  # pyright: ignore[reportArgumentType]
        if typing.get_origin(option) is tuple and isinstance(value, list):
            return tuple(value)
        if typing.get_origin(option) is Literal and value in typing.get_args(option):
            return value
        if option in (bool, int, float, str, types.NoneType) and _is_a(option, value):
            return value
    raise ValueError(f"{value!r} is not a possible value of a setting")


def _is_a(kind: type, value: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
