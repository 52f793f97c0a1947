"""The fused Langevin sampler beside plain JAX: accuracy against float64, moments, next states per second.

HalfCheetah's size (17 + 6 + 17 → 4 × 200 → 1), 60 steps, 5 members. On a machine without a GPU only `--small`
makes sense: plain JAX alone, to see that this script works. The kernel itself runs in the tests' interpreter.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mcetm.kernels import chains as plain
from mcetm.kernels.chains import Anchor, Chains, Moves, Pull, Recovery
from mcetm.kernels.hopper_plan import Tuning
from record import record

SMALL = "--small" in sys.argv
STEPS, DIM, WIDTH, DEPTH, MEMBERS = (6, 17, 40, 2, 2) if SMALL else (60, 17, 200, 4, 5)
SIZES = {"train": (4, 2)} if SMALL else {"train": (256, 10), "rollout": (50_000, 10)}
FLOP_PER_STATE = STEPS * 2 * 2 * ((2 * DIM + 6) * WIDTH + (DEPTH - 1) * WIDTH**2 + WIDTH)
"""Of the network as it is written, forward and back: what no cleverness or padding changes."""

CHECKED = (16, 4) if SMALL else (512, 8)
"""Rows and samples of the problems on which accuracy and moments are measured."""

Sampler = Callable[..., Any]
ALL = ("accuracy", "anchored", "latent", "recovery", "moments", *SIZES)


def variants() -> dict[str, tuple[Sampler, tuple[str, ...]]]:
    """The samplers to compare, and what is measured of each; those that matter most come first."""

    def plain_at(precision: str) -> Sampler:
        def run(chains: Chains, moves: Moves, *, key: jax.Array) -> jax.Array:
            with jax.default_matmul_precision(precision):
                return plain.sample(chains, moves, key=key)

        return run

    def on_hopper(**settings: Any) -> Sampler:
        def run(chains: Chains, moves: Moves, *, key: jax.Array) -> jax.Array:
            from mcetm.kernels import hopper  # not every JAX has its backend

            return hopper.sample(chains, moves, Tuning(**settings), key=key)

        return run

    found: dict[str, tuple[Sampler, tuple[str, ...]]] = {}
    if not SMALL:
        found["hopper float16"] = on_hopper(), ALL
    found |= {
        "plain float32": (plain_at("highest"), ("accuracy", "anchored", "latent", "recovery", "train")),
        "plain tf32": (plain_at("tensorfloat32"), ("accuracy", *SIZES)),
        "plain bf16": (plain_at("BF16_BF16_F32"), ("accuracy", *SIZES)),
    }
    if not SMALL:
        found |= {
            "hopper bfloat16": (on_hopper(operands="bfloat16"), ("accuracy", "anchored", "rollout")),
            "hopper float16 slices of 112": (on_hopper(slice_rows=112), ("rollout",)),
            "hopper float16 slices of 48": (on_hopper(slice_rows=48), ("rollout",)),
        }
    return found


def main() -> None:
    """Measure all variants; one that fails says why and leaves the others alone."""
    result: dict[str, Any] = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
    ceiling = _ceiling()
    result["ceiling_tflops"] = round(ceiling, 1)
    result["flop_per_next_state"] = FLOP_PER_STATE
    checks = {
        "accuracy": _chains(*CHECKED),
        "anchored": _chains(*CHECKED, anchored=True),
        "latent": _latent(*CHECKED),
        "recovery": _recovery(*CHECKED),
    }
    exact = {name: _exact(chains) for name, chains in checks.items()}
    with jax.default_matmul_precision("highest"):
        reference = _law(plain.sample)
    print("ceiling", result["ceiling_tflops"], "TFLOP/s", file=sys.stderr, flush=True)
    for name, (run, measured) in variants().items():
        if not _wanted(name):
            continue
        jitted, line = eqx.filter_jit(run), {}
        for what in measured:
            began = time.perf_counter()
            try:
                if what in checks:
                    line[what] = _accuracy(jitted, checks[what], exact[what])
                elif what == "moments":
                    line[what] = _moments(_law(jitted), reference)
                else:
                    line[what] = _speed(jitted, *SIZES[what], ceiling)
            except Exception as error:  # one failing variant must not lose the others
                line[what] = f"{type(error).__name__}: {str(error)[:900]}"
            print(
                f"{name}, {what} ({time.perf_counter() - began:.1f} s):",
                line[what],
                file=sys.stderr,
                flush=True,
            )
        result[name] = line
    record("sampler", result)


def _wanted(name: str) -> bool:
    """`--only WORD` keeps the variants whose names have WORD in them."""
    return "--only" not in sys.argv or sys.argv[sys.argv.index("--only") + 1] in name


def _chains(rows: int, samples: int, *, anchored: bool = False, noise: float = 0.0) -> Chains:
    """Random networks as steep as trained ones: gradients of about 1 in units of the data's spread."""
    keys = iter(jax.random.split(jax.random.key(0), 32))
    draw = lambda *shape: jax.random.normal(next(keys), shape)  # noqa: E731
    widths = [DIM, *[WIDTH] * DEPTH]
    return Chains(
        start=draw(MEMBERS, rows, samples, DIM),
        weights=tuple(
            1.4 * draw(MEMBERS, above, below) / np.sqrt(below) for below, above in itertools.pairwise(widths)
        ),
        biases=tuple(0.1 * draw(MEMBERS, WIDTH) for _ in range(DEPTH)),
        last=draw(MEMBERS, WIDTH) / np.sqrt(WIDTH),
        context=draw(MEMBERS, rows, WIDTH),
        noise=jnp.full(samples, noise),
        preconditioner=jnp.full((MEMBERS, rows, DIM), 0.3) if anchored else None,
        box=(jnp.full(DIM, -4.0), jnp.full(DIM, 4.0)),
        anchor=Anchor(
            0.3 * draw(MEMBERS, WIDTH, DIM), draw(MEMBERS, rows, DIM), jnp.full((MEMBERS, rows, DIM), 0.3)
        )
        if anchored
        else None,
        activations=("silu" if anchored else "relu",) * DEPTH,
    )


