import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm.training import (
    DivergenceError,
    EarlyStopping,
    LoopResult,
    PartialState,
    Saving,
    loop,
    over_members,
    train_loop,
)
from mcetm.training.checkpoint import arrays_of, list_checkpoints
from tests.training import toy


def assert_equal(first: Any, second: Any) -> None:
    """Every array of two states, bit for bit."""
    a, b = arrays_of(first), arrays_of(second)
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_it_learns_and_logs() -> None:
    result = toy.run(None)
    assert result.steps == 400
    assert [line["step"] for line in result.history] == list(range(10, 401, 10))
    assert np.mean(result.history[-1]["loss"]) < 0.5 * np.mean(result.history[0]["loss"])
    assert len(result.history[0]["loss"]) == 3, "one number for each member"


def test_the_chunk_length_does_not_change_what_is_learned() -> None:
    whole, parts = (toy.run(None, steps=55, chunk=c, stop_early=False) for c in (55, 10))
    for a, b in zip(arrays_of(whole.state).values(), arrays_of(parts.state).values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_what_steps_only_read_is_not_copied() -> None:
    def step(state: Any, data: Any, *, key: Any) -> tuple[Any, dict[str, Any]]:
        return {**state, "total": state["total"] + state["table"].sum()}, {"loss": state["total"]}

    start = {"table": jnp.ones(10), "total": jnp.zeros(())}
    found = train_loop(
        step, start, None, steps=6, key=jax.random.key(0), chunk=2, reads=lambda state: state["table"]
    )
    assert found.state["table"] is start["table"]
    assert float(found.state["total"]) == 60.0


@pytest.mark.parametrize(("steps", "chunk"), [(20, 20), (17, 5), (3, 1)])
def test_steps_take_turns(steps: int, chunk: int) -> None:
    def step(state: Any, data: Any, *, key: Any, turn: int = -1) -> tuple[Any, dict[str, Any]]:
        count, total = state
        return (count + 1, total + 10**turn), {"apart": (count % 3 - turn).astype(jnp.float32)}

    start = (jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))
    found = train_loop(step, start, None, steps=steps, key=jax.random.key(0), chunk=chunk, period=3)
    assert int(found.state[0]) == steps
    assert int(found.state[1]) == sum(10 ** (i % 3) for i in range(steps))
    assert all(line["apart"] == 0.0 for line in found.history), "each step is told its number modulo 3"


def test_a_member_learns_the_same_alone_as_in_company() -> None:
    company = train_loop(
        over_members(toy.step), toy.members(3), toy.data(), steps=30, key=jax.random.key(5)
    ).state
    first = jax.tree_util.tree_map(lambda leaf: leaf[:1] if eqx.is_array(leaf) else leaf, toy.members(3))
    alone = train_loop(over_members(toy.step), first, toy.data(), steps=30, key=jax.random.key(5)).state
    for a, b in zip(arrays_of(company).values(), arrays_of(alone).values(), strict=True):
        np.testing.assert_allclose(a[:1], b, rtol=1e-5, atol=1e-6)


@pytest.mark.thorough
def test_a_killed_job_resumes_bit_for_bit(tmp_path: Path) -> None:
    steps = 1500
    command = [sys.executable, "-m", "tests.training.toy", str(tmp_path / "killed"), str(steps)]
    delays = random.Random(0)
    kills = 0
    for _ in range(2):
        before = len(list_checkpoints(tmp_path / "killed" / "checkpoints"))
        with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE) as process:
            deadline = time.monotonic() + 120
            while not list_checkpoints(tmp_path / "killed" / "checkpoints") and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(delays.uniform(0.0, 0.3) + (2.0 if before else 0.0))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
    assert kills, "at least one kill hit a running job"
    resumed, whole = toy.run(tmp_path / "killed", steps=steps), toy.run(tmp_path / "whole", steps=steps)
    assert_equal(resumed.state, whole.state)
    strip = lambda lines: [{k: v for k, v in line.items() if k != "seconds"} for line in lines]  # noqa: E731
    assert strip(resumed.history) == strip(whole.history)
    logged = (tmp_path / "killed" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in logged] == list(range(10, steps + 1, 10))


def test_a_finished_job_is_not_run_again(tmp_path: Path) -> None:
    first = toy.run(tmp_path)
    again = toy.run(tmp_path)
    assert_equal(first.state, again.state)
    assert again.steps == 400


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    toy.run(tmp_path, steps=60)
    assert [path.name for path in list_checkpoints(tmp_path / "checkpoints")] == [
        "step-000000000050.safetensors",
        "step-000000000060.safetensors",
    ]


