"""The sampler as mathematics: stationary laws, schedules, clips, stability."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcetm.dynamics.langevin import Box, Convention, Langevin

MEAN = jnp.array([1.0, -2.0])
SPREAD = jnp.array([0.5, 2.0])
FREE = partial(Langevin, gradient_clip=None, move_clip=None)


def gaussian(x: jax.Array) -> jax.Array:
    return 0.5 * (((x - MEAN) / SPREAD) ** 2).sum()


def chains(sampler: Langevin, count: int = 4000, **options: object) -> np.ndarray:
    keys = jax.random.split(jax.random.key(0), count)
    run = jax.jit(jax.vmap(lambda k: sampler(gaussian, jnp.zeros(2), key=k, **options)))  # pyright: ignore[reportArgumentType]
    return np.asarray(run(keys))


def test_the_papers_convention_samples_the_boltzmann_law() -> None:
    ends = chains(FREE(steps=2000, first=0.02, last=0.02, convention="paper", noise=1.0))
    np.testing.assert_allclose(ends.mean(axis=0), MEAN, atol=0.1)
    np.testing.assert_allclose(ends.std(axis=0), SPREAD, rtol=0.06)


def test_the_other_convention_does_not() -> None:
    # Its noise shrinks with the step: it ends at the minimum, whatever the temperature of the law.
    ends = chains(FREE(steps=2000, first=0.5, last=1e-3, noise=0.5))
    np.testing.assert_allclose(ends.mean(axis=0), MEAN, atol=0.1)
    assert (ends.std(axis=0) < 0.3 * SPREAD).all()


def test_preconditioning_keeps_the_law_and_evens_out_the_speed() -> None:
    sampler = FREE(steps=30, first=0.1, last=0.1, convention="paper", noise=1.0)
    plain, scaled = chains(sampler), chains(sampler, preconditioner=SPREAD)
    # The wide direction is still far from stationary without it, and there with it.
    assert plain[:, 1].std() < 1.85
    np.testing.assert_allclose(scaled.std(axis=0), SPREAD, rtol=0.1)
    np.testing.assert_allclose(scaled.mean(axis=0), MEAN, atol=0.2)


@given(
    steps=st.sampled_from([2, 3, 17, 100]),  # each length is compiled
    first=st.floats(1e-3, 1.0),
    last=st.floats(1e-5, 1.0),
    power=st.floats(0.5, 3.0),
)
@settings(max_examples=40, deadline=None)
def test_schedules_begin_and_end_where_they_say(steps: int, first: float, last: float, power: float) -> None:
    sizes = np.asarray(Langevin(steps=steps, first=first, last=last, power=power).sizes())
    assert len(sizes) == steps
    np.testing.assert_allclose(sizes[[0, -1]], [first, last], rtol=1e-4)
    differences = np.diff(sizes) * np.sign(last - first)
    assert (differences >= -1e-6).all()


@pytest.mark.parametrize(("steps", "total"), [(20, 0.68), (30, 1.02), (50, 1.68), (100, 3.35)])
def test_the_sums_of_empos_schedule(steps: int, total: float) -> None:
    assert float(Langevin(steps=steps, first=0.1, last=1e-5).sizes().sum()) == pytest.approx(total, abs=0.01)


def test_a_single_step_has_the_first_size() -> None:
    assert Langevin(steps=1, first=0.3, last=0.1).sizes().tolist() == pytest.approx([0.3])


def test_clips_and_box_bound_a_chain() -> None:
    steep = lambda x: 1e6 * x.sum()  # noqa: E731
    key = jax.random.key(0)
    start = jnp.zeros(2)
    moved = FREE(steps=10, first=0.1, last=0.1, noise=0.0, move_clip=0.05)(steep, start, key=key)
    np.testing.assert_allclose(moved, -0.5, rtol=1e-5)
    clipped = FREE(steps=10, first=0.1, last=0.1, noise=0.0, gradient_clip=2.0)(steep, start, key=key)
    np.testing.assert_allclose(clipped, -10 * 0.5 * 0.1 * 2.0, rtol=1e-5)
    box = Box(jnp.array([-0.3, -9.0]), jnp.array([0.3, 9.0]))
    boxed = FREE(steps=10, first=0.1, last=0.1, noise=0.0, gradient_clip=1e9)(steep, start, box=box, key=key)
    np.testing.assert_allclose(boxed, [-0.3, -9.0])


@given(
    stiffness=st.floats(0.0, 1e6), size=st.floats(1e-4, 1.0), convention=st.sampled_from(["paper", "empo"])
)
@settings(max_examples=15, deadline=None)
def test_a_pull_never_makes_a_chain_diverge(stiffness: float, size: float, convention: Convention) -> None:
    sampler = FREE(steps=30, first=size, last=size, convention=convention, noise=0.0)
    start, centre = jnp.full(2, 3.0), jnp.full(2, 1.0)
    flat = lambda x: 0.0 * x.sum()  # noqa: E731
    end = sampler(flat, start, pull=(centre, jnp.asarray(stiffness)), key=jax.random.key(0))
    # Between where it began and what pulls it.
    assert ((end >= 1.0 - 1e-4) & (end <= 3.0 + 1e-4)).all()


def test_a_pull_samples_the_product_of_both_laws() -> None:
    sampler = FREE(steps=1500, first=0.02, last=0.02, convention="paper", noise=1.0)
    centre, stiffness = jnp.array([3.0, 3.0]), jnp.asarray(4.0)
    ends = chains(sampler, pull=(centre, stiffness))
    precision = 1 / SPREAD**2 + stiffness
    np.testing.assert_allclose(
        ends.mean(axis=0), (MEAN / SPREAD**2 + stiffness * centre) / precision, atol=0.05
    )
    np.testing.assert_allclose(ends.std(axis=0), 1 / np.sqrt(precision), rtol=0.07)


def test_a_chain_is_a_function_of_its_key_and_nothing_flows_back_through_it() -> None:
    sampler = Langevin(steps=5, first=0.1, last=0.1)
    start = jnp.zeros(2)
    first, again = (sampler(gaussian, start, key=jax.random.key(1)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, sampler(gaussian, start, key=jax.random.key(2)))
    gradient = jax.grad(lambda x: sampler(gaussian, x, key=jax.random.key(1)).sum())(start)
    assert not np.any(gradient)
