"""What a program of the sampler for Hopper GPUs holds where: shared memory is what it has least of.

Decided when a program is compiled, from widths alone. docs/research/kernels.md explains the parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
from jaxtyping import Array

from mcetm.kernels.chains import Activation, Chains, Moves

ROWS = 64
"""Chains of one warpgroup: what a tensor-core instruction takes."""
GROUPS = 2
"""Warpgroups that compute."""
CHUNK = 16
"""Columns worked on at a time, and of a tile in shared memory: widths are filled up to a multiple."""
SHARED = 226 * 1024
"""Bytes of shared memory that a program may plan with."""
SWIZZLE = 2 * CHUNK
SMALL = 64
"""Layers this narrow stay in shared memory."""


@dataclass(frozen=True)
class Tuning:
    """How the work is done; none of it changes the result beyond rounding."""

    operands: Literal["float16", "bfloat16"] = "float16"
    """Of matrix products. float16 is eight times as fine, and wide enough for standardised inputs."""
    slots: int | None = None
    """Of the ring; as many as fit by default."""
    slice_rows: int = 80
    """Rows of a streamed matrix that fill a slot, at most."""
    interpret: Any = None
    """Parameters of Pallas' interpreter for machines without a GPU."""


def serves(
    widths: Sequence[int],
    dim: int,
    below: Sequence[int] = (),
    encoder: Sequence[int] = (),
    *,
    anchored: bool = False,
) -> bool:
    """Whether chains of `dim` numbers under layers of these widths fit into registers and shared memory.

    `below` are the layers of a decoder, `encoder` those of a recovery's encoder up to the codes.
    """
    filled = {round_up(width) for width in widths}
    if not (len(widths) > 1 and len(filled) == 1 and SMALL < max(filled) <= 208 and dim <= 48):
        return False
    if any(round_up(width) > SMALL for width in (*below, *encoder)) or len(encoder) == 1:
        return False
    network = [round_up(width) for width in (dim, *below, *widths)]
    beside = [round_up(width) for width in (dim, *encoder)] if encoder else []
    slices, slots = _ring(network, beside, Tuning(), anchored=anchored)
    return slots >= len(slices)


@dataclass(frozen=True)
class Program:
    """What is known of a program when it is compiled."""

    widths: tuple[int, ...]
    """Of x and of the hidden layers, filled up."""
    encoder: tuple[int, ...]
    """Of x, of the layers of a recovery's encoder and of its codes, filled up; empty where there is none."""
    activations: tuple[Activation, ...]
    """Of the hidden layers."""
    encoder_activation: Activation
    entry: int
    anchored: bool
    boxed: bool
    pulled: bool
    resident: tuple[int, ...]
    """Layers whose weights stay in shared memory; an anchor's and an encoder's always do."""
    streamed: tuple[int, ...]
    """Layers whose weights come by at every step: all of one size."""
    slices: tuple[tuple[int, int], ...]
    """First row and number of rows of the parts in which a streamed matrix arrives."""
    slots: int
    breadth: int
    """Columns of the widest operand: of a layer, or of the inputs side by side."""
    moves: Moves
    tuning: Tuning

    @property
    def largest(self) -> float:
        """What activations are held below: float16 must not overflow."""
        return float(jnp.finfo(self.tuning.operands).max)

    @property
    def held(self) -> list[tuple[int, int]]:
        """Sizes of all matrices that stay in shared memory: of layers, of the anchor, of the encoder."""
        layers = [(self.widths[layer], self.widths[layer + 1]) for layer in self.resident]
        anchor = [(self.widths[0], self.widths[1])] if self.anchored else []
        return [*layers, *anchor, *itertools.pairwise(self.encoder)]

    @property
    def parts(self) -> int:
        """Slices that come by in one step."""
        return 2 * len(self.streamed) * len(self.slices)


def plan(chains: Chains, moves: Moves, tuning: Tuning) -> Program:
    """What stays in shared memory, and how the rest is cut up to come by."""
    widths = _filled(chains.start.shape[-1], chains.weights)
    recovery, anchored = chains.recovery, chains.anchor is not None
    encoder = [] if recovery is None else _filled(chains.start.shape[-1], recovery.weights)
    resident = _resident(widths)
    slices, slots = _ring(widths, encoder, tuning, anchored=anchored)
    if slots < len(slices):  # it would wait for ever: a product begins when all its slices are there
        raise ValueError(f"A ring of {slots} slots cannot hold the {len(slices)} slices of a matrix.")
    return Program(
        tuple(widths),
        tuple(encoder),
        chains.activations,
        "relu" if recovery is None else recovery.activation,
        chains.entry,
        anchored,
        chains.box is not None,
        chains.pull is not None,
        resident,
        tuple(i for i in range(len(chains.weights)) if i not in resident),
        slices,
        slots,
        _breadth(widths, anchored=anchored),
        moves,
        tuning,
    )


def _filled(dim: int, weights: Sequence[Array]) -> list[int]:
    return [round_up(dim), *[round_up(weight.shape[1]) for weight in weights]]


def _resident(widths: list[int]) -> tuple[int, ...]:
    return tuple(i for i in range(len(widths) - 1) if i == 0 or min(widths[i : i + 2]) <= SMALL)


def _breadth(widths: list[int], *, anchored: bool) -> int:
    return max(*widths, widths[0] * (4 if anchored else 2))


def _ring(
    widths: list[int], encoder: list[int], tuning: Tuning, *, anchored: bool
) -> tuple[tuple[tuple[int, int], ...], int]:
    """The slices of a streamed matrix, and how many slots there is room for beside what is held."""
    width = widths[-1]
    size = round_up(-(-width // -(-width // tuning.slice_rows)))
    held = sum(widths[i] * widths[i + 1] for i in _resident(widths))
    held += GROUPS * ROWS * _breadth(widths, anchored=anchored)
    held += widths[0] * widths[1] if anchored else 0
    held += sum(above * below for below, above in itertools.pairwise(encoder))
    slices = tuple((first, min(size, width - first)) for first in range(0, width, size))
    return slices, tuning.slots or min(8, (SHARED // 2 - held) // (size * width))


def round_up(n: int) -> int:
    """To the next multiple of a chunk."""
    return -(-n // CHUNK) * CHUNK
