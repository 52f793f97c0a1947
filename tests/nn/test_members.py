"""Members that one program makes are those that are made step by step."""

from typing import Any, get_args

import equinox as eqx
import jax
import numpy as np
import pytest
from jaxtyping import PRNGKeyArray

from mcetm.compilation import quick_options
from mcetm.nn.members import make_members
from mcetm.nn.mlp import Initialisation, Linear


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(eqx.filter(tree, eqx.is_array))]


@pytest.mark.thorough
def test_one_program_makes_the_same_bits() -> None:
    def make(key: PRNGKeyArray) -> list[Linear]:
        return [Linear(3, 4, initialisation=name, key=key) for name in get_args(Initialisation)]

    keys = jax.random.split(jax.random.key(3), 3)
    assert jax.default_backend() != "cpu" or quick_options(), "the compiler is told to be quick"
    made, expected = leaves(make_members(make, keys)), leaves(eqx.filter_vmap(make)(keys))
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_network_of_ones_own_may_look_at_numbers_while_it_is_made() -> None:
    def make(key: PRNGKeyArray) -> Any:
        scale = float(jax.numpy.ones(()))  # no program could
        return scale * jax.random.normal(key, (2,))

    keys = jax.random.split(jax.random.key(0), 3)
    assert make_members(make, keys, network=make).shape == (3, 2)


def test_what_somebody_chose_for_the_compiler_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert quick_options() == {}, "tests compile in more haste already"
    monkeypatch.setattr(jax.config, "read", lambda name: False)
    assert jax.default_backend() != "cpu" or quick_options() == {"xla_backend_optimization_level": 1}
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    assert quick_options() == {}
