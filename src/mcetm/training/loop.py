"""`train_loop`: the one training loop, used by every model and every agent.

Steps run in chunks of one compiled `lax.scan` on the device, where the data lie too. Between chunks, on the
host: metrics, progress, validation, early stopping, checkpoint, and a guard against numbers that are not
finite. Step t draws its randomness from `fold_in(key, t)`, so a job resumed from a checkpoint takes the same
steps as one that was never interrupted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from mcetm.compilation import keep_programs
from mcetm.console import progress
from mcetm.errors import UserError
from mcetm.nn.members import member_count, member_keys
from mcetm.numbers import number
from mcetm.settings import Positive, Weight, settings
from mcetm.training.checkpoint import (
    Checkpoint,
    arrays_of,
    checkpoint_path,
    list_checkpoints,
    load_newest,
    remove_old,
    save_checkpoint,
)
from mcetm.training.interrupts import interrupted_later
from mcetm.training.metrics import Metrics, MetricsFile, mean_over_steps, plain


@runtime_checkable
class Step(Protocol):
    """One update: from a state and the data to the next state and metrics."""

    def __call__(self, state: Any, data: Any, *, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        """Take the step; all randomness comes from `key`. Where steps take turns, `turn` is given too."""
        ...


Between = Callable[[Any, Any], tuple[Any, dict[str, Array]]]
Callback = Callable[[dict[str, Any]], bool | None]
"""Gets the metrics of a chunk of steps as plain numbers; True ends the training."""


class DivergenceError(UserError):
    """Training met a number that is not finite; says the step and the array."""


@settings
class EarlyStopping:
    """Stop when the validation score (lower is better) has not improved for a while; keep the best state.

    With one score per member each member keeps its own best, and the wait counts while none improves.
    """

    patience: Positive = 5
    """Validations without improvement after which training stops."""
    improvement: Weight = 0.01
    """Relative improvement that counts."""


@dataclass(frozen=True)
class PartialState:
    """The part of a state that is worth carrying to another machine; the rest can be made anew."""

    take: Callable[[Any], Any]
    """The part, from a state."""
    put: Callable[[Any, Any], Any]
    """A fresh state with the part in it."""


@dataclass(frozen=True)
class Saving:
    """Where a job keeps its metrics and checkpoints, and how often it saves."""

    folder: Path
    config: Mapping[str, Any]
    """Everything the result depends on; a checkpoint of another configuration is refused."""
    every_seconds: float = 30.0
    """Least time between saves; 0 saves after every chunk. A large state waits longer."""
    keep: int = 2
    partial: PartialState | None = None
    """Keep a light checkpoint beside each exact one; it is used where there is no exact one."""

    def pause(self, cost: float) -> float:
        """Seconds to wait after a save that took `cost`: a twentieth of the time is enough for saving."""
        return max(self.every_seconds, 20.0 * cost) if self.every_seconds else 0.0

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.folder / "checkpoints"

    @property
    def light_checkpoints(self) -> Path:
        """The folder of the light ones, of which the newest is kept."""
        return self.folder / "light"


@dataclass(frozen=True)
class LoopResult:
    """What a job leaves: the state (the best one under early stopping), the steps taken, the metrics."""

    state: Any
    steps: int
    history: list[dict[str, Any]]


class _Best(eqx.Module):
    """The best state so far, its score, and how many validations ago it was found."""

    state: Any
    score: Float[Array, ...]
    stale: Int[Array, ""]


class _Job(eqx.Module):
    """All that a checkpoint must hold."""

    state: Any
    key: PRNGKeyArray
    best: _Best | None


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
) -> LoopResult:
    """Train for `steps` steps, or until early stopping or a callback says that it is enough.

    `data` is any tree of arrays; it stays on the device. `validate` sees the state between chunks and returns
    metrics; early stopping needs a `score` among them. `between` is run before each chunk, as one compiled
    program: for work that is too large for every step, such as rollouts. It uses the state's memory again, so
    a state that was given to it cannot be read any more. `reads` names the part of a state that steps do not
    change, which is then never copied. With a `period` above 1, steps take turns: each is called with `turn`,
    its number modulo the period, which is known when it is compiled. (For a branch on a number of the device,
    the host would wait at every step.) With `saving`, metrics go to `metrics.jsonl`, and a job whose folder
    holds a checkpoint goes on from there, bit for bit. `callbacks` get the metrics of each chunk; one that
    returns True ends the training after it. `watch` names the metrics beside the bar.
    """
    if early_stopping is not None and validate is None:
        raise ValueError("early stopping needs a validation")
    if early_stopping is not None and between is not None:
        raise ValueError("early stopping keeps states, whose memory `between` would use again")
    keep_programs()
    state, chunk = _firm(state), min(chunk, steps)
    best = None if early_stopping is None else _no_best(state, validate)
    keeper = _Keeper(saving, chunk, label)
    job, done, noted = keeper.resume(_Job(state, key, best))
    enough = False
    with progress(label, steps, unit="steps", done=done) as advance:
        advance(0, note="compiling…")
        try:
            while done < steps and not enough and not _stale(job.best, early_stopping):
                length = min(chunk, steps - done)
                began = time.monotonic()
                if between is not None and noted is None:
                    with interrupted_later():  # the old state is gone before the new one is here
                        job, noted = _prepared(job, between, data)
                moving, still = _parted(job.state, reads)
                moved, means, bad_step, finite = _run_chunk(
                    step, moving, still, data, job.key, jnp.asarray(done), length, period, done % period
                )
                _guard(moved, {**(noted or {}), **means}, int(bad_step), finite, done, length, saving)
                following, best = eqx.combine(moved, still), job.best
                line = {"step": done + length, **(noted or {}), **means, "seconds": time.monotonic() - began}
                if validate is not None:
                    line |= (checked := validate(following))
                    _guard({}, checked, -1, [], done, length, saving)
                    if best is not None and early_stopping is not None:
                        best = _updated(best, following, checked["score"], early_stopping)
                job, done, noted = _Job(following, job.key, best), done + length, None
                written = keeper.note(line)
                advance(length, note=_note(keeper.history, watch))
                for callback in callbacks:  # each hears of every chunk, whatever another says
                    enough |= bool(callback(written))
                keeper.save_in_time(job, done, noted)
        except KeyboardInterrupt:
            keeper.save(job, done, noted)
            raise
    keeper.save(job, done, noted)
    return LoopResult(job.state if job.best is None else job.best.state, done, keeper.history)


class _Keeper:
    """What a job leaves on the way: its metrics, and checkpoints from time to time; or nothing."""

    def __init__(self, saving: Saving | None, chunk: int, label: str) -> None:
        self.history: list[dict[str, Any]] = []
        self._label, self._saving, self._metrics = label, None, None
        self._saved_at, self._last_save, self._cost = 0, time.monotonic(), 0.0
        if saving is not None:
            self._saving = replace(saving, config={**saving.config, "chunk": chunk})
            self._metrics = MetricsFile(saving.folder / "metrics.jsonl")

    def resume(self, job: _Job) -> tuple[_Job, int, dict[str, Any] | None]:
        """The job as its newest checkpoint has it: its step, and what was done for the next chunk already."""
        done, noted, saving = 0, None, self._saving
        if saving is None or self._metrics is None:
            return job, done, noted
        if (found := self._newest(saving.checkpoints, job, saving.keep)) is not None:
            job, done, noted = found.state, found.step, found.extra.get("noted")
            if checkpoint_path(saving.light_checkpoints, done) not in list_checkpoints(
                saving.light_checkpoints
            ):
                self._save_light(saving, job, done)  # a kill may have come between the two
        elif saving.partial is not None:
            part = saving.partial.take(job.state)
            if (found := self._newest(saving.light_checkpoints, part, 1)) is not None:
                job, done = replace(job, state=saving.partial.put(job.state, found.state)), found.step
                self._say(f"going on from a light checkpoint at step {done}, not bit for bit")
        self._metrics.rewind(done)
        self.history, self._saved_at = self._metrics.read(), done
        return job, done, noted

    def _newest(self, folder: Path, like: Any, keep: int) -> Checkpoint | None:
        """The newest whole checkpoint of a folder; those that are damaged are named."""
        assert self._saving is not None  # noqa: S101 (whoever asks keeps checkpoints)
        found, damaged = load_newest(folder, like, config=self._saving.config)
        for error in damaged:
            self._say(f"{error} Going on from an older one.")
        if found is not None and not damaged:  # one that is damaged stays until it is made anew
            remove_old(folder, found.step, keep=keep)  # a kill may have come before that
        return found

    def _say(self, words: str) -> None:
        print(f"{self._label}: {words}", file=sys.stderr)

    def note(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the metrics of a chunk; as they are written down."""
        self.history.append({name: plain(value) for name, value in line.items()})
        if self._metrics is not None:
            self._metrics.append(line)
        return self.history[-1]

    def save_in_time(self, job: _Job, done: int, noted: dict[str, Any] | None) -> None:
        """Save if the last time is long enough ago."""
        if self._saving is not None and time.monotonic() - self._last_save >= self._saving.pause(self._cost):
            self.save(job, done, noted)

    def save(self, job: _Job, done: int, noted: dict[str, Any] | None) -> None:
        """Write a checkpoint, unless the newest one is of this step."""
        saving, began = self._saving, time.monotonic()
        if saving is None or done <= self._saved_at:
            return
        extra = {} if noted is None else {"noted": noted}
        save_checkpoint(
            saving.checkpoints, job, step=done, config=saving.config, extra=extra, keep=saving.keep
        )
        self._save_light(saving, job, done)
        self._saved_at, self._last_save, self._cost = done, time.monotonic(), time.monotonic() - began

    def _save_light(self, saving: Saving, job: _Job, done: int) -> None:
        """Write the light checkpoint of a step, where there is one."""
        if saving.partial is not None:
            part = saving.partial.take(job.state)
            save_checkpoint(saving.light_checkpoints, part, step=done, config=saving.config, keep=1)


