"""Settings: what cannot be is refused in one sentence, what can be survives being written down."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, get_args

import pytest

import mcetm
from mcetm import UserError
from mcetm.agents import ALGORITHMS, EvaluationSettings
from mcetm.dynamics import (
    KIT,
    MODELS,
    GaussianEnsemble,
    Langevin,
    ManifoldETM,
    SupportSettings,
    WorldSettings,
)
from mcetm.estimates import EstimateSettings
from mcetm.pipeline.config import Baseline, TrainConfig
from mcetm.settings import fields_of, from_plain, to_plain

WHOLE: tuple[type, ...] = (
    *MODELS, *ALGORITHMS, WorldSettings, EvaluationSettings, EstimateSettings, TrainConfig, Baseline
)  # fmt: skip
"""The classes of settings that people name; the others are parts of these."""


def named_in(annotation: Any) -> Iterator[type]:
    """The classes that a type is made of."""
    if parts := get_args(annotation):
        for part in parts:
            yield from named_in(part)
    elif isinstance(annotation, type):
        yield annotation


def every_class() -> list[type]:
    """All classes of settings, those that are parts of others too."""
    found: list[type] = []
    waiting = list(WHOLE)
    while waiting:
        kind = waiting.pop()
        if kind in found or not any(True for _ in fields_of(kind)):
            continue
        found.append(kind)
        waiting.extend(part for setting in fields_of(kind) for part in named_in(setting.type))
    return found


def test_parts_of_parts_are_found() -> None:
    assert {Langevin, SupportSettings, mcetm.SAC, mcetm.TD3} <= set(every_class())


@pytest.mark.parametrize("kind", every_class(), ids=lambda kind: kind.__name__)
def test_every_setting_says_what_it_is_for(kind: type) -> None:
    silent = [setting.name for setting in fields_of(kind) if not setting.text.strip()]
    assert not silent
    assert [setting.name for setting in fields_of(kind)] == [f.name for f in dataclasses.fields(kind)]


LEAST_0, LEAST_1 = "should be greater than or equal to 0", "should be greater than or equal to 1"


@pytest.mark.parametrize(
    ("kind", "content", "path", "words"),
    [
        (GaussianEnsemble, {"batch_size": 0}, ".batch_size", f"{LEAST_1}, not 0"),
        (GaussianEnsemble, {"width": 0}, ".width", f"{LEAST_1}, not 0"),
        (GaussianEnsemble, {"steps": -5}, ".steps", f"{LEAST_1}, not -5"),
        (GaussianEnsemble, {"steps": 10.5}, ".steps", "should be a valid integer, not 10.5"),
        (GaussianEnsemble, {"steps": True}, ".steps", "should be a valid integer, not True"),
        (GaussianEnsemble, {"beta": float("inf")}, ".beta", "should be less than or equal to 1, not inf"),
        (
            GaussianEnsemble,
            {"learning_rate": float("nan")},
            ".learning_rate",
            "should be a finite number, not nan",
        ),
        (GaussianEnsemble, {"elites": 9}, "", "has 9 elites of 4 members"),
        (ManifoldETM, {"regressor": {"members": 2}}, ".regressor", "has 3 elites of 2 members"),
        (ManifoldETM, {"ambient": {"steps": -5}}, ".ambient.steps", f"{LEAST_0}, not -5"),
        (
            ManifoldETM,
            {"inference": {"ambient": {"noise": -1}}},
            ".inference.ambient.noise",
            f"{LEAST_0}, not -1",
        ),
        (ManifoldETM, {"sigma": [0.1, "x"]}, ".sigma.1", "should be a valid number, not 'x'"),
        (ManifoldETM, {"kind": "flat"}, ".kind", "should be 'plain' or 'anchored', not 'flat'"),
        (mcetm.MOBILE, {"learner": {"discount": 2}}, ".learner.discount", "should be less than 1, not 2"),
        (mcetm.MOBILE, {"learner": {"discount": 1}}, ".learner.discount", "should be less than 1, not 1"),
        (mcetm.MOBILE, {"learner": {"batch_size": 0}}, ".learner.batch_size", f"{LEAST_1}, not 0"),
        (mcetm.MOBILE, {"learner": 3}, ".learner", "should be a dictionary or an instance of SAC, not 3"),
    ],
)
def test_what_cannot_be_is_refused_with_its_full_path(
    kind: type, content: Any, path: str, words: str
) -> None:
    with pytest.raises(UserError) as caught:
        from_plain(kind, content, "run.part")
    assert str(caught.value) == f"The setting 'run.part{path}' {words}."


def test_without_a_place_the_class_is_named() -> None:
    with pytest.raises(UserError, match="The setting 'GaussianEnsemble' has 9 elites of 4 members"):
        from_plain(GaussianEnsemble, {"elites": 9})
    with pytest.raises(UserError, match="The setting 'width' should be"):
        from_plain(GaussianEnsemble, {"width": 0})


@pytest.mark.parametrize(
    ("content", "path", "nearest"),
    [
        ({"widht": 3}, "widht", "width"),
        ({"regressor": {"elite": 3}}, "regressor.elite", "regressor.elites"),
        ({"inference": {"latent": {"stps": 3}}}, "inference.latent.stps", "inference.latent.steps"),
        ({"support": {"weigth": 3}}, "support.weigth", "support.weight"),
    ],
)
def test_an_unknown_setting_suggests_the_nearest(content: Any, path: str, nearest: str) -> None:
    with pytest.raises(UserError) as caught:
        from_plain(ManifoldETM, content, "model")
    assert str(caught.value) == f"There is no setting 'model.{path}'; did you mean 'model.{nearest}'?"


def test_where_nothing_is_near_all_are_listed() -> None:
    with pytest.raises(
        UserError, match=r"no setting 'ambient\.qqq'; known here: convention, first, gradient_clip"
    ):
        from_plain(ManifoldETM, {"ambient": {"qqq": 1}})


MAKE: dict[str, Any] = {"MCETM": mcetm.MCETM, "SAC": mcetm.SAC, "Langevin": Langevin}
"""Called with what no type checker would let pass."""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: GaussianEnsemble(batch_size=0),
            "'GaussianEnsemble.batch_size' should be greater",
        ),
        (lambda: GaussianEnsemble(members=3, elites=4), "GaussianEnsemble' .*elites"),
        (
            lambda: dataclasses.replace(GaussianEnsemble(), width=0),
            "'GaussianEnsemble.width' should be",
        ),
        (
            lambda: mcetm.MCETM(learner=mcetm.SAC(discount=2.0)),
            "'SAC.discount' should be less than 1",
        ),
        (
            lambda: MAKE["MCETM"](learner={"name": "sac", "width": 0}),
            "'MCETM.learner.width' should be greater",
        ),
        (lambda: MAKE["SAC"](widht=3), "no setting 'SAC.widht'; did you mean 'SAC.width'?"),
        (lambda: MAKE["Langevin"](5), "Langevin takes its settings by name"),
    ],
)
def test_the_constructor_refuses_it_too(make: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        GaussianEnsemble().width = 3  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("kind", [k for k in every_class() if k not in (TrainConfig, Baseline)])
def test_settings_are_hashable_and_survive_being_written_down(kind: type) -> None:
    made = kind()
    assert hash(made) == hash(kind())
    assert from_plain(kind, to_plain(made)) == made


def test_changed_settings_survive_too() -> None:
    changed = ManifoldETM(
        sigma=(0, 1),
        inference=None,
        regressor=KIT,
        support=SupportSettings(weight=3),
        ambient=Langevin(steps=0),
    )
    again = from_plain(ManifoldETM, to_plain(changed))
    assert again == changed
    assert hash(again) == hash(changed)
    assert isinstance(changed.sigma[0], float), "a whole number where any is meant becomes one of these"
    assert again != ManifoldETM()
