"""`train_loop`: the one training loop, used by every model and every agent.

Steps run in chunks of one compiled `lax.scan` on the device, where the data lie too. Between chunks, on the
host: metrics, progress, validation, early stopping, checkpoint, and a guard against numbers that are not
finite. Step t draws its randomness from `fold_in(key, t)`, so a job resumed from a checkpoint takes the same
steps as one that was never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from mcetm.compilation import keep_programs
from mcetm.console import progress
from mcetm.nn.members import member_count, member_keys
from mcetm.numbers import number
from mcetm.training.chunk import firm_state, guard, parted, run_chunk
from mcetm.training.devices import gathered, mesh_for, spread, supplier
from mcetm.training.interrupts import interrupted_later
from mcetm.training.keeping import Job, Keeper, Saving
from mcetm.training.metrics import Metrics, plain
from mcetm.training.stopping import EarlyStopping, is_stale, no_best, updated
from mcetm.training.windows import feed


@runtime_checkable
class Step(Protocol):
    """One update: from a state and the data to the next state and metrics."""

    def __call__(self, state: Any, data: Any, *, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        """Take the step; all randomness comes from `key`. Where steps take turns, `turn` is given too."""
        ...


Between = Callable[[Any, Any], tuple[Any, dict[str, Array]]]
Callback = Callable[[dict[str, Any]], bool | None]
"""Gets the metrics of a chunk of steps as plain numbers; True ends the training."""


@dataclass(frozen=True)
class LoopResult:
    """What a job leaves: the state (the best one under early stopping), the steps taken, the metrics."""

    state: Any
    steps: int
    history: list[dict[str, Any]]


def train_loop(
    step: Step,
    state: Any,
    data: Any,
    *,
    steps: int,
    key: PRNGKeyArray,
    chunk: int = 1000,
    period: int = 1,
    between: Between | None = None,
    reads: Callable[[Any], Any] | None = None,
    validate: Callable[[Any], dict[str, Array]] | None = None,
    early_stopping: EarlyStopping | None = None,
    saving: Saving | None = None,
    callbacks: Sequence[Callback] = (),
    label: str = "training",
    watch: tuple[str, ...] = ("loss",),
    lanes: int | None = None,
) -> LoopResult:
    """Train for `steps` steps, or until early stopping or a callback says that it is enough.

    `data` is any tree of arrays; it stays on the device. Or it is `Windows` of a log, one after the other.
    `validate` sees the state between chunks and returns
    metrics; early stopping needs a `score` among them. `between` is run before each chunk, as one compiled
    program: for work that is too large for every step, such as rollouts. It uses the state's memory again, so
    a state that was given to it cannot be read any more. `reads` names the part of a state that steps do not
    change, which is then never copied. With a `period` above 1, steps take turns: each is called with `turn`,
    its number modulo the period, which is known when it is compiled. (For a branch on a number of the device,
    the host would wait at every step.) With `saving`, metrics go to `metrics.jsonl`, and a job whose folder
    holds a checkpoint goes on from there, bit for bit. `callbacks` get the metrics of each chunk; one that
    returns True ends the training after it. `watch` names the metrics beside the bar.
    Where all arrays of the state have a leading axis of so many `lanes` that learn on their own, several
    devices share these (`on_devices`).
    """
    if early_stopping is not None and validate is None:
        raise ValueError("early stopping needs a validation")
    if early_stopping is not None and between is not None:
        raise ValueError("early stopping keeps states, whose memory `between` would use again")
    keep_programs()
    state, chunk = firm_state(state), min(chunk, steps)
    best = None if early_stopping is None else no_best(state, validate)
    keeper = Keeper(saving, chunk, label)
    job, done, noted = keeper.resume(Job(state, key, best))
    mesh = mesh_for(lanes)
    job, enough = replace(job, state=spread(job.state, mesh, lanes)), False
    with (
        feed(data, supplier(mesh), chunk) as data_at,
        progress(label, steps, unit="steps", done=done) as advance,
    ):
        advance(0, note="compiling…")
        try:
            while done < steps and not enough and not is_stale(job.best, early_stopping):
                length = min(chunk, steps - done)
                began, seen = time.monotonic(), data_at(done)
                if between is not None and noted is None:
                    with interrupted_later():  # the old state is gone before the new one is here
                        job, noted = _prepared(job, between, seen)
                moving, still = parted(job.state, reads)
                moved, means, bad_step, finite = run_chunk(
                    step, moving, still, seen, job.key, jnp.asarray(done), length, period, done % period
                )
                guard(moved, {**(noted or {}), **means}, int(bad_step), finite, done, length, saving)
                following, best = eqx.combine(moved, still), job.best
                line = {"step": done + length, **(noted or {}), **means, "seconds": time.monotonic() - began}
                if validate is not None:
                    line |= (checked := validate(following))
                    guard({}, checked, -1, [], done, length, saving)
                    if best is not None and early_stopping is not None:
                        best = updated(best, following, checked["score"], early_stopping)
                job, done, noted = Job(following, job.key, best), done + length, None
                written = keeper.note(line)
                advance(length, note=_note(keeper.history, watch))
                for callback in callbacks:  # each hears of every chunk, whatever another says
                    enough |= bool(callback(written))
                keeper.save_in_time(job, done, noted)
        except KeyboardInterrupt:
            keeper.save(job, done, noted)
            raise
    keeper.save(job, done, noted)
    left = job.state if job.best is None else job.best.state
    return LoopResult(gathered(left, mesh), done, keeper.history)


def _prepared(job: Job, between: Between, data: Any) -> tuple[Job, dict[str, Any]]:
    """The job after `between`, and what that noted."""
    began = time.monotonic()
    state, found = jax.block_until_ready(_run_between((between, data), job.state))
    noted = {name: plain(value) for name, value in found.items()}
    return replace(job, state=state), {**noted, "between_seconds": time.monotonic() - began}


@eqx.filter_jit(donate="all-except-first")
def _run_between(kept: tuple[Between, Any], state: Any) -> tuple[Any, dict[str, Array]]:
    between, data = kept
    return between(state, data)


_NUMBERS = 2
"""How many metrics stand beside a bar."""


def _note(history: Sequence[Mapping[str, Any]], watch: tuple[str, ...]) -> str:
    """The first two watched metrics that there are, at their newest; members are averaged."""
    found = {}
    for name in watch:
        newest = next((line[name] for line in reversed(history[-_RECENT:]) if name in line), None)
        if newest is not None:
            found[name] = number(float(np.mean(newest)))
    return ", ".join(f"{name} {value}" for name, value in list(found.items())[:_NUMBERS])


_RECENT = 100
"""Lines in which a metric is looked for that is not noted at every step, such as a return."""


def over_members(step: Step) -> Step:
    """The same step for every member of an ensemble, whose states share a leading axis.

    Member i draws from `fold_in(key, i)`: it learns the same alone as in company.
    """

    def together(state: Any, data: Any, *, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        keys = member_keys(key, member_count(state))
        one = lambda s, k: step(s, data, key=k)  # noqa: E731
        return eqx.filter_vmap(one, in_axes=(eqx.if_array(0), 0))(state, keys)

    return together
