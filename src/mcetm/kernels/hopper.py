"""The fused sampler for Hopper GPUs, through Pallas' Mosaic backend: 128 chains to a multiprocessor.

Two warpgroups compute, 64 chains each; a third feeds them weights through a ring in shared memory. States and
slopes stay in registers, activations in shared memory; device memory sees the last states only. docs/kernels.md
explains the parts.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.kernels.chains import Activation, Chains, Moves
from mcetm.kernels.random import key_words, normal, threefry

ROWS = 64
"""Chains of one warpgroup: what a tensor-core instruction takes."""
GROUPS = 2
"""Warpgroups that compute."""
SHARED = 227 * 1024
"""Bytes of shared memory that one program may have."""
_SWIZZLE = 32
_LANES = _SWIZZLE // 2
"""Columns of a shared-memory tile: all widths are filled up to a multiple of it."""
_WGMMA = plgpu.Layout.WGMMA


def sample(
    chains: Chains, moves: Moves, *, key: PRNGKeyArray, slots: int | None = None, interpret: Any = None
) -> Float[Array, "members rows samples dim"]:
    """The last points of all chains: what `chains.sample` returns, with other random numbers."""
    members, rows, samples, dim = chains.start.shape
    count, columns = rows * samples, _fill(dim)
    tiles = -(-count // (ROWS * GROUPS))
    widths = [columns, *[_fill(weight.shape[1]) for weight in chains.weights]]
    plan = _plan(chains, moves, widths, slots, interpret is not None)

    def per_chain(a: Array, fill: float = 0.0) -> Array:
        a = jnp.pad(a, ((0, 0), (0, tiles * ROWS * GROUPS - a.shape[1]), (0, 0)), constant_values=fill)
        return _to(a, -1, a.shape[-1] if a.shape[-1] == 1 else _fill(a.shape[-1]), fill)

    per_row = lambda a, fill=0.0: per_chain(jnp.repeat(a, samples, axis=1), fill)  # noqa: E731
    unit = jnp.ones((members, rows, dim)) if chains.unit is None else chains.unit
    inputs: dict[str, Any] = {
        "start": per_chain(chains.start.reshape(members, count, dim)),
        # Where unit is 0, nothing ever moves: this holds the columns that only fill up.
        "unit": per_row(unit),
        "noise": _to(jnp.tile(chains.noise, rows), 0, tiles * ROWS * GROUPS),
        "context": per_row(chains.context),
        "biases": [_to(bias, 1, width) for bias, width in zip(chains.biases, widths[1:], strict=True)],
        "last": _to(chains.last, 1, widths[-1]),
        "factors": jnp.asarray(moves.factors(), jnp.float32),
        "seed": key_words(key),
        "resident": [_matrix(chains.weights[layer], widths[layer : layer + 2]) for layer in plan.resident],
        "streamed": jnp.stack(
            [_matrix(chains.weights[layer], widths[layer : layer + 2]) for layer in plan.streamed]
            + [
                _matrix(chains.weights[layer], widths[layer : layer + 2]).swapaxes(1, 2)
                for layer in reversed(plan.streamed)
            ],
            axis=1,
        ),
    }
    if chains.box is not None:
        inputs["box"] = [_to(edge, 0, columns) for edge in chains.box]
    if chains.anchor is not None:
        inputs["mean"] = per_row(chains.anchor.mean)
        inputs["spread"] = per_row(chains.anchor.spread, 1.0)
        inputs["resident"] = [*inputs["resident"], _matrix(chains.anchor.weight, widths[:2])]
    leaves, tree = jax.tree.flatten(inputs)
    run = plgpu.kernel(
        lambda *refs: plan(tree.unflatten(refs[: len(leaves)]), *refs[len(leaves) :]),
        out_type=jax.ShapeDtypeStruct(inputs["start"].shape, jnp.float32),
        grid=(members, tiles),
        grid_names=("member", "tile"),
        num_threads=GROUPS + 1,
        thread_name="group",
        scratch_types=plan.scratch(),
        compiler_params=plgpu.CompilerParams(approx_math=True),
        **({} if interpret is None else {"interpret": interpret}),
    )
    return run(*leaves)[:, :count, :dim].reshape(chains.start.shape)


@dataclass(frozen=True)
class _Plan:
    """One program: its shapes, and what its warpgroups do. All fields are known when it is compiled."""

    widths: tuple[int, ...]
    activations: tuple[Activation, ...]
    entry: int
    anchored: bool
    resident: tuple[int, ...]
    """Layers whose weights stay in shared memory."""
    streamed: tuple[int, ...]
    """Layers whose weights come by at every step: all of one size."""
    slices: tuple[tuple[int, int], ...]
    """First row and number of rows of the parts in which a streamed matrix arrives."""
    slots: int
    moves: Moves
    interpret: bool = False

    @property
    def parts(self) -> int:
        """Slices that come by in one step."""
        return 2 * len(self.streamed) * len(self.slices)

    def scratch(self) -> list[Any]:
        """Shared memory and barriers."""
        tiled = (plgpu.TilingTransform((8, _LANES)), plgpu.SwizzleTransform(_SWIZZLE))
        shapes = [(self.widths[layer], self.widths[layer + 1]) for layer in self.resident]
        if self.anchored:
            shapes.append((self.widths[0], self.widths[1]))
        width = max(self.widths[1:])
        return [
            plgpu.SMEM((self.slots, self.slices[0][1], width), jnp.bfloat16, transforms=tiled),
            plgpu.SMEM((GROUPS, ROWS, width), jnp.bfloat16, transforms=tiled),
            [plgpu.SMEM(shape, jnp.bfloat16, transforms=tiled) for shape in shapes],
            plgpu.Barrier(num_barriers=self.slots),
            plgpu.Barrier(num_arrivals=GROUPS, num_barriers=self.slots),
            plgpu.Barrier(num_barriers=len(shapes)),
        ]

    def __call__(self, refs: Any, end: Any, ring: Any, layer: Any, resident: Any, *barriers: Any) -> None:
        full, empty, loaded = barriers
        member, tile, group = lax.axis_index("member"), lax.axis_index("tile"), lax.axis_index("group")

        @pl.when(group == GROUPS)
        def _feed() -> None:
            plgpu.set_max_registers(40, action="decrease")
            for i, (source, target) in enumerate(zip(refs["resident"], resident, strict=True)):
                plgpu.copy_gmem_to_smem(source.at[member], target, loaded.at[i])

            def step(i: Array, _: None) -> None:
                for part in range(self.parts):
                    matrix, piece = divmod(part, len(self.slices))
                    first, size = self.slices[piece]
                    at = i * self.parts + part
                    slot = lax.rem(at, self.slots)

                    @pl.when(at >= self.slots)
                    def _wait() -> None:
                        plgpu.barrier_wait(empty.at[slot])  # noqa: B023

                    source = refs["streamed"].at[member, matrix, pl.ds(first, size)]
                    plgpu.copy_gmem_to_smem(source, ring.at[slot, pl.ds(0, size)], full.at[slot])

            lax.fori_loop(0, len(self.moves.sizes), step, None)
            for slot in range(min(self.slots, self.parts * len(self.moves.sizes))):
                plgpu.barrier_wait(empty.at[slot])

        @pl.when(group < GROUPS)
        def _compute() -> None:
            plgpu.set_max_registers(232, action="increase")
            for i in range(len(resident)):
                plgpu.barrier_wait(loaded.at[i])
            rows = pl.ds((tile * GROUPS + group) * ROWS, ROWS)
            machine = _Machine(self, refs, ring, layer.at[group], resident, full, empty, member, rows)
            x = machine.mine(refs["start"])
            end[member, rows] = lax.fori_loop(0, len(self.moves.sizes), machine.move, x)


@dataclass(frozen=True)
class _Machine:
    """A warpgroup with its 64 chains."""

    plan: _Plan
    refs: Any
    ring: Any
    layer: Any
    resident: Any
    full: Any
    empty: Any
    member: Array
    rows: Any

    def load(self, ref: Any, layout: Any = _WGMMA) -> Array:
        """From device memory, as the tensor cores will have it."""
        if self.plan.interpret:
            return ref[...]
        return plgpu.load(ref, (), layout=layout, optimized=False)

    def mine(self, ref: Any) -> Array:
        """This group's rows of an array over all chains."""
        return self.load(ref.at[self.member, self.rows])

    def alike(self, ref: Any) -> Array:
        """A vector, for all chains alike."""
        return lax.broadcast_in_dim(self.load(ref, _WGMMA.reduce(0)), (ROWS, *ref.shape), [1])

    def move(self, step: Array, x: Array) -> Array:
        """One Langevin step."""
        moves, columns = self.plan.moves, self.plan.widths[0]
        gradient = self.gradient(step, x)
        unit = self.mine(self.refs["unit"])
        g = unit * gradient
        if moves.gradient_clip is not None:
            g = _clip(g, moves.gradient_clip)
        of_gradient, of_noise = self.refs["factors"][step, 0], self.refs["factors"][step, 1]
        noise = self.load(self.refs["noise"].at[self.rows], _WGMMA.reduce(1))
        noise = lax.broadcast_in_dim(noise, (ROWS, columns), [0])
        delta = of_gradient * g + of_noise * (noise * self.noise(step))
        if moves.move_clip is not None:
            delta = _clip(delta, moves.move_clip)
        x = x + unit * delta
        if "box" in self.refs:
            low, high = (self.alike(edge) for edge in self.refs["box"])
            x = jnp.minimum(jnp.maximum(x, low), high)
        return x

    def noise(self, step: Array) -> Array:
        """Standard normals for this step of these chains."""
        shape = (ROWS, self.plan.widths[0])
        layout = None if self.plan.interpret else _WGMMA
        iota = lambda axis: plgpu.broadcasted_iota(jnp.uint32, shape, axis, layout=layout)  # noqa: E731
        chain = iota(0) + self.rows.start.astype(jnp.uint32)
        place = iota(1) + (step * 256).astype(jnp.uint32)
        seed = self.refs["seed"]
        key = (seed[0] ^ self.member.astype(jnp.uint32) * jnp.uint32(0x9E3779B9), seed[1])
        return normal(threefry(key, (chain, place))[0])

    def gradient(self, step: Array, x: Array) -> Array:
        """∂E/∂x: up through the layers, then down with the slopes met on the way."""
        plan, widths = self.plan, self.plan.widths
        slopes = _Slopes(plan.activations, widths[1:])
        part = itertools.count()
        residual = None
        if plan.anchored:
            spread = self.mine(self.refs["spread"])
            residual = (x - self.mine(self.refs["mean"])) / spread
        for layer in range(len(widths) - 1):
            if layer == 0:
                pieces = [*_pieces(x)] if residual is None else [*_pieces(x), *_pieces(_arcsinh(residual))]
                self.put(*pieces)
                at = [self.layer.at[:, pl.ds(i * widths[0], widths[0])] for i in range(len(pieces))]
                weights = [self.resident[0], self.resident[0], self.resident[-1], self.resident[-1]]
                z = self.product(*zip(at, weights, strict=False))
            elif layer in plan.resident:
                below = self.layer.at[:, pl.ds(0, widths[layer])]
                z = self.product((below, self.resident[plan.resident.index(layer)]))
            else:
                z = self.stream(step, part)
            if layer == plan.entry:
                z = z + self.mine(self.refs["context"])
            else:
                z = z + self.alike(self.refs["biases"][layer].at[self.member])
            h = slopes.activate(layer, z)
            if layer < len(widths) - 2:
                self.put(h)
        top = len(widths) - 2
        g = self.alike(self.refs["last"].at[self.member]) * slopes.of(top)
        for layer in range(top, 0, -1):
            self.put(g)
            if layer in plan.resident:
                above = self.layer.at[:, pl.ds(0, widths[layer + 1])]
                g = self.product((above, self.resident[plan.resident.index(layer)]), down=True)
            else:
                g = self.stream(step, part)
            g = slopes.apply(layer - 1, g)
        self.put(g)
        above = self.layer.at[:, pl.ds(0, widths[1])]
        total = self.product((above, self.resident[0]), down=True)
        if residual is not None:
            through = self.product((above, self.resident[-1]), down=True)
            slope = lax.rsqrt(residual * residual + 1.0)
            total = total + (residual + through * slope) / self.mine(self.refs["spread"])
        return total

    def put(self, *parts: Array) -> None:
        """Make these, side by side, the operand of the next product."""
        for i, part in enumerate(parts):
            width = part.shape[1]
            self.layer[:, pl.ds(i * width, width)] = part.astype(jnp.bfloat16)
        plgpu.commit_smem()

    def product(self, *operands: tuple[Any, Any], down: bool = False) -> Array:
        """Σ a · b, with every b in shared memory; `down` takes the b transposed."""
        width = operands[0][1].shape[0 if down else 1]
        if self.plan.interpret:  # whose tensor cores cannot transpose
            read = lambda b: b[...].T if down else b[...]  # noqa: E731
            return sum(jnp.dot(a[...], read(b), preferred_element_type=jnp.float32) for a, b in operands)

        def products(total: Any) -> Array:
            for a, b in operands:
                plgpu.wgmma(total, a, plgpu.transpose_ref(b, (1, 0)) if down else b)
            return total[...]

        return pl.run_scoped(products, plgpu.ACC((ROWS, width), jnp.float32))

    def stream(self, step: Array, part: Any) -> Array:
        """layer · (the matrix that comes by next)."""
        plan = self.plan
        at = [step * plan.parts + next(part) for _ in plan.slices]
        slots = [lax.rem(index, plan.slots) for index in at]

        def products(total: Any) -> Array:
            for i, (first, size) in enumerate(plan.slices):
                plgpu.barrier_wait(self.full.at[slots[i]])
                a, b = self.layer.at[:, pl.ds(first, size)], self.ring.at[slots[i], pl.ds(0, size)]
                plgpu.wgmma(total, a, b)
                if i:
                    plgpu.wgmma_wait(1)
                    plgpu.barrier_arrive(self.empty.at[slots[i - 1]])
            return total[...]

        total = pl.run_scoped(products, plgpu.ACC((ROWS, plan.widths[-1]), jnp.float32))
        plgpu.barrier_arrive(self.empty.at[slots[-1]])
        return total


