"""The fused sampler for Hopper GPUs, through Pallas' Mosaic backend: 128 chains to a multiprocessor.

Two warpgroups compute, 64 chains each; a third feeds them weights through a ring in shared memory. Device
memory sees the last states only. docs/research/kernels.md explains the parts.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.kernels.chains import Chains, Moves
from mcetm.kernels.hopper_plan import CHUNK, GROUPS, ROWS, SWIZZLE, Program, Tuning, plan, round_up
from mcetm.kernels.hopper_worker import Worker
from mcetm.kernels.random import key_words


def sample(
    chains: Chains, moves: Moves, tuning: Tuning | None = None, *, key: PRNGKeyArray
) -> Float[Array, "members rows samples dim"]:
    """The last points of all chains: what `chains.sample` returns, with other random numbers."""
    members, rows, samples, dim = chains.start.shape
    tuning = tuning or Tuning()
    tiles = -(-rows * samples // (ROWS * GROUPS))
    program = plan(chains, moves, tuning)

    def per_chain(a: Array, fill: float = 0.0) -> Array:
        return _to(_to(a, 2, round_up(a.shape[2]), fill), 1, tiles * ROWS * GROUPS, fill)

    def per_row(a: Array, fill: float = 0.0) -> Array:
        return per_chain(jnp.repeat(a, samples, axis=1), fill)

    def per_sample(a: Array) -> Array:
        flat = a.reshape(members, rows * samples, *a.shape[3:])
        return per_chain(flat) if flat.ndim == 3 else _to(flat, 1, tiles * ROWS * GROUPS)

    def matrix(weight: Array) -> Array:
        filled = _to(_to(weight, 1, round_up(weight.shape[1])), 2, round_up(weight.shape[2]))
        return filled.swapaxes(1, 2).astype(tuning.operands)

    def vector(a: Array) -> Array:
        return _to(a, 1, round_up(a.shape[1]))

    upward = [matrix(weight) for weight in chains.weights]
    recovery = chains.recovery
    inputs: dict[str, Any] = {
        "start": per_sample(chains.start),
        # Where preconditioner is 0, nothing ever moves: this holds the columns that only fill up.
        "preconditioner": per_row(
            jnp.ones((members, rows, dim)) if chains.preconditioner is None else chains.preconditioner
        ),
        "noise": _to(jnp.tile(chains.noise, rows), 0, tiles * ROWS * GROUPS),
        "context": per_row(chains.context),
        # One array: of two, a program would have to keep two addresses. `Worker.alike` knows the order.
        "vectors": jnp.concatenate(
            [
                *[vector(bias) for bias in chains.biases],
                vector(chains.last),
                *[vector(bias) for bias in (recovery.biases if recovery else ())],
                *[vector(jnp.tile(edge, (members, 1))) for edge in chains.box or ()],
            ],
            axis=1,
        ),
        "factors": jnp.asarray(moves.factors(), jnp.float32),
        "seed": key_words(key),
        "resident": [upward[layer] for layer in program.resident],
        # In the order of use: up, then down.
        "streamed": jnp.stack(
            [upward[layer] for layer in program.streamed]
            + [upward[layer].swapaxes(1, 2) for layer in reversed(program.streamed)],
            axis=1,
        ),
    }
    if chains.anchor is not None:
        inputs["mean"] = per_row(chains.anchor.mean)
        inputs["spread"] = per_row(chains.anchor.spread, 1.0)
        inputs["resident"].append(matrix(chains.anchor.weight))
    if chains.pull is not None:
        inputs["centre"] = per_sample(chains.pull.centre)
        inputs["stiffness"] = per_sample(chains.pull.stiffness)
    if recovery is not None:
        inputs["resident"] += [matrix(weight) for weight in recovery.weights]
        inputs["recovery context"] = per_row(recovery.context)
        inputs["recovery centre"] = per_sample(recovery.centre)
        inputs["recovery stiffness"] = per_sample(recovery.stiffness)
    leaves, tree = jax.tree.flatten(inputs)
    run = plgpu.kernel(
        lambda *refs: _body(program, tree.unflatten(refs[: len(leaves)]), *refs[len(leaves) :]),
        out_type=jax.ShapeDtypeStruct(inputs["start"].shape, jnp.float32),
        grid=(members, tiles),
        grid_names=("member", "tile"),
        num_threads=GROUPS + 1,
        thread_name="group",
        scratch_types=_scratch(program),
        # Barriers at every store to shared memory are not needed: a warp writes those rows of the operand
        # that it alone reads, and `commit_smem` comes between.
        compiler_params=plgpu.CompilerParams(
            approx_math=True,
            unsafe_no_auto_barriers=True,
            lowering_semantics=plgpu.LoweringSemantics.Lane,  # JAX 0.11 has another default
        ),
        **({} if tuning.interpret is None else {"interpret": tuning.interpret}),
    )
    return run(*leaves)[:, : rows * samples, :dim].reshape(chains.start.shape)


def _scratch(program: Program) -> list[Any]:
    """Shared memory (the ring, the operands of both groups, the resident weights) and barriers."""
    transforms = (plgpu.TilingTransform((8, CHUNK)), plgpu.SwizzleTransform(SWIZZLE))
    shared = lambda *shape: plgpu.SMEM(  # noqa: E731
        shape, jnp.dtype(program.tuning.operands), transforms=transforms
    )
    return [
        shared(program.slots, program.slices[0][1], program.widths[-1]),
        shared(GROUPS, ROWS, program.breadth),
        [shared(*shape) for shape in program.held],
        plgpu.Barrier(num_barriers=program.slots),
        plgpu.Barrier(num_arrivals=GROUPS, num_barriers=program.slots),
        plgpu.Barrier(num_barriers=len(program.held)),
    ]


def _body(
    program: Program, refs: Any, end: Any, ring: Any, operands: Any, resident: Any, *barriers: Any
) -> None:
    """What the three warpgroups do."""
    full, empty, loaded = barriers
    member, tile, group = lax.axis_index("member"), lax.axis_index("tile"), lax.axis_index("group")
    steps = len(program.moves.sizes)

    @pl.when(group == GROUPS)
    def _feed() -> None:
        plgpu.set_max_registers(40, action="decrease")
        for i, (source, target) in enumerate(zip(refs["resident"], resident, strict=True)):
            plgpu.copy_gmem_to_smem(source.at[member], target, loaded.at[i])

        def feed(turn: Array, _: None) -> None:
            matrix = lax.rem(turn, 2 * len(program.streamed))
            for piece, (first, size) in enumerate(program.slices):
                count = turn * len(program.slices) + piece
                slot = lax.rem(count, program.slots)

                @pl.when(count >= program.slots)
                def _wait(slot: Array = slot) -> None:
                    plgpu.barrier_wait(empty.at[slot])

                source = refs["streamed"].at[member, matrix, pl.ds(first, size)]
                plgpu.copy_gmem_to_smem(source, ring.at[slot, pl.ds(0, size)], full.at[slot])

        lax.fori_loop(0, steps * 2 * len(program.streamed), feed, None)
        for slot in range(min(program.slots, program.parts * steps)):
            plgpu.barrier_wait(empty.at[slot])

    @pl.when(group < GROUPS)
    def _compute() -> None:
        plgpu.set_max_registers(232, action="increase")
        for i in range(len(resident)):
            plgpu.barrier_wait(loaded.at[i])
        rows = pl.ds((tile * GROUPS + group) * ROWS, ROWS)
        worker = Worker(program, refs, ring, operands.at[group], resident, full, empty, member, rows)
        chunks = [pl.ds(first, CHUNK) for first in range(0, program.widths[0], CHUNK)]
        x = tuple(worker.mine("start", at) for at in chunks)
        x = lax.fori_loop(0, steps, worker.move, x)
        for at, chunk in zip(chunks, x, strict=True):
            end[member, rows, at] = chunk


def _to(a: Array, axis: int, count: int, fill: float = 0.0) -> Array:
    """Fill up an axis to this length."""
    widths = [(0, 0)] * a.ndim
    widths[axis] = (0, count - a.shape[axis])
    return jnp.pad(a, widths, constant_values=fill)