def _latent(rows: int, samples: int) -> Chains:
    """As in training with manifold negatives: codes below a decoder (3 × 64), pulled to where they start."""
    keys = iter(jax.random.split(jax.random.key(1), 16))
    draw = lambda *shape: jax.random.normal(next(keys), shape)  # noqa: E731
    top, widths = _chains(rows, samples), [10, 64, 64, 64, WIDTH]
    below = tuple(
        1.4 * draw(MEMBERS, above, under) / np.sqrt(under) for under, above in itertools.pairwise(widths)
    )
    start = draw(MEMBERS, rows, samples, 10)
    sigma = jax.random.uniform(next(keys), (MEMBERS, rows, samples), minval=0.05, maxval=0.3)
    return Chains(
        start=start,
        weights=(*below, *top.weights[1:]),
        biases=(*[0.1 * draw(MEMBERS, 64) for _ in range(3)], *top.biases),
        last=top.last,
        context=top.context,
        noise=top.noise,
        preconditioner=None,
        box=None,
        anchor=None,
        activations=("relu",) * (3 + DEPTH),
        entry=3,
        pull=Pull(start, sigma**-2),
    )


def _recovery(rows: int, samples: int) -> Chains:
    """As in training with manifold negatives: states whose codes (3 × 64 → 10) are drawn to others.

    So softly that explicit steps converge: at the paper's stiffness of up to 400 they go to and fro between
    clips, where a rounding error grows with every step whoever makes it.
    """
    keys = iter(jax.random.split(jax.random.key(2), 16))
    draw = lambda *shape: jax.random.normal(next(keys), shape)  # noqa: E731
    widths = [DIM, 64, 64, 64, 10]
    recovery = Recovery(
        tuple(draw(MEMBERS, above, below) / np.sqrt(below) for below, above in itertools.pairwise(widths)),
        tuple(0.1 * draw(MEMBERS, 64) for _ in range(2)),
        draw(MEMBERS, rows, 64),
        draw(MEMBERS, rows, samples, 10),
        jax.random.uniform(next(keys), (MEMBERS, rows, samples), minval=1.0, maxval=4.0),
        "relu",
    )
    flat = _chains(rows, samples)
    return eqx.tree_at(lambda c: c.recovery, flat, recovery, is_leaf=lambda leaf: leaf is None)


def _moves() -> Moves:
    return Moves(tuple(np.linspace(0.1, 0.01, STEPS)), "paper", gradient_clip=10.0, move_clip=0.5)


