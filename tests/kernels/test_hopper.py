"""The kernel for Hopper GPUs: what it serves, and all of it in Pallas' interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import pytest

from mcetm.kernels.chains import Chains
from mcetm.kernels.hopper_plan import Tuning, serves
from tests.kernels.problems import MOVES, problem, pulled, recovering

hopper = pytest.importorskip("mcetm.kernels.hopper")
CASES = Path(__file__).with_name("hopper_in_interpreter.py")
TRIES, SECONDS = 3, 200.0


def test_the_kernel_goes_where_the_reference_goes() -> None:
    """In a process of its own: now and then the interpreter's threads wait for each other for ever."""
    pytest.importorskip("jax._src.pallas.mosaic_gpu.interpret.params")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(CASES)]
    for _ in range(TRIES):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            continue
        assert done.returncode == pytest.ExitCode.OK, done.stdout[-3000:]
        return
    pytest.fail(f"The interpreter hung {TRIES} times.")


def test_widths_that_do_not_fit_are_refused() -> None:
    assert serves([200] * 4, dim=17)
    assert not serves([256] * 4, dim=17)
    assert not serves([200], dim=17)
    assert not serves([200, 100], dim=17)
    assert not serves([200] * 4, dim=100)
    assert serves([200] * 4, dim=10, below=[64] * 3)
    assert not serves([200] * 4, dim=10, below=[128])
    assert not serves([200] * 4, dim=10, below=[64] * 20), "too much to keep in shared memory"


def test_an_encoder_must_fit_too() -> None:
    paper = [64, 64, 64, 10]
    assert serves([200] * 4, dim=17, encoder=paper)
    assert serves([200] * 4, dim=17, encoder=paper, anchored=True)
    assert not serves([200] * 4, dim=17, encoder=[128, 10])
    assert not serves([200] * 4, dim=17, encoder=[10]), "a linear one has no layer at which to enter"
    deep = [64] * 7 + [10]
    assert serves([200] * 4, dim=17, encoder=deep)
    assert not serves([200] * 4, dim=17, encoder=deep, anchored=True), "too much to keep in shared memory"


def test_a_ring_that_would_wait_for_ever_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        hopper.sample(problem("plain"), MOVES, Tuning(slots=1, slice_rows=48), key=jax.random.key(0))


@pytest.mark.parametrize(
    "chains",
    [problem("plain"), pulled(problem("latent")), recovering(problem("anchored"))],
    ids=["plain", "pulled", "recovering"],
)
def test_it_compiles_for_a_gpu(chains: Chains) -> None:
    lowered = jax.jit(lambda p, k: hopper.sample(p, MOVES, key=k)).trace(chains, jax.random.key(0))
    assert "mosaic_gpu" in lowered.lower(lowering_platforms=("cuda",)).as_text()