class _Slopes:
    """The activations' slopes, kept for the way down: eight bits each, four layers to a word.

    Registers are what a tile has least of. A slope of ReLU takes one bit and is exact; of the others, eight
    bits are as fine as bf16 is near 1.
    """

    low, high = -0.1, 1.1

    def __init__(self, activations: tuple[Activation, ...], widths: tuple[int, ...]) -> None:
        self.activations = activations
        self.words: dict[tuple[Any, int], Array] = {}
        self.places: list[tuple[Any, int]] = []
        seen: dict[Any, int] = {}
        for activation, width in zip(activations, widths, strict=True):
            kind = (width, activation == "relu")
            self.places.append((kind, seen.get(kind, 0)))
            seen[kind] = seen.get(kind, 0) + 1

    def activate(self, layer: int, z: Array) -> Array:
        """The activation; its slope is kept."""
        word, shift = self._place(layer)
        activation = self.activations[layer]
        if activation == "relu":
            code = jnp.where(z > 0.0, jnp.int32(1 << shift), jnp.int32(0))
            value = jnp.maximum(z, 0.0)
        else:
            if activation == "silu":
                gate = 0.5 * jnp.tanh(0.5 * z) + 0.5
                value = z * gate
                slope = gate + value * (1.0 - gate)
            else:
                value = jnp.tanh(z)
                slope = 1.0 - value * value
            # Adding 2²³ leaves the nearest integer in the low bits.
            scaled = (slope - self.low) * (255.0 / (self.high - self.low)) + 2.0**23
            code = (lax.bitcast_convert_type(scaled, jnp.int32) & 255) << shift
        self.words[word] = self.words[word] | code if word in self.words else code
        return value

    def of(self, layer: int) -> Array:
        """The slope that was kept."""
        word, shift = self._place(layer)
        if self.activations[layer] == "relu":
            return jnp.where((self.words[word] & (1 << shift)) == 0, 0.0, 1.0)
        code = lax.shift_right_logical(self.words[word], shift) & 255
        number = lax.bitcast_convert_type(code | 0x4B000000, jnp.float32) - 2.0**23
        return number * ((self.high - self.low) / 255.0) + self.low

    def apply(self, layer: int, g: Array) -> Array:
        """g · slope."""
        if self.activations[layer] == "relu":
            word, shift = self._place(layer)
            return jnp.where((self.words[word] & (1 << shift)) == 0, 0.0, g)
        return g * self.of(layer)

    def _place(self, layer: int) -> tuple[tuple[Any, int], int]:
        kind, index = self.places[layer]
        per_word, bits = (32, 1) if kind[1] else (4, 8)
        return (kind, index // per_word), index % per_word * bits


def _plan(chains: Chains, moves: Moves, widths: list[int], slots: int | None, interpret: bool) -> _Plan:
    layers = range(len(chains.weights))
    resident = tuple(i for i in layers if i == 0 or min(widths[i : i + 2]) <= 64)
    streamed = tuple(i for i in layers if i not in resident)
    width = widths[-1]
    parts = -(-width // 80)
    size = _fill(-(-width // parts))
    slices = tuple((first, min(size, width - first)) for first in range(0, width, size))
    held = sum(widths[i] * widths[i + 1] for i in resident) + GROUPS * ROWS * max(widths[1:])
    if chains.anchor is not None:
        held += widths[0] * widths[1]
    room = (SHARED - 2048 - 2 * held) // (2 * size * max(widths[1:]))
    return _Plan(
        tuple(widths),
        chains.activations,
        chains.entry,
        chains.anchor is not None,
        resident,
        streamed,
        slices,
        min(8, room) if slots is None else slots,
        moves,
        interpret,
    )


def _matrix(weight: Array, widths: list[int]) -> Array:
    """A layer's weights as (below, above), filled up."""
    below, above = widths
    return _to(_to(weight, 1, above), 2, below).swapaxes(1, 2).astype(jnp.bfloat16)


def _pieces(x: Array) -> tuple[Array, Array]:
    """bf16 keeps three digits of a state; a second number for the rest keeps five."""
    coarse = x.astype(jnp.bfloat16)
    return coarse, (x - coarse.astype(jnp.float32)).astype(jnp.bfloat16)


def _clip(x: Array, most: float) -> Array:
    return jnp.minimum(jnp.maximum(x, -most), most)


def _arcsinh(x: Array) -> Array:
    size = jnp.abs(x)
    square = size * size + 1.0
    value = jnp.log(size + square * lax.rsqrt(square))
    return jnp.where(x < 0.0, -value, value)


def _fill(n: int) -> int:
    return -(-n // _LANES) * _LANES


def _to(a: Array, axis: int, count: int, fill: float = 0.0) -> Array:
    widths = [(0, 0)] * a.ndim
    widths[axis] = (0, count - a.shape[axis])
    return jnp.pad(a, widths, constant_values=fill)
