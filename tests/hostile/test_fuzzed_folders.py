"""Files of a run changed at random: taken as what they are or refused in a sentence, never misread."""

import copy as copying
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcetm import UserError, load_policy
from mcetm.pipeline.compare import compare_runs
from mcetm.pipeline.config import plain_of, read_config
from mcetm.pipeline.results import read_seconds
from mcetm.training import MetricsFile
from mcetm.training.checkpoint import load_checkpoint, save_checkpoint
from tests.hostile.folders import POLICY, WEIGHTS, sign_policy
from tests.pipeline.runs import write_policy, write_run

few = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,  # the same cases everywhere, so that a failure is one for everybody
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=8),
    st.sampled_from(["", "..", "../x", "a\x00b", "\x1b[31m", "\ud800", "1" * 200]),
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def changed(draw: st.DrawFn, content: Any) -> Any:
    """Plain data with one to three places put to another value, taken away or added to."""
    found: Any = copying.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        place: Any = found
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            deeper = [key for key in keys if isinstance(place[key], dict | list) and place[key]]
            if not deeper or draw(st.booleans()):
                break
            place = place[draw(st.sampled_from(deeper))]
        action = draw(st.sampled_from(["put", "take", "add"]))
        if action == "add" and isinstance(place, dict):
            place[draw(st.text(max_size=6))] = draw(values)
        elif action == "add" and isinstance(place, list):
            place.append(draw(values))
        elif keys:
            key = draw(st.sampled_from(keys))
            if action == "take":
                del place[key]
            else:
                place[key] = draw(values)
    return found


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8", errors="surrogatepass")


def finite(content: Any) -> bool:
    """Whether all numbers in plain data are finite."""
    if isinstance(content, dict | list):
        return all(finite(part) for part in (content.values() if isinstance(content, dict) else content))
    return not isinstance(content, float) or math.isfinite(content)


def refused(error: UserError, path: Path) -> None:
    said = str(error)
    assert "\n" not in said
    assert path.parent.name in said or path.name in said


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fuzzed") / "run"
    folder = write_run(place, [60, 62], algo="bc", dataset="pendulum-mixed", task="pendulum", checksum="a")
    write_policy(folder / "policy" / "seed-0", "pendulum")
    return folder


@given(st.data())
@few
def test_a_policy(run: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Signed or not: what is loaded acts within finite bounds, and an unsigned change is never taken."""
    path = tmp_path_factory.mktemp("policy") / "policy.json"
    good = json.loads((run / POLICY).read_text())
    content, sign = data.draw(changed(good)), data.draw(st.booleans())
    path.with_suffix(".safetensors").write_bytes((run / WEIGHTS).read_bytes())
    write(path, content)
    if sign and isinstance(content, dict) and finite(content):
        sign_policy(path)
    try:
        policy = load_policy(path.parent)
    except UserError as error:
        return refused(error, path)
    assert sign or content == good or "checksum" not in content
    action = policy(np.ones(3))
    assert action.shape == (1,)
    assert policy.about["action_low"][0] <= action[0] <= policy.about["action_high"][0]
    return None


@given(st.binary(max_size=64), st.integers(0, 400), st.booleans())
@few
def test_weights(
    run: Path, tmp_path_factory: pytest.TempPathFactory, bytes_: bytes, place: int, sign: bool
) -> None:
    path = tmp_path_factory.mktemp("weights") / "policy.json"
    good = (run / WEIGHTS).read_bytes()
    content = good[:place] + bytes_ + good[place + len(bytes_) :]
    path.with_suffix(".safetensors").write_bytes(content)
    path.write_bytes((run / POLICY).read_bytes())
    if sign:
        sign_policy(path)
    try:
        policy = load_policy(path.parent)
    except UserError as error:
        return refused(error, path)
    assert sign or content == good
    assert np.isfinite(policy(np.zeros(3))).all()
    return None


@pytest.mark.parametrize("name", ["results.json", "config.json", "environment.json"])
@given(st.data())
@settings(few, max_examples=50)  # most are harmless, and are compared
def test_what_is_compared(
    run: Path, tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    path = run / name
    good = path.read_bytes()
    try:
        write(path, data.draw(changed(json.loads(good))))
        found = compare_runs([run])
    except UserError as error:
        return refused(error, path)
    finally:
        path.write_bytes(good)
    json.dumps(found.to_dict(), allow_nan=False)
    return None


@given(st.data())
@few
def test_settings(run: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """What is read back can be written down again, and means the same."""
    path = tmp_path_factory.mktemp("settings") / "config.json"
    content = data.draw(changed(json.loads((run / "config.json").read_text())))
    write(path, content)
    try:
        config = read_config(path)
    except UserError as error:
        return refused(error, path)
    write(path, plain_of(config))
    assert read_config(path) == config
    return None


@given(st.data())
@few
def test_metrics(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """What is read can be drawn: steps rise, and a name has one shape."""
    path = tmp_path_factory.mktemp("metrics") / "metrics.jsonl"
    good = [{"step": 10, "q": [1.0, 2.0], "return": [3.0, 4.0]}, {"step": 20, "q": [1.5, 2.5]}]
    lines = data.draw(changed(good))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), errors="surrogatepass")
    try:
        found = MetricsFile(path).read()
    except UserError as error:
        return refused(error, path)
    steps = [line["step"] for line in found]
    assert steps == sorted(set(steps))
    for name in {name for line in found for name in line}:
        drawn = np.array([line[name] for line in found if name in line], np.float64)
        assert np.isfinite(drawn).all()
    return None


@given(st.data())
@few
def test_seconds(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("seconds") / "seconds.json"
    write(path, data.draw(changed({"policy: BC": 1.5, "report": 0.25})))
    try:
        found = read_seconds(path)
    except UserError as error:
        return refused(error, path)
    assert all(0 <= value < math.inf for value in found.values())
    return None


@given(st.binary(min_size=1, max_size=32), st.integers(0, 700))
@few
def test_a_checkpoint(tmp_path_factory: pytest.TempPathFactory, bytes_: bytes, place: int) -> None:
    """No change of any bytes is ever taken, the header's included."""
    folder = tmp_path_factory.mktemp("checkpoint")
    state, config = {"weight": np.arange(6.0, dtype=np.float32)}, {"rate": 0.1}
    path = save_checkpoint(folder, state, step=30, config=config)
    good = path.read_bytes()
    content = good[:place] + bytes_ + good[place + len(bytes_) :]
    path.write_bytes(content)
    try:
        found = load_checkpoint(path, state, config=config)
    except UserError as error:
        return refused(error, path)
    # JSON has several ways to write the same; what is read is the same.
    assert found.step == 30
    np.testing.assert_array_equal(found.state["weight"], state["weight"])
    return None
