"""A saved policy knows where to trust it: its score of pairs is in its files, and needs no JAX."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save

from mcetm import UserError, load_policy
from mcetm.agents.policy import _checksum
from mcetm.dynamics import PlainPairScore
from tests.export.example import observations, pair_score, scored_policy


@pytest.mark.parametrize("odds", ["relu", "silu", "gelu", "tanh", None])
@pytest.mark.parametrize("far", [True, False])
def test_the_score_in_numpy_is_the_score_of_the_world(odds: str | None, far: bool) -> None:
    if odds is None and not far:
        pytest.skip("nothing is left of it")
    score = pair_score(odds=odds, far=far)  # pyright: ignore[reportArgumentType]
    obs, action = observations(), np.random.default_rng(0).normal(size=(len(observations()), 2))
    action = action.astype(np.float32)
    plain = PlainPairScore.of(score)
    np.testing.assert_allclose(
        plain(obs, action), score(jnp.asarray(obs), jnp.asarray(action)), rtol=2e-4, atol=1e-4
    )
    one = plain(obs[0], action[0])
    assert one.shape == ()
    np.testing.assert_allclose(one, plain(obs, action)[0], rtol=1e-5)


def test_a_policy_that_was_saved_is_trusted_as_it_was(tmp_path: Path) -> None:
    policy, obs = scored_policy(), observations()
    policy.save(tmp_path)
    again, before = load_policy(tmp_path).trust(obs), policy.trust(obs)
    assert 0 < before.trusted.sum() < len(obs)
    np.testing.assert_array_equal(again.score, before.score)
    np.testing.assert_array_equal(again.trusted, before.trusted)
    assert again.limit == before.limit
    load_policy(tmp_path).save(tmp_path / "twice")
    np.testing.assert_array_equal(load_policy(tmp_path / "twice").trust(obs).score, before.score)


def test_what_is_too_large_for_any_number_is_not_trusted() -> None:
    score = PlainPairScore.of(pair_score())
    for size in (1e30, 3e38, np.inf, np.nan):
        assert not score(np.full(3, size, np.float32), np.zeros(2, np.float32)) <= score.limit


def test_a_policy_without_a_score_says_so_when_it_is_loaded(tmp_path: Path) -> None:
    scored_policy(trust=False).save(tmp_path)
    assert not any(name.startswith("trust/") for name in load_file(tmp_path / "policy.safetensors"))
    with pytest.raises(UserError, match="no score of pairs in its files"):
        load_policy(tmp_path).trust(np.zeros(3))


def test_a_policy_of_the_format_before_is_read(tmp_path: Path) -> None:
    scored_policy(trust=False).save(tmp_path)
    about = json.loads((tmp_path / "policy.json").read_text())
    about = {name: value for name, value in about.items() if name != "trust"} | {"format": 2}
    about["checksum"] = _checksum(about, (tmp_path / "policy.safetensors").read_bytes())
    (tmp_path / "policy.json").write_text(json.dumps(about))
    np.testing.assert_array_equal(
        load_policy(tmp_path)(observations()), scored_policy(trust=False)(observations())
    )


@pytest.mark.parametrize(("name", "array", "words"), [
    ("trust/limit", None, "the score of pairs has no array 'limit'"),
    ("trust/mean", np.zeros(4, np.float32), r"'mean' of the score of pairs has the shape \(4,\)"),
    ("trust/std", np.zeros(5, np.float32), "a scale that is not above 0"),
    ("trust/reach", np.float32(0.0), "a scale that is not above 0"),
    ("trust/odds0/bias", np.full(8, np.nan, "f4"), "'odds0/bias' of the score of pairs has numbers that"),
    ("trust/decoder2/weight", np.zeros((4, 8), np.float32), r"'decoder2/weight' of the score of pairs"),
    ("trust/more", np.zeros(1, np.float32), "its array 'trust/more' is not known"),
])  # fmt: skip
def test_a_score_that_does_not_fit_is_one_sentence(
    tmp_path: Path, name: str, array: np.ndarray | None, words: str
) -> None:
    scored_policy().save(tmp_path)
    arrays = load_file(tmp_path / "policy.safetensors")
    if array is None:
        del arrays[name]
    else:
        arrays[name] = np.asarray(array)
    weights = save(arrays)
    about = json.loads((tmp_path / "policy.json").read_text())
    (tmp_path / "policy.safetensors").write_bytes(weights)
    (tmp_path / "policy.json").write_text(json.dumps({**about, "checksum": _checksum(about, weights)}))
    with pytest.raises(UserError, match=words):
        load_policy(tmp_path)
