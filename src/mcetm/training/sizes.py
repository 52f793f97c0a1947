"""Settings whose arrays no memory here can hold, refused before anything starts.

What is counted is the least that a stage must have at once, by the words that all settings share: `width`,
`depth`, `members` and so on. So nothing that could run is refused; what is refused could only end in the
middle, on some systems with the whole process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mcetm.data.transitions import Transitions
from mcetm.errors import UserError
from mcetm.memory import free_memory
from mcetm.settings import fields_of

_NUMBER = 4
_ADAM = 3
"""Weights, and Adam's two averages of their gradients."""
_MOST_LAYERS = 1000
"""Compilers take hours for more."""


class Need(NamedTuple):
    """Memory that something takes, and the settings that it grows with."""

    what: str
    settings: dict[str, int]
    bytes: int


def check_sizes(parts: Mapping[str, Any], log: Transitions, *, seeds: int = 1) -> None:
    """Refuse settings whose networks, minibatches or imagined rows cannot fit; `parts` by their path."""
    free = _free()
    for place, part in parts.items():
        for need in _needs(part, place, log, seeds):
            if free is not None and need.bytes > free:
                path, value = max(need.settings.items(), key=lambda item: item[1])
                raise UserError(
                    f"The setting '{path}' is {value:,}, and with that {need.what} would take at least "
                    f"{need.bytes / 1e9:,.1f} GB of memory; {free / 1e9:,.1f} GB are free."
                )


def _free() -> int | None:
    """Bytes free where programs run."""
    import jax

    found = jax.local_devices()[0].memory_stats()
    return free_memory() if not found else found["bytes_limit"] - found.get("bytes_in_use", 0)


def _needs(part: Any, place: str, log: Transitions, seeds: int) -> Iterator[Need]:
    """What a class of settings and those inside it ask for."""
    values = {f"{place}.{field.name}": getattr(part, field.name) for field in fields_of(type(part))}
    whole = {path: value for path, value in values.items() if type(value) is int}

    def chosen(*names: str) -> dict[str, int]:
        paths = (f"{place}.{name}" for name in names)
        return {path: whole[path] for path in paths if path in whole}

    def of(name: str) -> int:
        return whole.get(f"{place}.{name}", 1)

    for path, layers in chosen("depth", "trunk").items():
        if layers > _MOST_LAYERS:
            raise UserError(f"The setting '{path}' should be at most {_MOST_LAYERS:,}, not {layers:,}.")
    copies = {"seeds": seeds, **chosen("members", "critics", "replicas")}
    many = math.prod(copies.values())
    if width := chosen("width"):
        inputs = max(log.obs_dim, of("latent_dim"))
        weights = (of("depth") - 1) * of("width") ** 2 + of("width") * inputs
        sizes = {**copies, **width, **chosen("depth", "latent_dim")}
        yield Need("its networks", sizes, many * weights * _NUMBER * _ADAM)
    if rows := chosen("batch_size"):
        row = max(of("width"), log.obs_dim * of("count"))
        yield Need(
            "a minibatch",
            {**copies, **rows, **width, **chosen("count")},
            many * of("batch_size") * row * _NUMBER,
        )
    if buffer := chosen("batch", "horizon", "retain"):
        row = 2 * log.obs_dim + log.action_dim
        least = many * math.prod(buffer.values()) * row * _NUMBER
        yield Need("imagined experience", {**copies, **buffer}, least)
        if (allowed := values.get(f"{place}.memory")) is not None and least > allowed * 1e9:
            raise UserError(
                f"The setting '{place}.memory' allows {allowed:g} GB of imagined experience, and it takes at "
                f"least {least / 1e9:.3g}: raise it, or lower {' or '.join(buffer)}."
            )
    if samples := chosen("samples", "references"):
        yield Need("the next states of one row", samples, max(samples.values()) * log.obs_dim * _NUMBER)
    for path, value in values.items():
        yield from _needs(value, path, log, seeds)
