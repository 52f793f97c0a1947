"""The complete settings of one run: frozen, written to `config.json`, and read back from it."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, model_validator

from mcetm.agents import ALGORITHMS, Algorithm, EvaluationSettings
from mcetm.data.columns import Columns
from mcetm.documents import FileError, Label, Name, Text, parse, read_bytes
from mcetm.dynamics import MODELS, ModelSettings, TransitionModel, WorldSettings
from mcetm.errors import UserError
from mcetm.pipeline.folder import compared_folder
from mcetm.settings import Fraction, Seed, from_plain, settings, to_plain, unknown_setting
from mcetm.tasks.own import UnnamedModuleError, named_class
from mcetm.tasks.registry import suggestion

FORMAT = 2


def _algorithm(given: Any) -> Algorithm:
    """Settings of an algorithm, or what plain data say of them: its `name` is the tag of the union."""
    return given if isinstance(given, Algorithm) else algorithm_of(given)


def _model(given: Any) -> Any:
    """The same of a transition model, which can also be the user's own."""
    known = given is None or isinstance(given, ModelSettings | TransitionModel)
    return given if known else model_of(given)


@settings
class Baseline:
    """Another algorithm that a run trains for its table of results."""

    label: Label
    """How the table calls it."""
    algorithm: Annotated[Any, PlainValidator(_algorithm)]
    """Its settings."""
    part: Literal["regressor"] | None = None
    """The part of the run's model that it imagines with, if it has one; None is the model itself."""


@settings
class TrainConfig:
    """All settings of one run of `mcetm train`, as its config.json holds them."""

    format: Literal[2] = FORMAT
    """Version of this file; another is refused."""
    dataset: Name = "pendulum-mixed"
    """A file, a name from `mcetm data list`, or a Minari id."""
    task: Name | None = None
    """Task the data belong to, where the source does not say."""
    columns: Columns | None = None
    """What the columns of a table are; see `mcetm.Columns`."""
    preset: Text = "quick"
    """Where the settings come from."""
    label: Label = ""
    """How tables call the algorithm; its own label where nothing else is said."""
    seeds: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 3
    """Agents trained, all in one program."""
    seed: Seed = 0
    """The first seed; models are trained with this one and shared."""
    holdout: Fraction = 0.1
    """Share of episodes that are held out."""
    models_from: Name | None = None
    """Folder of an earlier run whose models are used."""
    model: Annotated[Any, PlainValidator(_model)] = None
    """The transition model; None for an algorithm that needs none."""
    world: WorldSettings = field(default_factory=WorldSettings)
    """Reward, termination and trust region around the model."""
    algorithm: Annotated[Any, PlainValidator(_algorithm)]
    """How the policy is learned."""
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    """How policies are evaluated."""
    baselines: tuple[Baseline, ...] = ()
    """Other algorithms, trained for the table."""

    @model_validator(mode="after")
    def _fits(self) -> TrainConfig:
        if not self.label:
            object.__setattr__(self, "label", self.algorithm.label)
        _check_labels(self)
        _check_model(self)
        return self


class _LeftOut(ModelSettings):
    """Stands for a model of somebody's own that is not imported."""

    has_energy = has_density = True


def config_of(
    plain: Mapping[str, Any], *, trusted: str | None = None, import_models: bool = True
) -> TrainConfig:
    """Settings from plain data; `trusted` names the file they come from, which may not name any module.

    Without `import_models`, a model of somebody's own is left out.
    """
    content = dict(plain)
    left_out = not import_models and _is_own(content.get("model"))
    if left_out:
        content["model"] = _LeftOut()
    elif content.get("model") is not None:
        content["model"] = model_of(content["model"], trusted=trusted)
    content["algorithm"] = algorithm_of(content.get("algorithm"))
    others = content.get("baselines", ())
    if not isinstance(others, Sequence) or not all(isinstance(other, Mapping) for other in others):
        raise UserError("The setting 'baselines' should be a list of settings.")
    content["baselines"] = tuple(
        from_plain(
            Baseline,
            {**other, "algorithm": algorithm_of(other.get("algorithm"), f"baselines.{i}.algorithm")},
            f"baselines.{i}",
        )
        for i, other in enumerate(others)
    )
    return from_plain(TrainConfig, content)