def _prepared(job: _Job, between: Between, data: Any) -> tuple[_Job, dict[str, Any]]:
    """The job after `between`, and what that noted."""
    began = time.monotonic()
    state, found = jax.block_until_ready(_run_between((between, data), job.state))
    noted = {name: plain(value) for name, value in found.items()}
    return replace(job, state=state), {**noted, "between_seconds": time.monotonic() - began}


@eqx.filter_jit(donate="all-except-first")
def _run_between(kept: tuple[Between, Any], state: Any) -> tuple[Any, dict[str, Array]]:
    between, data = kept
    return between(state, data)


@eqx.filter_jit
def _run_chunk(
    step: Callable[..., tuple[Any, Metrics]],
    moving: Any,
    still: Any,
    data: Any,
    key: PRNGKeyArray,
    start: Int[Array, ""],
    length: int,
    period: int,
    first: int,
) -> tuple[Any, dict[str, Array], Int[Array, ""], list[Bool[Array, ""]]]:
    """`length` steps: what moves after them, mean metrics, the first bad step, and which arrays are finite.

    `first` is the turn of the first step.
    """
    is_none = lambda leaf: leaf is None  # noqa: E731
    moves = jax.tree_util.tree_map(lambda leaf: leaf is not None, moving, is_leaf=is_none)

    def one(carry: Any, index: Array, turn: int) -> tuple[Any, Array]:
        nonlocal unravel
        turns = {"turn": turn} if period > 1 else {}
        step_key = jax.random.fold_in(key, index)
        following, metrics = step(eqx.combine(carry, still), data, key=step_key, **turns)
        # One array for all metrics: each would be another small kernel at every step.
        noted, unravel = ravel_pytree(metrics)
        return eqx.filter(following, moves), noted

    def several(carry: Any, indices: Int[Array, " steps"]) -> tuple[Any, Array]:
        noted = []
        for i in range(indices.shape[0]):
            carry, found = one(carry, indices[i], (first + i) % period)
            noted.append(found)
        return carry, jnp.stack(noted)

    unravel = lambda noted: {}  # noqa: E731
    whole, indices = length - length % period, start + jnp.arange(length)
    parts = []
    if whole:
        moving, noted = jax.lax.scan(several, moving, indices[:whole].reshape(-1, period))
        parts.append(noted.reshape(whole, -1))
    if whole < length:
        moving, noted = several(moving, indices[whole:])
        parts.append(noted)
    noted = jnp.concatenate(parts)
    metrics = jax.vmap(unravel)(noted)
    means = {name: mean_over_steps(values) for name, values in metrics.items()}
    good = jnp.isfinite(noted).all(axis=1)
    bad_step = jnp.where(good.all(), -1, jnp.argmin(good))
    finite = [jnp.isfinite(leaf).all() for leaf in _inexact(moving).values()]
    return moving, means, bad_step, finite