def test_divergence_names_the_step_and_the_array_and_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    def step(state: Any, data: Any, *, key: Any) -> tuple[Any, dict[str, Any]]:
        count = state["count"] + 1
        weight = jnp.where(count == 23, jnp.nan, state["weight"])
        return {"count": count, "weight": weight}, {"loss": weight.sum()}

    state = {"count": jnp.zeros((), jnp.int32), "weight": jnp.ones(3)}
    saving = Saving(tmp_path, {}, every_seconds=0.0)
    with pytest.raises(DivergenceError, match=r"diverged at step 23: 'weight' is not finite") as caught:
        train_loop(step, state, jnp.zeros(1), steps=100, key=jax.random.key(0), chunk=10, saving=saving)
    kept = list_checkpoints(tmp_path / "checkpoints")[-1]
    assert kept.name == "step-000000000020.safetensors"
    assert str(kept) in str(caught.value)


@pytest.mark.parametrize("where", ["step", "between", "validate"])
def test_a_metric_that_is_not_finite_stops_the_training(where: str) -> None:
    """Every step's loss is finite; their mean is not. So with what is noted between chunks."""
    huge = {"loss": jnp.asarray(3e38)} if where == "step" else {"loss": jnp.asarray(1.0)}
    bad = {"noted": jnp.asarray(jnp.nan)}
    with pytest.raises(DivergenceError, match=r"in steps 1 to 5: 'metric (loss|noted)' is not finite\."):
        train_loop(
            lambda state, data, *, key: (state, huge),
            jnp.zeros(2),
            jnp.zeros(1),
            steps=10,
            key=jax.random.key(0),
            chunk=5,
            between=(lambda state, data: (state, bad)) if where == "between" else None,
            validate=(lambda state: bad) if where == "validate" else None,
        )


def test_a_checkpoint_that_a_killed_job_could_not_remove_goes_at_the_next_start(tmp_path: Path) -> None:
    toy.run(tmp_path, steps=30)
    kept = list_checkpoints(tmp_path / "checkpoints")
    (tmp_path / "checkpoints" / "step-000000000010.safetensors").write_bytes(kept[0].read_bytes())
    toy.run(tmp_path, steps=30)
    assert list_checkpoints(tmp_path / "checkpoints") == kept


def test_a_damaged_checkpoint_is_named_and_the_older_one_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = toy.run(tmp_path / "whole", steps=40)
    toy.run(tmp_path / "cut", steps=40)
    newest = list_checkpoints(tmp_path / "cut" / "checkpoints")[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    again = toy.run(tmp_path / "cut", steps=40)
    assert_equal(whole.state, again.state)
    said = capsys.readouterr().err
    assert f"The checkpoint {newest} is damaged" in said
    assert said.count("\n") == 1
    assert [line["step"] for line in again.history] == [10, 20, 30, 40]


def test_early_stopping_keeps_each_members_best() -> None:
    # Member 0 is best after 20 steps, member 1 after 40; both then get worse.
    def step(state: Any, data: Any, *, key: Any) -> tuple[Any, dict[str, Any]]:
        return {"at": state["at"] + 1.0}, {"loss": state["at"].mean()}

    def validate(state: Any) -> dict[str, Any]:
        return {"score": 1.0 + jnp.abs(state["at"] - jnp.array([20.0, 40.0]))}

    result = train_loop(
        step,
        {"at": jnp.zeros(2)},
        jnp.zeros(1),
        steps=1000,
        key=jax.random.key(0),
        chunk=10,
        validate=validate,
        early_stopping=EarlyStopping(patience=3),
    )
    assert result.state["at"].tolist() == [20.0, 40.0]
    assert result.steps == 70, "three validations after the last improvement of any member"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "needs a validation"),
        (
            {"validate": lambda _: {"score": 0.0}, "between": lambda state, _: (state, {})},
            "whose memory `between` would use again",
        ),
    ],
)
def test_early_stopping_says_what_it_needs(more: Any, words: str) -> None:
    state, key = toy.make(jax.random.key(0)), jax.random.key(0)
    with pytest.raises(ValueError, match=words):
        train_loop(toy.step, state, toy.data(), steps=1, key=key, early_stopping=EarlyStopping(), **more)


def run_with(callbacks: Any, folder: Path | None = None) -> LoopResult:
    """100 steps in chunks of 10, saved now and then or never."""
    return train_loop(
        over_members(toy.step),
        toy.members(2),
        toy.data(),
        steps=100,
        key=jax.random.key(0),
        chunk=10,
        callbacks=callbacks,
        saving=None if folder is None else Saving(folder, {}, every_seconds=1e9),
    )


def test_callbacks_get_the_metrics_of_every_chunk() -> None:
    heard: list[dict[str, Any]] = []
    result = run_with([heard.append])
    assert [line["step"] for line in heard] == list(range(10, 101, 10))
    assert heard == result.history
    json.dumps(heard)  # plain numbers, which anything can read
    assert len(heard[0]["loss"]) == 2, "one for each member"


@pytest.mark.parametrize("enough", [True, np.bool_(True)], ids=["Python's", "NumPy's"])
def test_a_callback_that_says_true_ends_the_training(enough: Any) -> None:
    heard: list[int] = []
    stop = lambda line: enough if line["step"] == 30 else None  # noqa: E731
    result = run_with([stop, lambda line: heard.append(line["step"])])
    assert result.steps == 30
    assert heard == [10, 20, 30], "the others hear of the last chunk too"


