"""`fit`: the one training loop, used by every model and every agent.

Steps run in chunks of one compiled `lax.scan` on the device, where the data lie too. Between chunks, on the
host: metrics, progress, validation, early stopping, checkpoint, and a guard against numbers that are not
finite. Step t draws its randomness from `fold_in(key, t)`, so a job resumed from a checkpoint takes the same
steps as one that was never interrupted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
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
from mcetm.training.checkpoint import arrays_of, list_checkpoints, load_checkpoint, save_checkpoint
from mcetm.training.interrupts import interrupted_later
from mcetm.training.metrics import Metrics, MetricsFile, mean_over_steps, plain


@runtime_checkable
class Step(Protocol):
    """One update: from a state and the data to the next state and metrics."""

    def __call__(self, state: Any, data: Any, *, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        """Take the step; all randomness comes from `key`. Where steps take turns, `turn` is given too."""
        ...


Between = Callable[[Any, Any], tuple[Any, dict[str, Array]]]


class DivergenceError(UserError):
    """Training met a number that is not finite; says the step and the array."""


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when the validation score (lower is better) has not improved for a while; keep the best state.

    With one score per member each member keeps its own best, and the wait counts while none improves.
    """

    patience: int = 5
    improvement: float = 0.01
    """Relative improvement that counts."""


@dataclass(frozen=True)
class Light:
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
    light: Light | None = None
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
class Fit:
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


def fit(
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
    label: str = "training",
    watch: tuple[str, ...] = ("loss",),
) -> Fit:
    """Train for `steps` steps, or until early stopping says that it is enough.

    `data` is any tree of arrays; it stays on the device. `validate` sees the state between chunks and returns
    metrics; early stopping needs a `score` among them. `between` is run before each chunk, as one compiled
    program: for work that is too large for every step, such as rollouts. It uses the state's memory again, so
    a state that was given to `fit` with it cannot be read any more. `reads` names the part of a state that
    steps do not change, which is then never copied. With a `period` above 1, steps take turns: each is called
    with `turn`, its number modulo the period, which is known when it is compiled. (For a branch on a number
    of the device, the host would wait at every step.) With `saving`, metrics go to `metrics.jsonl`, and a job
    whose folder holds a checkpoint goes on from there, bit for bit. `watch` names the metrics beside the bar.
    """
    if early_stopping is not None and validate is None:
        raise ValueError("early stopping needs a validation")
    if early_stopping is not None and between is not None:
        raise ValueError("early stopping keeps states, whose memory `between` would use again")
    keep_programs()
    state, chunk = _firm(state), min(chunk, steps)
    job = _Job(state, key, None if early_stopping is None else _no_best(state, validate))
    done, metrics_file, history = 0, None, []
    noted: dict[str, Any] | None = None
    """What was done between chunks for the next one already."""
    if saving is not None:
        saving = replace(saving, config={**saving.config, "chunk": chunk})
        metrics_file = MetricsFile(saving.folder / "metrics.jsonl")
        if existing := list_checkpoints(saving.checkpoints):
            found = load_checkpoint(existing[-1], job, config=saving.config)
            job, done, noted = found.state, found.step, found.extra.get("noted")
        elif saving.light is not None and (existing := list_checkpoints(saving.light_checkpoints)):
            found = load_checkpoint(existing[-1], saving.light.take(state), config=saving.config)
            job, done = replace(job, state=saving.light.put(state, found.state)), found.step
            print(
                f"{label}: going on from a light checkpoint at step {done}, not bit for bit", file=sys.stderr
            )
        metrics_file.rewind(done)
        history = metrics_file.read()
    saved_at, last_save, cost = done, time.monotonic(), 0.0

    def save() -> None:
        nonlocal saved_at, last_save, cost
        began_saving = time.monotonic()
        if saving is not None and done > saved_at:
            extra = {} if noted is None else {"noted": noted}
            save_checkpoint(
                saving.checkpoints, job, step=done, config=saving.config, extra=extra, keep=saving.keep
            )
            if saving.light is not None:
                part = saving.light.take(job.state)
                save_checkpoint(saving.light_checkpoints, part, step=done, config=saving.config, keep=1)
            saved_at, last_save, cost = done, time.monotonic(), time.monotonic() - began_saving

    with progress(label, steps, unit="steps") as advance:
        advance(done)
        try:
            while done < steps and not _enough(job.best, early_stopping):
                length = min(chunk, steps - done)
                began = time.monotonic()
                if between is not None and noted is None:
                    with interrupted_later():  # the old state is gone before the new one is here
                        state, found = jax.block_until_ready(_run_between((between, data), job.state))
                        job = replace(job, state=state)
                        noted = {name: plain(value) for name, value in found.items()}
                        noted["between_seconds"] = time.monotonic() - began
                moving, still = _parted(job.state, reads)
                moved, means, bad_step, finite = _run_chunk(
                    step, moving, still, data, job.key, jnp.asarray(done), length, period, done % period
                )
                _guard(moved, means, int(bad_step), finite, done, saving)
                following = eqx.combine(moved, still)
                seconds = time.monotonic() - began
                line = {"step": done + length, **(noted or {}), **means, "seconds": seconds}
                best = job.best
                if validate is not None:
                    checked = validate(following)
                    line |= checked
                    if best is not None and early_stopping is not None:
                        best = _updated(best, following, checked["score"], early_stopping)
                history.append({name: plain(value) for name, value in line.items()})
                if metrics_file is not None:
                    metrics_file.append(line)
                job, done, noted = _Job(following, job.key, best), done + length, None
                advance(length, note=_note(history[-1], watch))
                if saving is not None and time.monotonic() - last_save >= saving.pause(cost):
                    save()
        except KeyboardInterrupt:
            save()
            raise
    save()
    return Fit(job.state if job.best is None else job.best.state, done, history)


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
    means: dict[str, Array],
    bad_step: int,
    finite: list[Array],
    done: int,
    saving: Saving | None,
) -> None:
    """Stop at the first chunk with a number that is not finite."""
    broken = [name for name, good in zip(_inexact(state), finite, strict=True) if not bool(good)]
    if bad_step < 0 and not broken:
        return
    broken += [f"metric {name}" for name, value in means.items() if not np.isfinite(value).all()]
    where = f"at step {done + bad_step + 1}" if bad_step >= 0 else f"after step {done}"
    kept = list_checkpoints(saving.checkpoints) if saving is not None else []
    last = f"; the last good checkpoint is {kept[-1]}" if kept else ""
    raise DivergenceError(f"Training diverged {where}: '{broken[0]}' is not finite{last}.")


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


def _enough(best: _Best | None, rule: EarlyStopping | None) -> bool:
    return best is not None and rule is not None and int(best.stale) >= rule.patience


def _note(line: Mapping[str, Any], watch: tuple[str, ...]) -> str:
    """The watched metrics in a few characters; members are averaged."""
    return "  ".join(f"{name} {np.mean(line[name]):.4g}" for name in watch if name in line)


def over_members(step: Step) -> Step:
    """The same step for every member of an ensemble, whose states share a leading axis.

    Member i draws from `fold_in(key, i)`: it learns the same alone as in company.
    """

    def together(state: Any, data: Any, *, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        keys = member_keys(key, member_count(state))
        one = lambda s, k: step(s, data, key=k)  # noqa: E731
        return eqx.filter_vmap(one, in_axes=(eqx.if_array(0), 0))(state, keys)

    return together