def _exact(chains: Chains) -> np.ndarray:
    """Where chains without noise end, in float64."""
    arrays, rest = eqx.partition(chains, eqx.is_array)
    arrays = jax.tree.map(np.asarray, arrays)
    with jax.enable_x64(True):
        wide = eqx.combine(jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), arrays), rest)
        end = eqx.filter_jit(plain.sample)(wide, _moves(), key=jax.random.key(0))
        return np.asarray(end)


def _accuracy(run: Sampler, chains: Chains, exact: np.ndarray) -> dict[str, float]:
    """Distance of the last points from float64's, in units of the distance travelled."""
    end = np.asarray(run(chains, _moves(), key=jax.random.key(1)), np.float64)
    travelled = np.sqrt(((exact - np.asarray(chains.start)) ** 2).mean())
    error = np.abs(end - exact)
    digits = lambda e: float(f"{e / travelled:.2g}")  # noqa: E731
    return {
        "rms": digits(np.sqrt((error**2).mean())),
        "median": digits(np.median(error)),
        "worst": digits(error.max()),
    }


def _law(run: Sampler) -> np.ndarray:
    """Last points of chains with noise; all of a member share start and context: draws of one law."""
    chains = _chains(*CHECKED)
    first = lambda a: jnp.broadcast_to(a[:, :1], a.shape)  # noqa: E731
    chains = eqx.tree_at(
        lambda c: (c.start, c.context, c.noise),
        chains,
        (first(chains.start[:, :, :1] + 0 * chains.start), first(chains.context), jnp.ones(CHECKED[1])),
    )
    seed = 3 if run is plain.sample else 2
    end = eqx.filter_jit(run)(chains, _moves(), key=jax.random.key(seed))
    return np.asarray(end, np.float64).reshape(MEMBERS, -1, DIM)


def _moments(ours: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    """Differences in mean and variance, in standard errors: about 1 where the laws are equal."""
    ends, n = (ours, theirs), ours.shape[1]
    mean = [e.mean(axis=1) for e in ends]
    var = [e.var(axis=1) for e in ends]
    fourth = [((e - e.mean(axis=1, keepdims=True)) ** 4).mean(axis=1) for e in ends]
    z_mean = (mean[0] - mean[1]) / np.sqrt((var[0] + var[1]) / n)
    z_var = (var[0] - var[1]) / np.sqrt(sum((f - v**2) / n for f, v in zip(fourth, var, strict=True)))
    return {
        "mean_rms_z": round(float(np.sqrt((z_mean**2).mean())), 2),
        "variance_rms_z": round(float(np.sqrt((z_var**2).mean())), 2),
        "worst_z": round(float(max(np.abs(z_mean).max(), np.abs(z_var).max())), 1),
    }


def _speed(run: Any, rows: int, samples: int, ceiling: float) -> dict[str, float]:
    """Median and spread of the time of one call, compilation apart."""
    chains, moves = _chains(rows, samples, noise=1.0), _moves()
    began = time.perf_counter()
    compiled = run.lower(chains, moves, key=jax.random.key(0)).compile()
    compile_s = time.perf_counter() - began
    times = []
    for i in range(2 + (3 if rows > 1000 else 10)):
        began = time.perf_counter()
        jax.block_until_ready(compiled(chains, moves, key=jax.random.key(i)))
        times.append(time.perf_counter() - began)
    times = times[2:]
    median = float(np.median(times))
    rate = MEMBERS * rows * samples / median
    tflops = rate * FLOP_PER_STATE / 1e12
    return {
        "ms": round(1e3 * median, 3),
        "spread_ms": round(1e3 * (max(times) - min(times)), 3),
        "compile_s": round(compile_s, 1),
        "million_next_states_per_s": round(rate / 1e6, 3),
        "tflops": round(tflops, 1),
        "share_of_ceiling": round(tflops / ceiling, 3),
    }


def _ceiling() -> float:
    """TFLOP/s of a large bf16 matrix product."""
    size = 256 if SMALL else 8192
    a, b = (jax.random.normal(jax.random.key(i), (size, size), jnp.bfloat16) for i in range(2))
    product = jax.jit(jnp.dot)
    product(a, b).block_until_ready()
    began = time.perf_counter()
    jax.block_until_ready([product(a, b) for _ in range(10)])
    return 10 * 2 * size**3 / (time.perf_counter() - began) / 1e12


if __name__ == "__main__":
    main()
