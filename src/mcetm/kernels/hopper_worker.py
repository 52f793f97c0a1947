"""A warpgroup of the sampler for Hopper GPUs: how 64 chains take a step.

States and slopes stay in registers, activations in shared memory. docs/research/kernels.md
explains the parts.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jaxtyping import Array

from mcetm.kernels.chains import Activation
from mcetm.kernels.hopper_plan import CHUNK, ROWS, Program
from mcetm.kernels.random import normal, threefry

_WGMMA = plgpu.Layout.WGMMA


@dataclass(frozen=True)
class Worker:
    """A warpgroup with its 64 chains. States are held as chunks of columns."""

    program: Program
    refs: Any
    ring: Any
    operand: Any
    """Shared memory for the left side of the next product."""
    resident: Any
    """Weights in shared memory: of layers, of the anchor, of the encoder."""
    full: Any
    empty: Any
    member: Array
    rows: Any

    def move(self, step: Array, x: tuple[Array, ...]) -> tuple[Array, ...]:
        """One Langevin step."""
        moves = self.program.moves
        gradient = self.gradient(step, x)
        if self.program.encoder:
            # After the energy's: what waits here in registers is least where layers are narrow.
            gradient = [a + b for a, b in zip(gradient, self.recovery(x), strict=True)]
        of_gradient, of_noise = self.refs["factors"][step, 0], self.refs["factors"][step, 1]
        amount = self.each(self.refs["noise"].at[self.rows])
        moved = []
        for i, w in enumerate(self.noise(step)):
            at = pl.ds(i * CHUNK, CHUNK)
            preconditioner = self.mine("preconditioner", at)
            # Beyond float16's range on the way down, a gradient is not a number: the chain waits.
            g = preconditioner * jnp.where(gradient[i] == gradient[i], gradient[i], 0.0)
            if moves.gradient_clip is not None:
                g = _clip(g, moves.gradient_clip)
            delta = of_gradient * g + of_noise * (amount * w)
            if self.program.pulled:
                # Without a division by the preconditioner, which is 0 where columns only fill up.
                stiffness = self.each(self.refs["stiffness"].at[self.member, self.rows])
                strength = of_gradient * (stiffness * preconditioner)  # below 0
                delta = (delta - strength * (self.mine("centre", at) - x[i])) / (
                    1.0 - strength * preconditioner
                )
            if moves.move_clip is not None:
                delta = _clip(delta, moves.move_clip)
            to = x[i] + preconditioner * delta
            if self.program.boxed:
                to = jnp.maximum(to, self.alike("low", i))
                to = jnp.minimum(to, self.alike("high", i))
            moved.append(to)
        return tuple(moved)

    def noise(self, step: Array) -> list[Array]:
        """Standard normals for this step: Threefry's two words serve two chunks."""
        chunks = self.program.widths[0] // CHUNK
        layout = None if self.program.tuning.interpret else _WGMMA
        chain, column = (
            plgpu.broadcasted_iota(jnp.uint32, (ROWS, CHUNK), axis, layout=layout) for axis in (0, 1)
        )
        chain = chain + self.rows.start.astype(jnp.uint32)
        seed = self.refs["seed"]
        key = (seed[0] ^ self.member.astype(jnp.uint32) * jnp.uint32(0x9E3779B9), seed[1])
        words: list[Array] = []
        for pair in range(-(-chunks // 2)):
            place = column + (step * (CHUNK * chunks) + pair * CHUNK).astype(jnp.uint32)
            words += threefry(key, (chain, place))
        return [normal(word) for word in words[:chunks]]

    def gradient(self, step: Array, x: tuple[Array, ...]) -> list[Array]:
        """∂E/∂x: up through the layers, then down with the slopes met on the way."""
        program, widths = self.program, self.program.widths
        top = len(widths) - 2
        slopes, part = _Slopes(program.activations), itertools.count()
        residual = []
        if program.anchored:
            ats = [pl.ds(i * CHUNK, CHUNK) for i in range(len(x))]
            residual = [
                (chunk - self.mine("mean", at)) / self.mine("spread", at)
                for chunk, at in zip(x, ats, strict=True)
            ]
        anchor = self.resident[len(program.resident)] if residual else None
        inputs = [(x, self.resident[0])]
        inputs += [([_arcsinh(r) for r in residual], anchor)] if residual else []
        z = self.first_layer(*inputs)
        for layer in range(top + 1):
            if layer:
                z = self.through(layer, step, part)
            for i, at in enumerate(range(0, widths[layer + 1], CHUNK)):
                at = pl.ds(at, CHUNK)
                chunk = _columns(z, i)
                if layer == program.entry:
                    chunk = chunk + self.mine("context", at)
                else:
                    chunk = chunk + self.alike(layer, i)
                if layer < top:
                    self.put(i, jnp.minimum(slopes.activate(layer, chunk), self.program.largest))
                else:
                    self.put(i, self.alike("last", i) * slopes.at_once(layer, chunk))
        for layer in range(top, 0, -1):
            g = self.through(layer, step, part, down=True)
            for i in reversed(range(widths[layer] // CHUNK)):
                self.put(i, slopes.apply(layer - 1, i, _columns(g, i)))
        side = self.operand.at[:, pl.ds(0, widths[1])]
        total = self.product((side, self.resident[0]), down=True)
        parts = [_columns(total, i) for i in range(len(x))]
        if residual:
            total = self.product((side, anchor), down=True)
            for i, r in enumerate(residual):
                bent = r + _columns(total, i) * lax.rsqrt(r * r + 1.0)
                parts[i] = parts[i] + bent / self.mine("spread", pl.ds(i * CHUNK, CHUNK))
        return parts

    def recovery(self, x: tuple[Array, ...]) -> list[Array]:
        """The recovery term's gradient, stiffness · Jᵀ (f(x) − centre): up the encoder f, and down again."""
        widths = self.program.encoder
        top = len(widths) - 2
        weights = self.resident[-(top + 1) :]
        slopes = _Slopes((self.program.encoder_activation,) * top)
        # Barriers, or the compiler keeps the operands of the energy's first layer through all of its layers.
        z = self.first_layer(([lax.optimization_barrier(chunk) for chunk in x], weights[0]))
        for layer in range(top + 1):
            if layer:
                z = self.product((self.operand.at[:, pl.ds(0, widths[layer])], weights[layer]))
            for i in range(widths[layer + 1] // CHUNK):
                at, chunk = pl.ds(i * CHUNK, CHUNK), _columns(z, i)
                if layer == top:
                    self.put(i, chunk - self.mine("recovery centre", at))
                    continue
                bias = self.alike(("encoder", layer), i) if layer else self.mine("recovery context", at)
                chunk = chunk + bias
                self.put(i, jnp.minimum(slopes.activate(layer, chunk), self.program.largest))
        for layer in range(top, 0, -1):
            side = self.operand.at[:, pl.ds(0, widths[layer + 1])]
            g = self.product((side, weights[layer]), down=True)
            for i in range(widths[layer] // CHUNK):
                self.put(i, slopes.apply(layer - 1, i, _columns(g, i)))
        total = self.product((self.operand.at[:, pl.ds(0, widths[1])], weights[0]), down=True)
        # Only now, in float32: a large stiffness would carry operands beyond float16's range.
        stiffness = self.each(self.refs["recovery stiffness"].at[self.member, self.rows])
        return [stiffness * _columns(total, i) for i in range(len(x))]

    def first_layer(self, *inputs: tuple[Any, Any]) -> Array:
        """Σ state · weights in the first layer; a state keeps twice the digits of an operand."""
        sides, weights = [], []
        for chunks, weight in inputs:
            for half in self.split(chunks):
                first = len(sides) * len(half)
                for i, chunk in enumerate(half):
                    self.operand[:, pl.ds((first + i) * CHUNK, CHUNK)] = chunk
                sides.append(self.operand.at[:, pl.ds(first * CHUNK, len(half) * CHUNK)])
                weights.append(weight)
        return self.product(*zip(sides, weights, strict=True))

    def through(self, layer: int, step: Array, part: Any, *, down: bool = False) -> Array:
        """The operand times a layer's weights."""
        program = self.program
        if layer in program.resident:
            width = program.widths[layer + 1 if down else layer]
            weight = self.resident[program.resident.index(layer)]
            return self.product((self.operand.at[:, pl.ds(0, width)], weight), down=down)
        counts = [step * program.parts + next(part) for _ in program.slices]
        slots = [lax.rem(count, program.slots) for count in counts]

        def products(total: Any) -> Array:
            plgpu.commit_smem()
            for slot in slots:
                plgpu.barrier_wait(self.full.at[slot])
            for slot, (first, size) in zip(slots, program.slices, strict=True):
                plgpu.wgmma(total, self.operand.at[:, pl.ds(first, size)], self.ring.at[slot, pl.ds(0, size)])
            for after, slot in enumerate(slots[:-1], start=1):
                plgpu.wgmma_wait(len(slots) - after)
                plgpu.barrier_arrive(self.empty.at[slot])
            return total[...]

        total = pl.run_scoped(products, plgpu.WGMMAAccumulatorRef((ROWS, program.widths[-1]), jnp.float32))
        plgpu.barrier_arrive(self.empty.at[slots[-1]])
        return total

    def product(self, *operands: tuple[Any, Any], down: bool = False) -> Array:
        """Σ a · b, with every b in shared memory; `down` takes the b transposed."""
        width = operands[0][1].shape[0 if down else 1]
        if self.program.tuning.interpret:  # whose tensor cores cannot transpose
            read = lambda b: b[...].T if down else b[...]  # noqa: E731
            parts = [jnp.dot(a[...], read(b), preferred_element_type=jnp.float32) for a, b in operands]
            return sum(parts[1:], parts[0])

        def products(total: Any) -> Array:
            plgpu.commit_smem()
            for a, b in operands:
                plgpu.wgmma(total, a, plgpu.transpose_ref(b, (1, 0)) if down else b)
            return total[...]

        return pl.run_scoped(products, plgpu.WGMMAAccumulatorRef((ROWS, width), jnp.float32))

    def put(self, chunk: int, value: Array) -> None:
        """A chunk of the next product's operand."""
        self.operand[:, pl.ds(chunk * CHUNK, CHUNK)] = self.rounded(value)

    def rounded(self, value: Array) -> Array:
        """As an operand."""
        return value.astype(self.program.tuning.operands)

    def split(self, chunks: Any) -> list[list[Array]]:
        """Each number as the sum of two operands."""
        coarse = [self.rounded(chunk) for chunk in chunks]
        fine = [self.rounded(a - b.astype(jnp.float32)) for a, b in zip(chunks, coarse, strict=True)]
        return [coarse, fine]

    def mine(self, name: str, columns: Any) -> Array:
        """Some columns of this group's rows of an input."""
        return self.load(self.refs[name].at[self.member, self.rows, columns])

    def each(self, ref: Any) -> Array:
        """One number for each chain of this group, across a chunk."""
        return lax.broadcast_in_dim(self.load(ref, _WGMMA.reduce(1)), (ROWS, CHUNK), [0])

    def alike(self, name: Any, chunk: int) -> Array:
        """A chunk of a vector that is the same for all chains: a layer's bias, or one with a name."""
        widths, between = self.program.widths, self.program.encoder[2:-1]
        encoder = [("encoder", layer) for layer in range(1, len(between) + 1)]
        order = [*range(len(widths) - 1), "last", *encoder, "low", "high"]
        lengths = [*widths[1:], widths[-1], *between, widths[0], widths[0]]
        at = sum(lengths[: order.index(name)]) + chunk * CHUNK
        vector = self.load(self.refs["vectors"].at[self.member, pl.ds(at, CHUNK)], _WGMMA.reduce(0))
        return lax.broadcast_in_dim(vector, (ROWS, CHUNK), [1])

    def load(self, ref: Any, layout: Any = _WGMMA) -> Array:
        """From device memory (or its cache), laid out as tensor cores have it."""
        if self.program.tuning.interpret:
            return ref[...]
        return plgpu.load(ref, (), layout=layout, optimized=False)


class _Slopes:
    """The activations' slopes, kept for the way down in as few registers as can be.

    A slope of ReLU takes one bit and is exact; of the others, eight bits are as fine as bf16 is near 1.
    Chunks of all layers share words.
    """

    low, high = -0.1, 1.1

    def __init__(self, activations: tuple[Activation, ...]) -> None:
        self.activations = activations
        self.words: dict[tuple[bool, int], Array] = {}
        self.places: dict[int, list[tuple[tuple[bool, int], int]]] = {}
        self.count = {True: 0, False: 0}

    def activate(self, layer: int, z: Array) -> Array:
        """The activation of the layer's next chunk; its slope is kept."""
        value, slope = self._both(layer, z)
        exact = self.activations[layer] == "relu"
        per_word, bits = (32, 1) if exact else (4, 8)
        word, shift = (exact, self.count[exact] // per_word), self.count[exact] % per_word * bits
        self.count[exact] += 1
        self.places.setdefault(layer, []).append((word, shift))
        if exact:
            code = jnp.where(z > 0.0, jnp.int32(_signed(1 << shift)), jnp.int32(0))
        else:
            # Adding 2²³ leaves the nearest integer in the low bits.
            scaled = (slope - self.low) * (255.0 / (self.high - self.low)) + 2.0**23
            code = (lax.bitcast_convert_type(scaled, jnp.int32) & 255) << shift
        code = self.words[word] | code if word in self.words else code
        # A barrier, or the compiler sees through the packing and keeps every slope in a register of its own.
        self.words[word] = lax.optimization_barrier(code)
        return value

    def at_once(self, layer: int, z: Array) -> Array:
        """The slope of a chunk that needs no keeping."""
        return jnp.where(z > 0.0, 1.0, 0.0) if self.activations[layer] == "relu" else self._both(layer, z)[1]

    def apply(self, layer: int, chunk: int, g: Array) -> Array:
        """G · the slope that was kept."""
        word, shift = self.places[layer][chunk]
        if self.activations[layer] == "relu":
            return jnp.where((self.words[word] & jnp.int32(_signed(1 << shift))) == 0, 0.0, g)
        code = lax.shift_right_logical(self.words[word], jnp.int32(shift)) & 255
        number = lax.bitcast_convert_type(code | 0x4B000000, jnp.float32) - 2.0**23
        return g * (number * ((self.high - self.low) / 255.0) + self.low)

    def _both(self, layer: int, z: Array) -> tuple[Array, Array]:
        match self.activations[layer]:
            case "relu":
                return jnp.maximum(z, 0.0), z
            case "silu":
                gate = 0.5 * jnp.tanh(0.5 * z) + 0.5
                value = z * gate
                return value, gate + value * (1.0 - gate)
            case "tanh":
                value = jnp.tanh(z)
                return value, 1.0 - value * value
            case other:
                raise ValueError(f"This sampler does not know {other}.")


def _columns(x: Array, chunk: int) -> Array:
    return lax.slice(x, (0, chunk * CHUNK), (ROWS, (chunk + 1) * CHUNK))


def _signed(bits: int) -> int:
    return bits - (1 << 32) if bits >> 31 else bits


def _clip(x: Array, most: float) -> Array:
    return jnp.minimum(jnp.maximum(x, -most), most)


def _arcsinh(x: Array) -> Array:
    size = jnp.abs(x)
    square = size * size + 1.0
    value = jnp.log(size + square * lax.rsqrt(square))
    return jnp.where(x < 0.0, -value, value)