def _parted(state: Any, reads: Callable[[Any], Any] | None) -> tuple[Any, Any]:
    """The arrays that steps change, and all the rest."""
    still = set() if reads is None else {id(leaf) for leaf in jax.tree_util.tree_leaves(reads(state))}
    return eqx.partition(state, lambda leaf: eqx.is_array(leaf) and id(leaf) not in still)


def _firm(state: Any) -> Any:
    """The same state without weak types and with no array in two places.

    The first step loses weak types, and all would be compiled again; memory can be used again only once.
    """
    seen: set[int] = set()

    def firm(leaf: Any) -> Any:
        if getattr(leaf, "weak_type", False):
            return jax.lax.convert_element_type(leaf, leaf.dtype)
        if eqx.is_array(leaf) and id(leaf) in seen:
            return jnp.copy(leaf)
        seen.add(id(leaf))
        return leaf

    return jax.tree_util.tree_map(firm, state)


def _inexact(tree: Any) -> dict[str, Any]:
    return {name: leaf for name, leaf in arrays_of(tree).items() if jnp.issubdtype(leaf.dtype, jnp.inexact)}


def _guard(
    state: Any,
    metrics: Mapping[str, Any],
    bad_step: int,
    finite: list[Array],
    done: int,
    length: int,
    saving: Saving | None,
) -> None:
    """Stop at the first chunk with a number that is not finite.

    The mean of finite numbers can be infinite, so metrics are looked at for themselves.
    """
    broken = [name for name, good in zip(_inexact(state), finite, strict=True) if not bool(good)]
    broken += [f"metric {name}" for name, value in metrics.items() if not np.isfinite(value).all()]
    if bad_step < 0 and not broken:
        return
    where = f"at step {done + bad_step + 1}" if bad_step >= 0 else f"in steps {done + 1} to {done + length}"
    kept = list_checkpoints(saving.checkpoints) if saving is not None else []
    last = f"; the last good checkpoint is {kept[-1]}" if kept else ""
    what = broken[0] if broken else "metric of that step"
    raise DivergenceError(f"Training diverged {where}: '{what}' is not finite{last}.")