def _check_labels(config: TrainConfig) -> None:
    """Every line of the table has a folder of its own."""
    labels = [config.label, *(other.label for other in config.baselines)]
    folders = [compared_folder(Path(), label) for label in labels]
    for i, folder in enumerate(folders):
        if folder in folders[:i]:
            raise UserError(f"The setting 'label' is {labels[i]!r} for two algorithms of one run.")


def _check_model(config: TrainConfig) -> None:
    """Refuse what could only fail later."""
    algorithm, model = config.algorithm, config.model
    if algorithm.model_based and model is None:
        raise UserError(f"The setting 'model' is missing: {algorithm.label} learns in a model of the world.")
    if algorithm.needs_energy and not model.has_energy:
        raise UserError(
            f"{algorithm.label} needs a model with energies, such as standard-etm, and "
            f"'{reference_of(model)}' has none."
        )
    if algorithm.model_based:
        algorithm.check_members(model)
    if algorithm.needs_density and not model.has_density:
        raise UserError(
            f"{algorithm.label} trains the likelihood of its model, so it needs the Gaussian ensemble, not "
            f"'{reference_of(model)}'."
        )


def model_of(plain: Any, place: str = "model", *, trusted: str | None = None) -> Any:
    """Settings of a transition model: one of ours, or `module:Class` of the user's own."""
    name = _name(plain, place)
    own = ":" in name
    kind = named_class(name, trusted) if own else _by_name(MODELS, name, "model")
    return _own_model(kind, name, plain, place) if own else from_plain(kind, plain, place)


def _own_model(kind: type, name: str, plain: Mapping[str, Any], place: str) -> Any:
    if not issubclass(kind, ModelSettings | TransitionModel):
        raise UserError(f"'{name}' is neither a TransitionModel nor the settings of one.")
    content = {key: value for key, value in plain.items() if key != "name"}
    if hasattr(kind, "__pydantic_fields__"):
        return from_plain(kind, content, place)
    try:
        return kind(**content)
    except (TypeError, ValueError) as error:
        raise UserError(f"'{name}' cannot be made with these settings: {error}.") from None


def algorithm_of(plain: Any, place: str = "algorithm") -> Algorithm:
    """Settings of an algorithm."""
    return from_plain(_by_name(ALGORITHMS, _name(plain, place), "algorithm"), plain, place)


def model_names() -> list[str]:
    """The transition models of this library."""
    return [name_of(kind) for kind in MODELS]


def name_of(kind: Any) -> str:
    """The name of a class of settings in files and on the command line."""
    return kind.__pydantic_fields__["name"].default


def reference_of(model: Any) -> str:
    """The name of a model's settings in files: its own, or `module:Class` for those of a user."""
    kind = type(model)
    return name_of(kind) if kind in MODELS else f"{kind.__module__}:{kind.__qualname__}"


def _check_name(model: Any) -> None:
    """Refuse what could not be read back: in a file, `name` says which model it is."""
    named = next((field for field in fields(model) if field.name == "name"), None)
    if named is not None and model.name != named.default:
        raise UserError(
            f"The model '{reference_of(model)}' has a setting called 'name', which config.json needs for the "
            "model itself; call it something else."
        )


def _is_own(plain: Any) -> bool:
    return isinstance(plain, Mapping) and ":" in str(plain.get("name"))


def _name(plain: Any, place: str) -> str:
    if not isinstance(plain, Mapping) or not isinstance(plain.get("name"), str):
        raise UserError(f"The setting '{place}' should be settings with a name.")
    return plain["name"]


def _by_name(kinds: Sequence[type], name: str, what: str) -> Any:
    known = {name_of(kind): kind for kind in kinds}
    if name not in known:
        raise UserError(f"Unknown {what} {name!r:.100}{suggestion(name, known)}")
    return known[name]


