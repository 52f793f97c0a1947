"""Run folders from anybody: whatever is wrong, the command says so in a sentence and exits with 2."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from mcetm.cli import main
from mcetm.training.checkpoint import DamagedError, _checksum, _kind, arrays_of, load_checkpoint
from tests.hostile.folders import (
    GONE,
    POLICY,
    WEIGHTS,
    Damage,
    arrays,
    copy,
    cut,
    fifo,
    flip,
    folder,
    gone,
    huge,
    make_run,
    put,
    text,
)

EVALUATE = "evaluate RUN --episodes 1"
COMPARE = "compare RUN --out RUN/compared"
RESUME = "train --resume RUN"
NAN, INF = float("nan"), float("inf")
DEEP = '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"
CHECKPOINTS = ("checkpoints/step-000000001000.safetensors", "checkpoints/step-000000001200.safetensors")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("whole"))


def outcome(command: str, run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = main([part.replace("RUN", str(run)) for part in command.split()])
    said = capsys.readouterr().err.splitlines(keepends=True)
    return code, "".join(line for line in said if not line.startswith("stage "))  # what it does, not an error


def assert_refused(command: str, run: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = outcome(command, run, capsys)
    assert (code, said.count("\n")) == (2, 1), said
    assert said.startswith("mcetm: ")
    assert str(run) in said or "no-such-data" in said, "the sentence says where"
    assert re.search(words, said), said
    assert said.isprintable() or said[:-1].isprintable(), "and nothing of the file reaches the terminal raw"


# Every JSON file, broken as a whole. Words are what the sentence says of it.
BROKEN: dict[str, tuple[Any, str]] = {
    "empty": (lambda file: text(file, ""), "is not JSON|holds no|not the configuration"),
    "cut": (lambda file: cut(file, 20), "is not JSON"),
    "list": (lambda file: text(file, "[]\n"), "should be an object|not the configuration|dictionary"),
    "null": (lambda file: text(file, "null\n"), "should be an object|not the configuration|dictionary"),
    "number": (lambda file: text(file, "3\n"), "should be an object|not the configuration|dictionary"),
    "text": (lambda file: text(file, '"text"\n'), "should be an object|not the configuration|dictionary"),
    "other": (lambda file: text(file, '{"a": []}\n'), "is missing|another version|not known|should be"),
    "latin": (lambda file: text(file, b'{"a": "\xe9"}\n'), "is not UTF-8"),
    "binary": (lambda file: text(file, bytes(range(255, 0, -1))), "is not UTF-8"),
    "deep": (lambda file: text(file, DEEP + "\n"), "nested too deeply"),
    "nested": (lambda file: text(file, '{"a":' * 60 + "1" + "}" * 60 + "\n"), "nested too deeply"),
    "twice": (lambda file: text(file, '{"step": 1, "step": 1}\n'), "'step' is there twice"),
    "surrogate": (lambda file: text(file, '{"a": "\\ud800"}\n'), "not Unicode"),
    "nan": (lambda file: text(file, '{"a": NaN}\n'), "not a finite number"),
    "overflow": (lambda file: text(file, '{"a": 1e999}\n'), "not a finite number"),
    "digits": (lambda file: text(file, '{"a": ' + "9" * 5000 + "}\n"), "digits"),
    "pipe": (fifo, "plain file|holds no policy|not finished|not a run"),
    "folder": (folder, "plain file|holds no policy|not finished|not a run"),
    "huge": (huge, "at most|digits|is not"),
}
FILES = [
    (POLICY, EVALUATE),
    (POLICY, COMPARE),
    ("results.json", COMPARE),
    ("config.json", COMPARE),
    ("config.json", RESUME),
    ("environment.json", COMPARE),
    ("seconds.json", RESUME),
    ("metrics.jsonl", COMPARE),
]
HARMLESS = {("environment.json", "other"), ("metrics.jsonl", "empty"), ("metrics.jsonl", "cut")}
"""What else is in environment.json is for people; a job that was killed leaves half a line of metrics."""


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(("file", "command"), FILES, ids=lambda value: value.split()[0])
def test_a_broken_file(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, command: str, kind: str
) -> None:
    if (file, kind) in HARMLESS:
        pytest.skip("good as it is: see below")
    run = copy(whole, tmp_path)
    make, words = BROKEN[kind]
    if (file, command) == (POLICY, COMPARE) and kind in ("pipe", "folder"):
        words = "plain file"
    make(file)(run)
    assert_refused(command, run, words, capsys)


# One field of a file with another value: file, command, place, value, words.
def _fields(file: str, command: str, table: dict[str, Sequence[tuple[Any, str]]]) -> list[Any]:
    return [
        pytest.param(put(file, place, value), command, words, id=f"{command.split()[0]}-{file}-{place}-{i}")
        for place, values in table.items()
        for i, (value, words) in enumerate(values)
    ]


_WIDTHS = "different widths"
_ORDER = "not below its upper one"
POLICIES = {
    "format": [
        (0, "another version of mcetm"),
        (4, r"another version of mcetm wrote it \(format 4, here 3\)"),
        (-1, "another version of mcetm"),
        (1, "'checksum' should be None"),
        (True, "'format' should be"),
        ("2", "'format' should be"),
        (None, "'format' should be"),
        ([2], "'format' should be"),
        (GONE, "'format' is missing"),
    ],
    "kind": [("mixture", "'kind' should be"), (None, "'kind' should be"), (GONE, "'kind' is missing")],
    "obs_dim": [
        (0, "'obs_dim' should be greater"),
        (-3, "'obs_dim' should be greater"),
        (4, "has 3 'obs_mean' for 4 numbers"),
        ("3", "'obs_dim' should be a valid integer"),
        (3.0, "'obs_dim' should be a valid integer"),
        (True, "'obs_dim' should be a valid integer"),
        (10**12, "'obs_dim' should be less"),
        (GONE, "'obs_dim' is missing"),
    ],
    "action_low": [
        ([], "'action_low' .*at least 1 item"),
        ([2.0], _ORDER),
        ([3.0], _ORDER),
        (["a"], r"'action_low.0' should be a valid number"),
        ([None], r"'action_low.0' should be a valid number"),
        ([True], r"'action_low.0' should be a valid number"),
        ([NAN], "'action_low.0' is nan"),
        ([-INF], "'action_low.0' is -inf"),
        ([-1e300], "'action_low.0' should be greater"),
        ([-3e38], "'action_low.0' should be greater"),
        ([-2.0, -2.0], _WIDTHS),
        (-2.0, "'action_low' should be a valid list"),
        ([[-2.0]], "'action_low.0' should be a valid number"),
        ({}, "'action_low' should be a valid list"),
        (GONE, "'action_low' is missing"),
    ],
    "action_high": [
        ([-2.0], _ORDER),
        ([3e38], "'action_high.0' should be less"),
        ([2.0, 2.0, 2.0], _WIDTHS),
        ("2", "'action_high' should be a valid list"),
        (GONE, "'action_high' is missing"),
    ],
    "log_std_range": [
        ([], "at least 2 items"),
        ([1.0], "at least 2 items"),
        ([-5.0, 2.0, 3.0], "at most 2 items"),
        ([2.0, -5.0], _ORDER),
        ([-5.0, 1e6], "'log_std_range.1' should be less"),
        ([NAN, 2.0], "'log_std_range.0' is nan"),
        (["a", "b"], "'log_std_range.0' should be a valid number"),
        (GONE, "'log_std_range' is missing"),
    ],
    "checksum": [
        ("0" * 64, "checksum is not the one in policy.json"),
        ("0" * 63, "'checksum' should match pattern"),
        ("G" * 64, "'checksum' should match pattern"),
        (5, "'checksum' should be a valid string"),
        (None, "'checksum' should be a valid string"),
        (GONE, "'checksum' is missing"),
    ],
    "task": [
        (5, "'task' should be a valid string"),
        ([], "'task' should be a valid string"),
        ("pendulum\n", "'task' should have no control characters"),
        ("\x1b[31mpendulum", "'task' should have no control characters"),
        ("p" * 5000, "'task' should have at most 4096 characters"),
        ("nobody:reach", "there is no module 'nobody' here"),
        (None, "does not say its task"),
    ],
    "seed": [(-1, "'seed' should be greater"), ("0", "'seed' should be"), (1.5, "'seed' should be")],
    "updates": [(-1, "'updates' should be greater"), ([], "'updates' should be a valid integer")],
    "saved": [(5, "'saved' should be a valid string")],
    "algorithm": [({}, "'algorithm' should be a valid string")],
    "obs_names": [
        (["a", "b"], "has 2 'obs_names' for 3 numbers"),
        (["a", "b", "\x1b[2J"], "'obs_names' that are not names of columns"),
        (["a", "b", "b"], "'obs_names' that are not names of columns"),
        ("abc", "'obs_names' should be a valid list"),
    ],
    "action_names": [([5], "'action_names.0' should be a valid string"), ([""], "not names of columns")],
    "note": [(NAN, "'note' is nan")],
}
RESULTS = {
    "dataset": [
        (5, "'dataset' should be a valid string"),
        ("other", "'dataset' is .* in config.json and 'other' in results.json"),
        ("a\x1b[2J", "'dataset' should have no control characters"),
        (GONE, "'dataset' is missing"),
    ],
    "data_return": [
        (NAN, "'data_return' is nan"),
        ("many", "'data_return' should be a valid number"),
        (1e300, "'data_return' should be less"),
        (None, "'data_return' should be a valid number"),
    ],
    "seeds": [
        ([], "at least 1 item"),
        ([0, 0], "has a seed twice"),
        ([0], "one return of behaviour cloning for each of 1 seeds"),
        ([3, 4], r"'seeds' is \[0, 1\] in config.json and \[3, 4\] in results.json"),
        ([0, -1], "'seeds.1' should be greater"),
        ([0, "1"], "'seeds.1' should be a valid integer"),
        (2, "'seeds' should be a valid list"),
        ([0, True], "'seeds.1' should be a valid integer"),
    ],
    "algorithms": [
        ({}, "at least 1 item"),
        ([], "'algorithms' should be a valid dictionary"),
        ({"behaviour cloning": None}, "has no returns to compare"),
        ({"other": {"returns": [1.0, 2.0]}}, "'label' is 'behaviour cloning' in config.json"),
        ({"../../out": {"returns": [1.0, 2.0]}}, "no slashes"),
        ({"..": {"returns": [1.0, 2.0]}}, "no slashes"),
        ({"": {"returns": [1.0, 2.0]}}, "at least 1 character"),
        ({"a\nb": {"returns": [1.0, 2.0]}}, "no control characters"),
        ({"a" * 300: {"returns": [1.0, 2.0]}}, "at most 100 characters"),
        ({"behaviour cloning": 5}, "should be an object"),
        ({"behaviour cloning": {}}, "returns' is missing"),
    ],
    "algorithms/behaviour cloning/returns": [
        ([], "at least 1 item"),
        ([1.0], "needs one return|has the mean"),
        ([1.0, 2.0, 3.0], "needs one return|mean"),
        (["a", "b"], "should be a valid number"),
        ([None, None], "should be a valid number"),
        ([[1.0], [2.0]], "should be a valid number"),
        ([1e300, -1e300], "should be (less|greater)"),
        ([NAN, 1.0], "is nan"),
        ([1.0, 2.0], "has the mean"),
        (5, "should be a valid list"),
    ],
    "algorithms/behaviour cloning/mean": [(0.0, "has the mean 0"), ("a", "should be a valid number")],
    "algorithms/behaviour cloning/std": [("a", "should be a valid number")],
    "algorithms/behaviour cloning/score": [
        (0.0, "scored with other reference returns"),
        ("a", "should be a valid number"),
    ],
    "algorithms/behaviour cloning/diagnosis": [(5, "should be a valid dictionary")],
    "algorithms/behaviour cloning/more": [(5, "more' is not known there")],
    "more": [(5, "'more' is not known there")],
}
CONFIGS = {
    "format": [(1, "another version"), (3, "another version"), ("2", "another version"), (None, "another")],
    "seeds": [(0, "'seeds' should be greater"), ("2", "'seeds'"), (10**6, "'seeds'"), (2.0, "'seeds'")],
    "seed": [(-1, "'seed'"), (2**31, "'seed'"), (None, "'seed'")],
    "holdout": [(0.0, "'holdout'"), (1.0, "'holdout'"), ("x", "'holdout'"), (NAN, "not a finite number")],
    "label": [
        ("../../out", "'label' should have letters and no slashes"),
        ("a\\b", "no slashes"),
        ("..", "no slashes"),
        ("", "'label'"),
        ("a\nb", "no control characters"),
        (5, "'label' should be a valid string"),
        (GONE, "'label' is missing"),
    ],
    "dataset": [
        (5, "'dataset' should be a valid string"),
        ("", "'dataset'"),
        ("a\x00b", "'dataset' should have no control characters"),
    ],
    "task": [(5, "'task'"), ("", "'task'")],
    "models_from": [(5, "'models_from'"), ("a\x00b", "'models_from'")],
    "model": [([], "'model' should be settings"), ({"name": "gausian"}, "did you mean 'gaussian'")],
    "world": [([], "'world'"), ({"x": 1}, "no setting 'world.x'"), (None, "'world'")],
    "algorithm": [
        (GONE, "'algorithm' should be settings with a name"),
        ({"name": "bcc"}, "Unknown algorithm 'bcc'"),
        ({"name": ["bc"]}, "'algorithm' should be settings with a name"),
        ({"name": "sac\x1b[31m"}, r"Unknown algorithm 'sac\\x1b\[31m'"),
        ({"name": "cql", "learner": {"discount": 1.0}}, "discount' should be less than 1"),
        ({"name": "mopo"}, "'model' is missing"),
    ],
    "algorithm/steps": [(0, "steps"), (-5, "steps"), ("x", "steps"), (10**12, "steps"), (1.5, "steps")],
    "algorithm/width": [(0, "width"), (True, "width"), (10**10, "width")],
    "algorithm/learning_rate": [(0.0, "learning_rate"), (-1.0, "learning_rate"), ("a", "learning_rate")],
    "algorithm/sampled": [(1, "sampled"), ("yes", "sampled")],
    "algorithm/x\x1b[31m": [(1, r"no setting 'algorithm.x\\x1b\[31m'")],
    "evaluation/episodes": [(0, "episodes"), (10**9, "episodes"), ("1", "episodes")],
    "evaluation/every": [(0, "every"), (-1, "every")],
    "baselines": [
        (3, "list of settings"),
        ([3], "list of settings"),
        ([{"label": "x"}], "'baselines.0.algorithm' should be settings"),
        ([{"label": "../x", "algorithm": {"name": "bc"}}], "no slashes"),
        ([{"label": "Behaviour, cloning", "algorithm": {"name": "bc"}}], "for two algorithms"),
        ([{"label": "x", "algorithm": {"name": "bc"}, "part": 5}], "'baselines.0.part'"),
    ],
    "more": [(5, "no setting 'more'")],
}
OTHERS = [
    *_fields(
        "environment.json",
        COMPARE,
        {"dataset_checksum": [(5, "'dataset_checksum'"), ("x", "'dataset_checksum'"), ([], "checksum'")]},
    ),
    *_fields(
        "seconds.json",
        RESUME,
        {
            "report": [
                ("long", "'report' should be a valid number"),
                (-1, "'report' should be greater"),
                (NAN, "nan"),
            ],
            "a\x1b[31m": [(1.0, "no control characters")],
        },
    ),
    *_fields("config.json", COMPARE, {"seeds": [(3, "'seeds' is .* in config.json and")]}),
    *_fields(
        "config.json",
        RESUME,
        {
            "seeds": [(3, "belongs to another configuration: 'seeds'")],
            "algorithm/steps": [(1300, "belongs to another configuration: 'steps' was 1200 and is now 1300")],
            "dataset": [("no-such-data", "Unknown dataset|There is no file|no-such-data")],
            "task": [("nobody:reach", "there is no module 'nobody'")],
            "model": [({"name": "nobody:Model"}, "there is no module 'nobody'")],
        },
    ),
]
LINES = {
    "step twice": ('{"step": 1}\n{"step": 1}\n', "line 2: 'step' is not above"),
    "step back": ('{"step": 5}\n{"step": 1}\n', "line 2: 'step' is not above"),
    "step zero": ('{"step": 0}\n', "line 1: 'step' should be greater"),
    "step text": ('{"step": "1"}\n', "line 1: 'step' should be a valid integer"),
    "step missing": ('{"loss": 1}\n', "line 1: 'step' is missing"),
    "step fraction": ('{"step": 1.5}\n', "line 1: 'step' should be a valid integer"),
    "a text": ('{"step": 1, "loss": "low"}\n', "line 1: 'loss' should be a number"),
    "a null": ('{"step": 1, "loss": null}\n', "line 1: 'loss' should be a number"),
    "an object": ('{"step": 1, "loss": {"a": 1}}\n', "line 1: 'loss' should be a number"),
    "a truth": ('{"step": 1, "loss": [true]}\n', "line 1: 'loss' should be a number"),
    "ragged": ('{"step": 1, "loss": [[1], [1, 2]]}\n', "line 1: 'loss' should be a number"),
    "empty list": ('{"step": 1, "loss": []}\n', "line 1: 'loss' should be a number"),
    "other width": (
        '{"step": 1, "return": [1, 2]}\n{"step": 2, "return": [1]}\n',
        "line 2: 'return' is not as long as in lines before",
    ),
    "infinite": ('{"step": 1, "loss": [1, Infinity]}\n', "line 1: 'loss.1' is inf"),
    "escape": ('{"step": 1, "a\\u001b[31m": 1}\n', "no control characters"),
    "blank line": ('{"step": 1}\n\n{"step": 2}\n', "line 2: it is not JSON"),
    "broken inside": ('{"step": 1}\n{"st\n{"step": 2}\n', "line 2: it is not JSON"),
}


def _transposed(found: dict[str, Any]) -> None:
    found["fc0/weight"] = found["fc0/weight"].T


def _not_a_number(found: dict[str, Any]) -> None:
    found["last_fc/bias"][0] = np.nan


def _doubled(found: dict[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([a, a]) if name.startswith("last") else a for name, a in found.items()}


WEIGHT_CASES = [
    (gone(WEIGHTS), "cannot be read"),
    (text(WEIGHTS, b""), "checksum"),
    (text(WEIGHTS, b"nonsense" * 10), "checksum"),
    (cut(WEIGHTS, 200), "checksum"),
    (flip(WEIGHTS, -1), "checksum"),
    (flip(WEIGHTS, 20), "checksum"),
    (fifo(WEIGHTS), "not a plain file"),
    (folder(WEIGHTS), "not a plain file"),
    (lambda run: shutil.copy(run / WEIGHTS.replace("0", "1"), run / WEIGHTS), "of another policy"),
    (arrays(_not_a_number), "'last_fc' holds NaN or infinity"),
    (arrays(_transposed), "not a tanh-Gaussian policy|has shapes"),
    (arrays(lambda found: {**found, "more": np.zeros(1, np.float32)}), "'more' is not known"),
    (arrays(lambda found: {n: a for n, a in found.items() if n != "fc0/bias"}), "it has no array 'fc0/bias'"),
    (arrays(lambda found: {n: a.astype(np.float16) for n, a in found.items()}), "float16, not float32"),
    (arrays(lambda found: {n: a.astype(np.int32) for n, a in found.items()}), "int32, not float32"),
    (arrays(lambda found: {n: a.ravel() for n, a in found.items()}), "has shapes"),
    (arrays(lambda found: {"nothing": np.zeros(1, np.float32)}), "it has no array"),
    (arrays(_doubled), "'action_low' is for 1, and the network has 2"),
]  # fmt: skip
CASES = [
    *_fields(POLICY, EVALUATE, POLICIES),
    *_fields("results.json", COMPARE, RESULTS),
    *_fields("config.json", RESUME, CONFIGS),
    *OTHERS,
    *(pytest.param(text("metrics.jsonl", t), COMPARE, w, id=f"metrics-{n}") for n, (t, w) in LINES.items()),
    *(pytest.param(make, EVALUATE, words, id=f"weights-{i}") for i, (make, words) in enumerate(WEIGHT_CASES)),
    *(
        pytest.param(put(POLICY, place, value, sign=False), EVALUATE, "checksum", id=f"unsigned-{place}")
        for place, value in {
            "task": "hopper",
            "action_low": [-1.0],
            "action_high": [1.5],
            "log_std_range": [-5.0, 1.0],
            "seed": 5,
            "saved": "yesterday",
            "more": 1,
        }.items()
    ),
    pytest.param(put(POLICY, "task", "hopper"), EVALUATE.replace("RUN", "RUN/policy/seed-0", 1),
                 "observations of width 3, and those of 'hopper' have 11", id="other task"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "command", "words"), CASES)
def test_a_field_that_cannot_be(
    whole: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Damage,
    command: str,
    words: str,
) -> None:
    run = copy(whole, tmp_path)
    damage(run)
    if "width 3" in words:  # this one is about two things that are each good
        assert outcome(command, run, capsys)[0] == 2
    else:
        assert_refused(command, run, words, capsys)


OPTIONS = {
    "train --steps 0": "--steps must be at least 1",
    "train --steps -5": "--steps must be at least 1",
    "train --steps 1000000000000": "steps' should be less than or equal to 1000000000",
    "train --algo bc --steps 1000000000000": "'algorithm.steps' should be less",
    "train --seeds 0": "--seeds must be at least 1",
    "train --seeds 100000000": "'seeds' should be less than or equal to 10000",
    "train --seed -1": "'seed' should be greater",
    "train --seed 99999999999": "'seed' should be less",
    "train --set algorithm.learner.discount=1": "discount' should be less than 1",
    "train --set algorithm.learner.discount=1.5": "discount' should be less than 1",
    "train --set algorithm.learner.discount=-0.1": "discount' should be greater",
    "train --set algorithm.learner.discount=NaN": "discount'",
    "train --set algorithm.learner.width=0": "width' should be greater",
    "train --set algorithm.learner.width=1e3": "width' should be a valid integer",
    "train --set algorithm.learner.batch_size=-1": "batch_size' should be greater",
    "train --set algorithm.rollout.real_share=2": "real_share' should be less",
    "train --set algorithm.rollout.horizon=0": "horizon' should be greater",
    "train --set algorithm.rollout.memory=0": "memory' should be greater",
    "train --set model.members=0": "members' should be greater",
    "train --set seeds=0": "'seeds' should be greater",
    "train --set evaluation.episodes=1000000000": "episodes' should be less than or equal to 100000",
    "train --set algorithm.learner.width=1000000": "'algorithm.learner.width' is 1,000,000, and with that",
    "train --set algorithm.learner.depth=100000": "'algorithm.learner.depth' should be at most 1,000",
    "train --set algorithm.learner.critics=1000000000": "'algorithm.learner.critics' is 1,000,000,000",
    "train --set algorithm.rollout.batch=1000000000": "imagined experience would take at least",
    "train --set algorithm.rollout.retain=1000000000": "'algorithm.rollout.retain' is 1,000,000,000",
    "train --set algorithm.samples=1000000000 model.members=1000000000": "'model.members' is 1,000,000,000",
    "train --set model.width=1000000000": "'model.width' is 1,000,000,000",
    "train --set model.trunk=1000000": "'model.trunk' should be at most 1,000",
    "train --set model.count=1000000000": "'model.count' is 1,000,000,000, and with that a minibatch",
    "train --set model.regressor.batch_size=1000000000": "'model.regressor.batch_size' is 1,000,000,000",
    "train --set model.autoencoder.latent_dim=1000000000": "'model.autoencoder.latent_dim' is 1,000,000,000",
    "train --set world.reward.width=1000000": "'world.reward.width' is 1,000,000",
    "train --set world.calibration.samples=1000000000": "the next states of one row would take at least",
    "train --algo bc --set algorithm.width=1000000": "'algorithm.width' is 1,000,000",
    "train --set label=../x": "no slashes",
    "train --set holdout=Infinity": "'holdout'",
    "train --set format=3": "'format'",
    "train --set algorithm.name=nobody": "Unknown algorithm 'nobody'",
    "train --set =1": "changes nothing",
    "train --set algorithm..penalty=1": "no setting 'algorithm.'",
    "train --set algorithm.=1": "no setting 'algorithm.'",
    "train --set algorithm.__dict__=1": "no setting 'algorithm.__dict__'",
    "train --set baselines=[null]": "'baselines' should be a list of settings",
    "train --set baselines.7=1": "'baselines' has 3 parts",
    'train --set model={"name":"os:system"}': "There is no class",
    'train --set model={"name":":"}': "Cannot import ''",
    "train --set algorithm.learner.width=null": "width' should be a valid integer",
    "train --set algorithm.penalty=1e400": "'algorithm.penalty' should be a finite number",
    "train --set label=\u202e": "'label' should have no control characters",
    "train --set world=null": "'world'",
    "train --set models_from=/nowhere": "/nowhere holds no models",
    "train --set a.b.c=1": "no setting 'a'",
    "train --algo mopo --set algorithm.rollout.memory=1e-9": "'algorithm.rollout.memory' allows 1e-09 GB",
    "train --model diffusion --set model.sampler_steps=10000000000": "'model.sampler_steps' should be",
    "study benchmark --plan small --jobs 0": "'BenchmarkStudy.jobs' should be greater",
    "study benchmark --plan small --minutes nan": "'BenchmarkStudy.minutes' should be a finite number",
    "trust RUN/policy/seed-1 RUN/../log.npz": "policy/seed-1 has no score of pairs",
    "study didactic --seeds 0": "'DidacticStudy.seeds' should be greater",
    "study landscape --seed -1": "'LandscapeStudy.seed' should be greater",
    "study trust --logs x --seeds 0": "'TrustStudy.seeds' should be greater",
    "bench sampling --seconds nan": "'Bench.seconds' should be a finite number",
    "train --set seeds": "changes nothing",
    f"train --set label={'[' * 5000}": "'label'",
    "train --task .helper:x": "Cannot import '.helper': write the full name",
    "train --task ./helper.py:x": "Cannot import './helper.py'",
    "train --task nobody:x": "Cannot import 'nobody': there is no such module here",
    "train --task :x": "Unknown task ':x'",
    "evaluate RUN --episodes 0": "Episodes must be at least 1 and at most 100,000",
    "evaluate RUN --episodes 100000001": "Episodes must be at least 1 and at most 100,000",
    "evaluate RUN --seed -1": "'seed' should be a whole number from 0",
    "evaluate RUN --task hopper": "observations of width 3",
    "evaluate RUN --task pendulm": "did you mean 'pendulum'",
    "evaluate RUN/nothing": "holds no policy",
    "compare RUN RUN": "leave one out",
    "compare RUN/policy": "is not a run",
    "train --resume RUN/policy": "is not a run",
    "train --resume RUN --steps 7": "was begun for 1200 updates",
    "train --resume RUN --seeds 3": "--seeds cannot go with --resume",
    "train --algo bc --out RUN/policy": "is not empty and not a run",
    "train --algo bc --dataset RUN/../log.npz --out RUN": "holds a run with other settings",
    "train --models RUN": "holds no models of an earlier run",
}


@pytest.mark.parametrize("command", OPTIONS)
def test_an_option_that_cannot_be(
    whole: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("mcetm.pipeline.source.load_dataset", lambda source, **_: mcetm_log(whole))
    monkeypatch.setattr("mcetm.training.sizes.free_memory", lambda: 5 * 10**9)  # wherever this runs
    before = sorted(whole.rglob("*"))
    code, said = outcome(command, whole, capsys)
    assert (code, said.count("\n")) == (2, 1), said
    assert OPTIONS[command] in said
    assert sorted(whole.rglob("*")) == before, "nothing half-written stays"


def mcetm_log(run: Path) -> Any:
    """The log of the run, in place of one that would have to be collected."""
    import mcetm

    return mcetm.load_dataset(str(run.parent / "log.npz"))


# Checkpoints.


def signed_anew(run: Path, change: Any) -> None:
    """Change the header of the newest checkpoint, and sign it as its writer would."""
    from safetensors import safe_open
    from safetensors.numpy import save

    path = run / CHECKPOINTS[1]
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["mcetm"])
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(header, stored)
    said = {name: value for name, value in header.items() if name != "checksum"}
    if "checksum" in header:
        header["checksum"] = _checksum(stored, said)
    path.write_bytes(save(stored, metadata={"mcetm": json.dumps(header)}))


HEADERS = {
    "step": lambda header, stored: header.update(step=1000),
    "no step": lambda header, stored: header.pop("step"),
    "negative step": lambda header, stored: header.update(step=-1),
    "text for a step": lambda header, stored: header.update(step="1200"),
    "no checksum": lambda header, stored: header.pop("checksum"),
    "more": lambda header, stored: header.update(more=1),
    "keys": lambda header, stored: header.update(keys=[]),
    "config": lambda header, stored: header.update(config=5),
    "noted": lambda header, stored: header.update(extra={"noted": {"q": "x"}}),
    "extra": lambda header, stored: header.update(extra=None),
    "format text": lambda header, stored: header.update(format="2"),
}
DAMAGED: dict[str, Any] = {
    **{name: lambda run, change=change: signed_anew(run, change) for name, change in HEADERS.items()},
    "flipped byte": flip(CHECKPOINTS[1], -3),
    "flipped header": flip(CHECKPOINTS[1], 60),
    "cut": cut(CHECKPOINTS[1], 900),
    "empty": text(CHECKPOINTS[1], b""),
    "nonsense": text(CHECKPOINTS[1], b"nonsense" * 99),
    "older one's content": lambda run: shutil.copy(run / CHECKPOINTS[0], run / CHECKPOINTS[1]),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_checkpoint_is_known(whole: Path, tmp_path: Path, kind: str) -> None:
    run = copy(whole, tmp_path)
    DAMAGED[kind](run)
    with pytest.raises(DamagedError) as refused:
        load_checkpoint(run / CHECKPOINTS[1], {}, config={})
    assert str(run / CHECKPOINTS[1]) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", ["step", "flipped byte", "cut"])
def test_a_damaged_checkpoint_falls_back_to_the_older_one(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    run = copy(whole, tmp_path)
    DAMAGED[kind](run)
    code, said = outcome(RESUME, run, capsys)
    assert code == 0
    assert said.count("\n") == 1
    assert "damaged" in said
    assert "Going on from an older one." in said
    for seed in (0, 1):
        file = f"policy/seed-{seed}/policy.safetensors"
        assert (run / file).read_bytes() == (whole / file).read_bytes(), "bit for bit"
    assert load_checkpoint_of(run) == load_checkpoint_of(whole), "and mended"


def load_checkpoint_of(run: Path) -> list[bytes]:
    """The arrays of the newest checkpoint."""
    stored = load_file(run / CHECKPOINTS[1])
    return [stored[name].tobytes() for name in sorted(stored)]


REFUSED = {
    "both damaged": (
        lambda run: [flip(file, -3)(run) for file in CHECKPOINTS],
        "its checksum does not match",
    ),
    "another version": (
        lambda run: signed_anew(run, lambda header, stored: header.update(format=3)),
        r"another version of mcetm \(format 3\)",
    ),
    "another configuration": (
        lambda run: signed_anew(run, lambda header, stored: header["config"].update(width=9)),
        "another configuration: 'width' was 9 and is now 8",
    ),
    "another array": (
        lambda run: signed_anew(run, lambda header, stored: stored.update(more=np.zeros(1, np.float32))),
        "array 'more' is in only one",
    ),
    "another shape": (
        lambda run: signed_anew(
            run, lambda header, stored: stored.update({n: a[None] for n, a in stored.items()})
        ),
        "another configuration: array",
    ),
    "no key": (
        lambda run: signed_anew(run, lambda header, stored: header.update(keys={})),
        "is another kind of key",
    ),
    "a pipe": (fifo(CHECKPOINTS[1]), "not a plain file"),
    "a folder": (folder(CHECKPOINTS[1]), "not a plain file"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_checkpoint_that_cannot_be_used(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    run = copy(whole, tmp_path)
    damage, words = REFUSED[kind]
    damage(run)
    assert_refused(RESUME, run, words, capsys)


# What is good stays good.
GOOD: dict[str, tuple[Damage, str]] = {
    "untouched": (lambda run: None, EVALUATE),
    "more about a policy": (put(POLICY, "note", {"by": "me"}), EVALUATE),
    "half a line of metrics": (lambda run: _append(run / "metrics.jsonl", '{"st'), RESUME),
    "no metrics": (gone("metrics.jsonl"), RESUME),
    "no timings": (gone("seconds.json"), RESUME),
    "no environment": (gone("environment.json"), COMPARE),
    "a model of one's own": (put("config.json", "model", {"name": "nobody:Model"}), COMPARE),
    "what a killed writer left": (lambda run: _leave(run), RESUME),
}


def _append(path: Path, content: str) -> None:
    with path.open("a") as file:
        file.write(content)


def _leave(run: Path) -> None:
    for name in (".report.html.some-host.1.0a1b2c3d.partial", "policy/.x.host.99.00000000.partial"):
        (run / name).write_text("half")


@pytest.mark.parametrize("kind", GOOD)
def test_what_is_good_is_taken(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    run = copy(whole, tmp_path)
    damage, command = GOOD[kind]
    damage(run)
    code, said = outcome(command, run, capsys)
    assert (code, said) == (0, "")
    assert not list(run.rglob("*.partial"))


def _as_before(run: Path) -> None:
    """Files as they were written before policies had a checksum, and checkpoints one over their header."""

    def older(header: dict[str, Any], stored: dict[str, Any]) -> None:
        header["format"] = 1

    signed_anew(run, older)
    from safetensors import safe_open
    from safetensors.numpy import save

    path = run / CHECKPOINTS[1]
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["mcetm"])
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    path.write_bytes(
        save(stored, metadata={"mcetm": json.dumps({**header, "checksum": _checksum(stored, {})})})
    )
    for policy in (run / "policy").glob("seed-*/policy.json"):
        content = json.loads(policy.read_text())
        del content["checksum"]
        policy.write_text(json.dumps({**content, "format": 1}))


@pytest.mark.parametrize("command", [EVALUATE, RESUME])
def test_what_was_written_before_there_were_checksums_is_read(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    run = copy(whole, tmp_path)
    _as_before(run)
    assert outcome(command, run, capsys) == (0, "")


def test_a_key_is_known_by_its_kind() -> None:
    import jax

    found = {
        name: _kind(leaf) for name, leaf in arrays_of({"a": jax.random.key(0), "b": np.zeros(1)}).items()
    }
    assert found["b"] == ""
    assert found["a"].startswith("prng-key:")
