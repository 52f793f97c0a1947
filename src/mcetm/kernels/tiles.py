"""The fused sampler through Pallas' Triton backend: a tile of chains runs all its steps in one program.

A program holds the states of its tile in registers, reads the weights from the L2 cache at every step and
writes nothing but the last states. Kept for comparison: `hopper` is the sampler in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.kernels.chains import Activation, Chains, Moves
from mcetm.kernels.random import key_words, normal, threefry

SLOPE_LOW, SLOPE_HIGH = -0.1, 1.1
"""What the slopes of all activations lie between."""


@dataclass(frozen=True)
class Tiling:
    """How the work is cut up; none of it changes the result beyond rounding."""

    tile: int = 64
    """Chains per program."""
    blocks: tuple[int, ...] = (128, 64, 16)
    """The column blocks of a hidden layer: powers of two, in sum at least its width."""
    operands: Literal["bf16", "tf32"] = "bf16"
    warps: int = 8
    stages: int = 1
    interpret: bool = False

    @property
    def dtype(self) -> Any:
        """Of the operands of matrix products."""
        return jnp.bfloat16 if self.operands == "bf16" else jnp.float32

    def dot(self, a: Array, b: Array) -> Array:
        """A product on tensor cores, summed in float32."""
        precision = None if self.operands == "bf16" or self.interpret else jax.lax.Precision.HIGH
        return jnp.dot(a.astype(self.dtype), b, precision=precision, preferred_element_type=jnp.float32)


def sample(
    chains: Chains, moves: Moves, tiling: Tiling, *, key: PRNGKeyArray
) -> Float[Array, "members rows samples dim"]:
    """The last points of all chains: what `chains.sample` returns, with other random numbers."""
    members, rows, samples, dim = chains.start.shape
    count = rows * samples
    tiles = -(-count // tiling.tile)
    columns = _power_of_two(dim)
    per_chain = lambda a: _rows_to(_columns_to(a, columns), tiles * tiling.tile)  # noqa: E731
    per_row = lambda a, fill=0.0: _rows_to(  # noqa: E731
        _columns_to(jnp.repeat(a, samples, axis=1), columns, fill), tiles * tiling.tile, fill
    )
    start = per_chain(chains.start.reshape(members, count, dim))
    # Where unit is 0, nothing ever moves: this holds the columns that only fill up.
    unit = per_row(jnp.ones((members, rows, dim)) if chains.unit is None else chains.unit)
    noise = _rows_to(jnp.tile(chains.noise, rows)[None, :, None], tiles * tiling.tile)[0]
    blocks = [
        _blocks(weight.shape[1], tiling.blocks)
        if weight.shape[1] > _SMALL
        else (_power_of_two(weight.shape[1]),)
        for weight in chains.weights
    ]
    widths = [columns, *[sum(b) for b in blocks]]
    upward, downward, biases = [], [], []
    for layer, weight in enumerate(chains.weights):
        padded = _columns_to(_rows_to(weight, widths[layer + 1]), widths[layer]).astype(tiling.dtype)
        downward.append(padded[:, None])
        upward.append(padded.swapaxes(1, 2)[:, None])
        biases.append(_columns_to(chains.biases[layer], widths[layer + 1]))
    context = _columns_to(chains.context, widths[chains.entry + 1])
    inputs: dict[str, Any] = {
        "start": start,
        "unit": unit,
        "noise": noise,
        "context": context,
        "factors": jnp.asarray(moves.factors(), jnp.float32),
        "seed": key_words(key),
        "page": jnp.zeros(1, jnp.int32),
        "last": _columns_to(chains.last, widths[-1]),
        "upward": upward,
        "downward": downward,
        "biases": biases,
    }
    if chains.box is not None:
        inputs["box"] = [_columns_to(edge[None], columns)[0] for edge in chains.box]
    if chains.anchor is not None:
        padded = _columns_to(_rows_to(chains.anchor.weight, widths[1]), columns).astype(tiling.dtype)
        inputs["anchor"] = {
            "mean": per_row(chains.anchor.mean),
            "spread": per_row(chains.anchor.spread, 1.0),
            "upward": padded.swapaxes(1, 2)[:, None],
            "downward": padded[:, None],
        }
    tile_of_member = pl.BlockSpec((None, tiling.tile, columns), lambda m, t: (m, t, 0))
    of_member = lambda a: pl.BlockSpec((None, *a.shape[1:]), lambda m, t: (m,) + (0,) * (a.ndim - 1))  # noqa: E731
    whole = lambda a: pl.BlockSpec(a.shape, lambda m, t: (0,) * a.ndim)  # noqa: E731
    specs = {
        "start": tile_of_member,
        "unit": tile_of_member,
        "noise": pl.BlockSpec((tiling.tile, 1), lambda m, t: (t, 0)),
        "factors": whole(inputs["factors"]),
        "seed": whole(inputs["seed"]),
        "page": whole(inputs["page"]),
        "box": [whole(edge) for edge in inputs.get("box", [])],
        **{
            name: jax.tree.map(of_member, inputs[name])
            for name in ("context", "last", "upward", "downward", "biases")
        },
    }
    if chains.anchor is not None:
        specs["anchor"] = {
            "mean": tile_of_member,
            "spread": tile_of_member,
            "upward": of_member(inputs["anchor"]["upward"]),
            "downward": of_member(inputs["anchor"]["downward"]),
        }
    names = sorted(inputs)
    program = _Program(chains.activations, chains.entry, tuple(blocks), samples, rows, moves, tiling)
    end = pl.pallas_call(
        lambda *refs: program(dict(zip(names, refs[:-1], strict=True)), refs[-1]),
        out_shape=jax.ShapeDtypeStruct(start.shape, jnp.float32),
        grid=(members, tiles),
        in_specs=[specs[name] for name in names],
        out_specs=tile_of_member,
        interpret=tiling.interpret,
        compiler_params=_parameters(tiling),
        name="langevin",
    )(*[inputs[name] for name in names])
    return end[:, :count, :dim].reshape(chains.start.shape)


@dataclass(frozen=True)
class _Program:
    """What one program does with its tile; all fields are known when it is compiled."""

    activations: tuple[Activation, ...]
    entry: int
    blocks: tuple[tuple[int, ...], ...]
    samples: int
    rows: int
    moves: Moves
    tiling: Tiling

    def __call__(self, refs: dict[str, Any], end_ref: Any) -> None:
        tile, steps = self.tiling.tile, len(self.moves.sizes)
        first = pl.program_id(1) * tile
        member = pl.program_id(0)
        x = refs["start"][...]
        chain = first + jax.lax.broadcasted_iota(jnp.int32, x.shape, 0)
        column = jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)
        row = jnp.minimum((first + jax.lax.iota(jnp.int32, tile)) // self.samples, self.rows - 1)
        key = (refs["seed"][0] ^ member.astype(jnp.uint32) * jnp.uint32(0x9E3779B9), refs["seed"][1])

        def move(step: Array, x: Array) -> Array:
            word, _ = threefry(key, (chain.astype(jnp.uint32), (step * 256 + column).astype(jnp.uint32)))
            # Always 0, which the compiler cannot know: it would move the weights' loads out of the loop, and
            # they do not fit there.
            page = jnp.minimum(step, refs["page"][0])
            return self.move({**refs, "page": page}, step, x, normal(word), row)

        end_ref[...] = jax.lax.fori_loop(0, steps, move, x)

    def move(self, refs: dict[str, Any], step: Any, x: Array, w: Array, row: Array) -> Array:
        """One Langevin step of the tile."""
        moves, unit = self.moves, refs["unit"][...]
        g = unit * self.gradient(refs, x, row)
        if moves.gradient_clip is not None:
            g = _clip(g, moves.gradient_clip)
        of_gradient, of_noise = refs["factors"][step, 0], refs["factors"][step, 1]
        delta = of_gradient * g + of_noise * refs["noise"][...] * w
        if moves.move_clip is not None:
            delta = _clip(delta, moves.move_clip)
        x = x + unit * delta
        if "box" in refs:
            low, high = refs["box"]
            x = jnp.minimum(jnp.maximum(x, low[...][None]), high[...][None])
        return x

    def gradient(self, refs: dict[str, Any], x: Array, row: Array) -> Array:
        """∂E/∂x: up through the layers, then down with the slopes met on the way."""
        slopes = _Slopes(self.activations, self.blocks)
        anchor: Any = refs.get("anchor")
        residual: Any = (
            None if anchor is None else (x - refs["anchor"]["mean"][...]) / refs["anchor"]["spread"][...]
        )
        h: list[Array] = [x]
        edges = (0, x.shape[1])
        for layer, blocks in enumerate(self.blocks):
            up, above, raised = refs["upward"][layer], _edges(blocks), []
            for block, width in enumerate(blocks):
                at = pl.ds(above[block], width)
                z = refs["context"][row, at] if layer == self.entry else refs["biases"][layer][at][None]
                for below, part in enumerate(h):
                    for piece in self._pieces(part) if layer == 0 else (part,):
                        z = z + self.tiling.dot(
                            piece, up[refs["page"], pl.ds(edges[below], part.shape[1]), at]
                        )
                if residual is not None and layer == 0:
                    for piece in self._pieces(_arcsinh(residual)):
                        z = z + self.tiling.dot(piece, refs["anchor"]["upward"][refs["page"], :, at])
                raised.append(slopes.activate(layer, block, z).astype(self.tiling.dtype))
            h, edges = raised, above
        top = len(self.blocks) - 1
        last, at = refs["last"], _edges(self.blocks[top])
        g = [last[pl.ds(at[b], n)][None] * slopes.of(top, b) for b, n in enumerate(self.blocks[top])]
        for layer in range(top, 0, -1):
            g = [
                self._down(
                    g, refs["page"], refs["downward"][layer], self.blocks[layer], b, self.blocks[layer - 1]
                )
                * slopes.of(layer - 1, b)
                for b in range(len(self.blocks[layer - 1]))
            ]
        columns = (x.shape[1],)
        total = self._down(g, refs["page"], refs["downward"][0], self.blocks[0], 0, columns)
        if residual is not None:
            through = self._down(g, refs["page"], refs["anchor"]["downward"], self.blocks[0], 0, columns)
            slope = 1.0 / jnp.sqrt(residual * residual + 1.0)
            total = total + (residual + through * slope) / refs["anchor"]["spread"][...]
        return total

    def _down(
        self,
        g: list[Array],
        page: Array,
        weight: Any,
        blocks: tuple[int, ...],
        block: int,
        below: tuple[int, ...],
    ) -> Array:
        above, at = _edges(blocks), pl.ds(_edges(below)[block], below[block])
        parts = [
            self.tiling.dot(part, weight[page, pl.ds(above[b], blocks[b]), at]) for b, part in enumerate(g)
        ]
        return sum(parts[1:], parts[0])

    def _pieces(self, x: Array) -> tuple[Array, ...]:
        """bf16 keeps three digits of a state; a second number for the rest keeps five."""
        if self.tiling.operands != "bf16":
            return (x,)
        coarse = x.astype(jnp.bfloat16)
        return coarse, (x - coarse.astype(jnp.float32)).astype(jnp.bfloat16)


class _Slopes:
    """The activations' slopes, kept for the way down: eight bits each, four layers to a word.

    Registers are what a tile has least of. A slope of ReLU takes one bit and is exact; of the others, eight
    bits are as fine as bf16 is near 1.
    """

    def __init__(self, activations: tuple[Activation, ...], blocks: tuple[tuple[int, ...], ...]) -> None:
        self.activations = activations
        self.words: dict[tuple[Any, int, int], Array] = {}
        self.places: list[tuple[Any, int]] = []
        seen: dict[Any, int] = {}
        for layer, activation in enumerate(activations):
            kind = (blocks[layer], activation == "relu")
            self.places.append((kind, seen.get(kind, 0)))
            seen[kind] = seen.get(kind, 0) + 1

    def activate(self, layer: int, block: int, z: Array) -> Array:
        """The activation; its slope is kept."""
        activation = self.activations[layer]
        if activation == "relu":
            value, code = jnp.maximum(z, 0.0), (z > 0.0).astype(jnp.int32)
        else:
            if activation == "silu":
                gate = 1.0 / (1.0 + jnp.exp(-z))
                value = z * gate
                slope = gate + value * (1.0 - gate)
            else:
                value = 2.0 / (1.0 + jnp.exp(-2.0 * z)) - 1.0
                slope = 1.0 - value * value
            code = ((slope - SLOPE_LOW) * (255.0 / (SLOPE_HIGH - SLOPE_LOW)) + 0.5).astype(jnp.int32)
        word, shift = self._place(layer, block)
        code = code << shift if shift else code
        self.words[word] = self.words[word] | code if word in self.words else code
        return value

    def of(self, layer: int, block: int) -> Array:
        """The slope that was kept."""
        word, shift = self._place(layer, block)
        bits = self.words[word] >> shift if shift else self.words[word]
        if self.activations[layer] == "relu":
            return (bits & 1).astype(jnp.float32)
        return (bits & 255).astype(jnp.float32) * ((SLOPE_HIGH - SLOPE_LOW) / 255.0) + SLOPE_LOW

    def _place(self, layer: int, block: int) -> tuple[tuple[Any, int, int], int]:
        kind, index = self.places[layer]
        per_word, bits = (32, 1) if kind[1] else (4, 8)
        return (kind, index // per_word, block), index % per_word * bits


_SMALL = 64
"""Layers up to this width are one block."""


def _parameters(tiling: Tiling) -> Any:
    if tiling.interpret:
        return None
    from jax.experimental.pallas import triton

    return triton.CompilerParams(num_warps=tiling.warps, num_stages=tiling.stages)


def _clip(x: Array, most: float) -> Array:
    return jnp.minimum(jnp.maximum(x, -most), most)


def _arcsinh(x: Array) -> Array:
    size = jnp.abs(x)
    value = jnp.log(size + jnp.sqrt(size * size + 1.0))
    return jnp.where(x < 0.0, -value, value)


def _power_of_two(n: int) -> int:
    """The least block that tensor cores take, 16, or the next power of two."""
    return max(16, 1 << (n - 1).bit_length())


def _blocks(width: int, blocks: tuple[int, ...]) -> tuple[int, ...]:
    if sum(blocks) < width:
        raise ValueError(f"Blocks of {blocks} hold fewer than {width} columns.")
    return blocks


def _edges(blocks: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sum(blocks[:i]) for i in range(len(blocks) + 1))


def _columns_to(a: Array, count: int, fill: float = 0.0) -> Array:
    return jnp.pad(a, ((0, 0),) * (a.ndim - 1) + ((0, count - a.shape[-1]),), constant_values=fill)


def _rows_to(a: Array, count: int, fill: float = 0.0) -> Array:
    return jnp.pad(a, ((0, 0), (0, count - a.shape[1])) + ((0, 0),) * (a.ndim - 2), constant_values=fill)
