import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mcetm.nn.members import in_step


def test_a_branch_on_a_common_flag_stays_a_branch_for_several_members() -> None:
    def member(x: Array, count: Array) -> Array:
        return jax.lax.cond(in_step(count % 2 == 0), lambda y: y + 1.0, lambda y: y, x)

    def both_sides(x: Array, count: Array) -> Array:
        return jax.lax.cond(count % 2 == 0, lambda y: y + 1.0, lambda y: y, x)

    x, even, odd = jnp.arange(3.0), jnp.full(3, 4), jnp.full(3, 5)
    for count in (even, odd):
        np.testing.assert_array_equal(jax.vmap(member)(x, count), jax.vmap(both_sides)(x, count))
    assert "cond[" in str(jax.make_jaxpr(jax.vmap(member))(x, even))
    assert "cond[" not in str(jax.make_jaxpr(jax.vmap(both_sides))(x, even)), "what it is there for"