def _no_best(state: Any, validate: Callable[[Any], dict[str, Array]] | None) -> _Best:
    assert validate is not None  # noqa: S101 (checked by the caller)
    score = jnp.asarray(validate(state)["score"])
    return _Best(state, jnp.full_like(score, jnp.inf), jnp.zeros((), jnp.int32))


def _updated(best: _Best, state: Any, score: Array, rule: EarlyStopping) -> _Best:
    """The best of before and now; of each member where there is a score for each."""
    first = jnp.isinf(best.score)
    better = jnp.where(
        first, jnp.isfinite(score), best.score - score > rule.improvement * jnp.abs(best.score)
    )

    def choose(old: Any, new: Any) -> Any:
        if not eqx.is_array(new):
            return new
        if jnp.issubdtype(new.dtype, jax.dtypes.prng_key):
            return new
        return jnp.where(better.reshape(better.shape + (1,) * (new.ndim - better.ndim)), new, old)

    return _Best(
        state=jax.tree_util.tree_map(choose, best.state, state),
        score=jnp.where(better, score, best.score),
        stale=jnp.where(better.any(), 0, best.stale + 1).astype(jnp.int32),
    )


def _stale(best: _Best | None, rule: EarlyStopping | None) -> bool:
    return best is not None and rule is not None and int(best.stale) >= rule.patience


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