def plain_of(config: TrainConfig) -> dict[str, Any]:
    """As JSON holds it."""
    content = {name: getattr(config, name) for name in TrainConfig.__pydantic_fields__}  # pyright: ignore[reportAttributeAccessIssue]
    content["baselines"] = [
        {"label": b.label, "algorithm": to_plain(b.algorithm), "part": b.part} for b in config.baselines
    ]
    content["columns"] = None if config.columns is None else to_plain(config.columns)
    model = config.model
    for name in ("world", "algorithm", "evaluation"):
        content[name] = to_plain(content[name])
    if model is not None:
        _check_name(model)
        content["model"] = {**to_plain(model), "name": reference_of(model)}
    return content


def read_config(path: Path) -> TrainConfig:
    """The settings in a `config.json`."""
    return _settled(path, _read(path))


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a `config.json` as plain data, checked too; no model of anybody's own is imported."""
    content = _read(path)
    _settled(path, content, import_models=False)
    return content


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise UserError(f"{path.parent} is not a run: there is no config.json in it to read.")
    try:
        content = parse(path, read_bytes(path, largest=2**22))
    except FileError as error:
        raise UserError(f"{path} is not the configuration of a run: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} is not the configuration of a run.")
    if content.get("format") != FORMAT:
        found = content.get("format", 1)
        raise UserError(
            f"{path} was written by another version of mcetm (format {found!r:.20}, here {FORMAT}); "
            "train again, or go on with the version that began it."
        )
    return content


def _settled(path: Path, content: dict[str, Any], **more: Any) -> TrainConfig:
    try:
        config = config_of(content, trusted=str(path), **more)
        if "label" not in content:  # a run always says it
            raise UserError("The setting 'label' is missing.")
        return config
    except UnnamedModuleError:
        raise
    except UserError as error:
        raise UserError(f"{path} is not the configuration of a run: {error}") from None


def with_steps(config: TrainConfig, steps: int) -> TrainConfig:
    """The settings with another number of updates, of all that is trained for the table."""
    others = tuple(
        replace(other, algorithm=_with_steps(other.algorithm, steps, f"baselines.{i}.algorithm"))
        for i, other in enumerate(config.baselines)
    )
    return replace(
        config,
        algorithm=_with_steps(config.algorithm, steps, "algorithm"),
        baselines=others,
        evaluation=replace(config.evaluation, every=min(config.evaluation.every, steps)),
    )


def _with_steps(algorithm: Algorithm, steps: int, place: str) -> Algorithm:
    """An algorithm's number of updates is its learner's, where it has one."""
    plain = to_plain(algorithm)
    plain.get("learner", plain)["steps"] = steps
    return algorithm_of(plain, place)


def changed(config: TrainConfig, changes: Sequence[str]) -> TrainConfig:
    """The settings with some of them changed, each given as `path.to.setting=value`, the value as JSON."""
    return config_of(put_all(plain_of(config), changes))


def put_all(content: dict[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """The same plain data with these changes made in it, each given as `path.to.setting=value`."""
    for change in changes:
        path, sign, text = change.partition("=")
        if not sign or not path:
            raise UserError(f"'{change}' changes nothing; write it as path.to.setting=value.")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        put(content, path, value)
    return content


def put(content: dict[str, Any], path: str, value: Any) -> None:
    """Change one setting of plain data; parts of a list have numbers, from 0."""
    *folders, name = path.split(".")
    place: Any = content
    for i, folder in enumerate(folders):
        if isinstance(place, dict) and folder not in place:
            raise UserError(unknown_setting(folder, list(place), ".".join(folders[:i])))
        place = _part(place, folder)
        if not isinstance(place, dict | list):
            raise UserError(f"There is no setting '{path}': '{'.'.join(folders[: i + 1])}' has no parts.")
    if isinstance(place, list):
        if _part(place, name) is None:
            raise UserError(f"There is no setting '{path}': '{'.'.join(folders)}' has {len(place)} parts.")
        place[int(name)] = value
    else:
        place[name] = value


def get(content: Mapping[str, Any], path: str) -> Any:
    """One setting of plain data that is there."""
    return functools.reduce(operator.getitem, path.split("."), content)


def _part(place: Any, name: str) -> Any:
    """What is called so, in a list by its number from 0; None where there is no such part."""
    if isinstance(place, list):
        known = name.isascii() and name.isdecimal() and len(name) < 10 and int(name) < len(place)
        return place[int(name)] if known else None
    return place.get(name)
