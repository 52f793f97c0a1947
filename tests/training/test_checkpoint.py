import os
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import UserError
from mcetm.nn.mlp import MLP
from mcetm.training.checkpoint import arrays_of, load_checkpoint, save_checkpoint

CONFIG = {"model": {"width": 8, "name": "x"}, "rate": 0.1}


def state(width: int = 8, seed: int = 0) -> dict[str, Any]:
    return {
        "model": MLP(2, 1, width=width, depth=1, key=jax.random.key(seed)),
        "key": jax.random.key(seed + 7),
        "count": jnp.asarray(seed, jnp.int32),
        "half": jnp.full(3, 0.1, jnp.bfloat16),
        "flags": jnp.array([True, False]),
        "none": None,
    }


def test_everything_comes_back_as_it_was(tmp_path: Path) -> None:
    saved = state(seed=3)
    path = save_checkpoint(tmp_path, saved, step=12, config=CONFIG, extra={"note": "a"})
    found = load_checkpoint(path, state(seed=0), config=CONFIG)
    assert (found.step, found.extra) == (12, {"note": "a"})
    assert arrays_of(found.state).keys() == arrays_of(saved).keys()
    assert "model/layers/0/weight" in arrays_of(saved)
    for name, array in arrays_of(saved).items():
        other = arrays_of(found.state)[name]
        assert other.dtype == array.dtype, name
        raw = jax.random.key_data if jnp.issubdtype(array.dtype, jax.dtypes.prng_key) else np.asarray
        np.testing.assert_array_equal(raw(other), raw(array))
    x = jnp.ones(2)
    np.testing.assert_array_equal(found.state["model"](x), saved["model"](x))


def test_another_configuration_is_refused_with_the_place(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, state(), step=1, config=CONFIG)
    with pytest.raises(UserError, match=r"another configuration: 'model.width' was 8 and is now 9"):
        load_checkpoint(path, state(), config={**CONFIG, "model": {"width": 9, "name": "x"}})
    with pytest.raises(UserError, match="'seed' is in only one of them"):
        load_checkpoint(path, state(), config={**CONFIG, "seed": 1})


def test_other_shapes_and_other_arrays_are_refused(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, state(), step=1, config=CONFIG)
    with pytest.raises(
        UserError, match=r"array 'model/layers/0/weight' is float32\[8, 2\] and should be float32\[9, 2\]"
    ):
        load_checkpoint(path, state(width=9), config=CONFIG)
    with pytest.raises(UserError, match="array 'more' is in only one"):
        load_checkpoint(path, {**state(), "more": jnp.zeros(1)}, config=CONFIG)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "nonsense"])
def test_damage_is_refused(tmp_path: Path, damage: str) -> None:
    path = save_checkpoint(tmp_path, state(), step=1, config=CONFIG)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[:-10]
    elif damage == "flip":
        content[-5] ^= 1
    elif damage == "empty":
        content = bytearray()
    else:
        content = bytearray(b"nonsense" * 100)
    path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(path, state(), config=CONFIG)


def test_a_later_checkpoint_goes_when_an_earlier_step_is_saved(tmp_path: Path) -> None:
    """It was damaged, or the job would have gone on from there; kept, it would push out good ones."""
    for step in (10, 20, 30):
        save_checkpoint(tmp_path, state(), step=step, config=CONFIG)
    save_checkpoint(tmp_path, state(), step=25, config=CONFIG, keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000000025.safetensors"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_who_may_read_follows_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        path = save_checkpoint(tmp_path, state(), step=1, config=CONFIG)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_missing_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no checkpoint"):
        load_checkpoint(tmp_path / "step-000000000001.safetensors", state(), config=CONFIG)


def test_static_fields_come_from_the_template(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, state(), step=1, config=CONFIG)
    found = load_checkpoint(path, state(seed=1), config=CONFIG).state
    assert eqx.tree_equal(found["model"].activation, "relu")
    assert found["none"] is None