def test_a_callback_that_says_anything_else_ends_nothing() -> None:
    assert run_with([lambda _: None, lambda _: False]).steps == 100


def test_what_a_callback_ended_is_saved_and_goes_on_from_there(tmp_path: Path) -> None:
    heard: list[int] = []
    run_with([lambda line: line["step"] == 40], tmp_path / "cut")
    assert [path.name for path in list_checkpoints(tmp_path / "cut" / "checkpoints")] == [
        "step-000000000040.safetensors"
    ]
    resumed = run_with([lambda line: heard.append(line["step"])], tmp_path / "cut")
    whole = run_with((), tmp_path / "whole")
    assert_equal(resumed.state, whole.state)
    assert heard == list(range(50, 101, 10)), "what is done is not heard again"
    assert [line["step"] for line in resumed.history] == list(range(10, 101, 10))


def test_a_callback_does_not_change_what_is_learned() -> None:
    assert_equal(run_with([lambda _: None]).state, run_with(()).state)


def test_an_interruption_saves_first(tmp_path: Path) -> None:
    calls = []

    def validate(state: Any) -> dict[str, Any]:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return {}

    with pytest.raises(KeyboardInterrupt):
        train_loop(
            toy.step,
            toy.make(jax.random.key(0)),
            toy.data(),
            steps=100,
            key=jax.random.key(0),
            chunk=10,
            validate=validate,
            saving=Saving(tmp_path, {}, every_seconds=1e9),
        )
    assert [path.name for path in list_checkpoints(tmp_path / "checkpoints")] == [
        "step-000000000030.safetensors"
    ]


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_between_chunks_loses_nothing(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old state's memory is in use again before the new one is there: it must not be saved."""

    def step(state: Any, data: Any, *, key: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        moved = state[0] + state[1].mean() + jax.random.normal(key)
        return (moved, state[1], state[2] + 1.0), {"loss": state[0]}

    def between(state: Any, data: Any) -> tuple[Any, dict[str, jax.Array]]:
        return (state[0], jnp.roll(state[1], 1).at[0].set(state[0]), state[2]), {"first": state[0]}

    def run(folder: Path) -> LoopResult:
        zero = jnp.zeros(())
        start = (zero, jnp.zeros(100), zero)  # one array in two places
        saving = Saving(folder, {}, every_seconds=1e9)
        key = jax.random.key(0)
        more: Any = {"between": between, "reads": lambda state: state[1], "saving": saving}
        return train_loop(step, start, jnp.zeros(1), steps=50, chunk=10, key=key, **more)

    whole, original, calls = run(tmp_path / "whole"), loop._run_between, []

    def pressed(*given: Any) -> Any:
        calls.append(1)
        found = original(*given)
        if len(calls) == 3:
            os.kill(os.getpid(), number)
        return found

    monkeypatch.setattr(loop, "_run_between", pressed)
    # As the command line has it; whoever started the tests may have had the signal ignored.
    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "cut")
    finally:
        signal.signal(number, before)
    assert len(list_checkpoints(tmp_path / "cut" / "checkpoints")) == 1
    again = run(tmp_path / "cut")
    jax.tree_util.tree_map(np.testing.assert_array_equal, again.state, whole.state)
    lasting = lambda line: {name: v for name, v in line.items() if "seconds" not in name}  # noqa: E731
    assert list(map(lasting, again.history)) == list(map(lasting, whole.history))
    assert all("between_seconds" in line for line in again.history)
    assert len(calls) == 5, "what was imagined before the interruption is not imagined again"


def test_a_light_checkpoint_carries_its_part_where_there_is_no_exact_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A state of a small part and a large one that can be made anew."""

    def step(state: Any, data: Any, *, key: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        small, large = state
        return (small + 1.0, large + jax.random.normal(key)), {"loss": small}

    start = (jnp.zeros(2), jnp.zeros(10_000))
    light = PartialState(take=lambda state: state[0], put=lambda state, part: (part, state[1]))

    def run(steps: int) -> Any:
        saving = Saving(tmp_path, {"a": 1}, partial=light)
        return train_loop(
            step, start, jnp.zeros(1), steps=steps, chunk=5, key=jax.random.key(0), saving=saving
        )

    run(10)
    (exact,), (small,) = list_checkpoints(tmp_path / "checkpoints"), list_checkpoints(tmp_path / "light")
    assert small.stat().st_size < exact.stat().st_size / 5
    content = small.read_bytes()
    small.unlink()
    run(10)
    assert small.read_bytes() == content, "a kill between the two leaves the light one out; it is made good"
    assert run(20).state[1].std() == 0.0
    assert "light" not in capsys.readouterr().err, "the exact one is used where it is there"
    for path in list_checkpoints(tmp_path / "checkpoints"):
        path.unlink()
    result = run(30)
    assert "light checkpoint at step 20, not bit for bit" in capsys.readouterr().err
    np.testing.assert_array_equal(result.state[0], 30.0)
    assert [line["step"] for line in result.history] == list(range(5, 31, 5))
