"""`minimise`: fit a module to a log by gradient steps on minibatches, as every part of a world is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key, PRNGKeyArray

from mcetm.data.transitions import Transitions
from mcetm.nn.members import member_count
from mcetm.training.batches import Batch
from mcetm.training.keeping import Saving
from mcetm.training.loop import Callback, over_members, train_loop
from mcetm.training.metrics import Metrics
from mcetm.training.optimise import Schedule, adam, apply_gradient, init_optimiser
from mcetm.training.stopping import EarlyStopping
from mcetm.training.windows import data_of, identity_of

_Module = TypeVar("_Module")
Loss = Callable[[Any, Any, PRNGKeyArray], tuple[Array, Metrics]]
"""Of a module, the data and a key: what is to become small, and what else to note. It draws its minibatch."""


class _State(eqx.Module):
    """What a step changes, and what belongs to one member."""

    module: Any
    opt_state: Any
    done: Int[Array, ""]
    average: Any
    own: Any
    key: PRNGKeyArray | None


def minimise(
    loss: Loss,
    module: _Module,
    train: Transitions,
    settings: Any,
    *,
    key: PRNGKeyArray,
    schedule: Schedule = "constant",
    members: bool = False,
    own: Any = None,
    keys: Key[Array, " members"] | None = None,
    average: float | None = None,
    validate: Callable[[_Module], dict[str, Array]] | None = None,
    early_stopping: EarlyStopping | None = None,
    chunk: int = 1000,
    folder: Path | None = None,
    depends_on: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callback] = (),
    label: str,
    watch: tuple[str, ...] = ("loss",),
) -> tuple[_Module, list[dict[str, Any]]]:
    """The module after `settings.steps` steps of Adam (under early stopping, at its best), and the metrics.

    - `settings`: of the fit, with at least `steps` and Adam's `learning_rate`.
    - `members`: all arrays have a leading axis of members, each of which learns on its own.
    - `own`: something of each member's own, on a leading axis. The loss then gets `(data, own)` as its data.
    - `keys`: random streams of the members' own, so that one learns the same in any company.
    - `average`: keep a running average of the weights with this decay, and return it; see `_blended`.
    - `validate`: metrics of a module, measured after every `chunk` of steps.
    - `depends_on`: what else decides the result, beside the settings and the log: a checkpoint in `folder`
      that was made with something else is refused.
    """
    optimiser = adam(settings.learning_rate, schedule, settings.steps)

    def start(module: Any, own: Any, key: PRNGKeyArray | None) -> _State:
        kept = None if average is None else module
        return _State(module, init_optimiser(optimiser, module), jnp.zeros((), jnp.int32), kept, own, key)

    def step(state: _State, data: Batch, *, key: PRNGKeyArray) -> tuple[_State, Metrics]:
        if state.key is not None:
            key = jax.random.fold_in(state.key, state.done)
        seen = data if state.own is None else (data, state.own)
        differentiate = eqx.filter_value_and_grad(loss, has_aux=True)
        (value, metrics), gradient = differentiate(state.module, seen, key)
        module, opt_state = apply_gradient(optimiser, state.module, gradient, state.opt_state)
        kept = None if average is None else _blended(state.average, module, state.done, average)
        moved = _State(module, opt_state, state.done + 1, kept, state.own, state.key)
        return moved, {"loss": value, **metrics}

    def fitted(state: _State) -> Any:
        return state.module if average is None else state.average

    if members:
        count = member_count(module)
        start = eqx.filter_vmap(start, in_axes=(eqx.if_array(0), eqx.if_array(0), 0), axis_size=count)
    config = {**asdict(settings), **identity_of(train), **(depends_on or {})}
    result = train_loop(
        over_members(step) if members else step,
        start(module, own, keys),
        data_of(train),
        steps=settings.steps,
        key=key,
        chunk=chunk,
        validate=None if validate is None else lambda state: validate(fitted(state)),
        early_stopping=early_stopping,
        saving=None if folder is None else Saving(folder, config),
        callbacks=callbacks,
        label=label,
        watch=watch,
        lanes=member_count(module) if members else None,
    )
    return fitted(result.state), result.history


def _blended(average: _Module, module: _Module, done: Int[Array, ""], decay: float) -> _Module:
    """The running average one step on. Its decay warms up, so that the first weights are soon forgotten."""
    steps = done.astype(jnp.float32)
    decay_now = jnp.minimum(decay, (1.0 + steps) / (10.0 + steps))
    blend = lambda old, new: (  # noqa: E731
        decay_now * old + (1.0 - decay_now) * new if eqx.is_inexact_array(new) else new
    )
    return jax.tree_util.tree_map(blend, average, module)
