"""The landscape study: the embedding, its measures on known energies, and the whole at a small size."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from mcetm import UserError
from mcetm.cli import main
from mcetm.dynamics import (
    STANDARD,
    AutoencoderSettings,
    Box,
    Energy,
    EnergyTransitionModel,
    GaussianEnsemble,
    InferenceSettings,
    Langevin,
    Space,
)
from mcetm.nn import Scaling
from mcetm_experiments.landscape import study
from mcetm_experiments.landscape.embedding import Embedding
from mcetm_experiments.landscape.settings import LandscapeStudy
from mcetm_experiments.landscape.study import DISTANCES, LandscapeConfig, Probes, barriers, drift, slices
from mcetm_experiments.shared.baselines import BaselinesConfig, scaled_down
from tests.experiments.drawn import words_in
from tests.experiments.subjects import NoBaselines

EMBEDDINGS = (Embedding.draw(6, seed=0), Embedding.draw(4, seed=1))
NUMBERS = jnp.linspace(-3.0, 3.0, 301)


class Bowl(Energy):
    """E = stiff · distance² across the tangent at a point + soft · distance² along it + a level."""

    centre: Float[Array, " obs"]
    tangent: Float[Array, " obs"]
    stiff: Float[Array, ""]
    soft: Float[Array, ""]

    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, ""]:
        away = next_obs - self.centre
        along = away @ self.tangent
        return self.stiff * ((away**2).sum() - along**2) + self.soft * along**2 + obs[0]


def bowls(stiff: tuple[float, ...], soft: float) -> tuple[EnergyTransitionModel, Probes]:
    """Members of several steepnesses around the transition at s = 0.75, whose next state is 1."""
    pairs = np.column_stack([np.linspace(0.6, 0.9, 5), np.linspace(-1.0, 1.0, 5)])
    probes = Probes.at(pairs, EMBEDDINGS, key=jax.random.key(0))
    one = lambda k: Bowl(probes.ground_truth[0], probes.tangent[0], k, jnp.asarray(soft))  # noqa: E731
    members = jax.vmap(one)(jnp.asarray(stiff))
    wide = jnp.full(6, 9.0)
    space = Space(Scaling(jnp.zeros(6), jnp.ones(6)), Box(-wide, wide), "next_obs")
    return EnergyTransitionModel(members, space, config=InferenceSettings(start="noise", latent=None)), probes


def test_the_embedding_is_injective_and_smooth_and_keeps_lengths() -> None:
    states, _ = EMBEDDINGS
    points = jax.vmap(states)(NUMBERS)
    np.testing.assert_allclose(jax.vmap(states.inverse)(points), NUMBERS, atol=1e-5)
    np.testing.assert_array_equal(points, jax.vmap(Embedding.draw(6, seed=0))(NUMBERS))
    assert not np.allclose(points, jax.vmap(Embedding.draw(6, seed=2))(NUMBERS))
    # Not a straight line: no two dimensions hold all of the curve.
    spectrum = np.linalg.svd(np.asarray(points - points.mean(axis=0)), compute_uv=False)
    assert spectrum[2] > 0.1 * spectrum[0]
    speed = jax.vmap(lambda x: jax.jvp(states, (x,), (jnp.ones_like(x),))[1])
    drawn = jax.random.normal(jax.random.key(0), (20_000,))
    assert float((speed(drawn) ** 2).sum(axis=-1).mean()) == pytest.approx(1.0, abs=0.02)


def test_tangent_and_normal_are_unit_vectors_at_right_angles() -> None:
    states, _ = EMBEDDINGS
    x, step = jnp.asarray(0.3), jnp.asarray(1e-2)
    tangent, normal = states.tangent(x), states.normal(x, key=jax.random.key(1))
    secant = states(x + step) - states(x - step)
    np.testing.assert_allclose(tangent, secant / jnp.linalg.norm(secant), atol=1e-3)
    np.testing.assert_allclose(
        [tangent @ tangent, normal @ normal, tangent @ normal], [1.0, 1.0, 0.0], atol=1e-5
    )


def test_distances_from_the_curve() -> None:
    states, _ = EMBEDDINGS
    x = jnp.asarray(0.3)
    off = states(x) + 0.05 * states.normal(x, key=jax.random.key(1))
    found = states.distance(jnp.stack([states(x), off]), -2.0, 2.0)
    np.testing.assert_allclose(found, [0.0, 0.05], atol=2e-4)


def test_an_embedding_in_one_dimension_is_a_users_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="at least 2 dimensions, not 1"):
        Embedding.draw(1, seed=0)
    assert main(["study", "landscape", "--state-dim", "1"]) == 2
    assert "at least 2 dimensions" in capsys.readouterr().err


def test_gaps_of_a_bowl_are_its_steepness_times_the_distance_squared() -> None:
    model, probes = bowls((100.0, 20.0), soft=5.0)
    found, squares = barriers(model, probes), np.square(DISTANCES)
    np.testing.assert_allclose(found["normal"], squares[:, None] * [100.0, 20.0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found["tangent"], squares[:, None] * [5.0, 5.0], rtol=1e-2, atol=1e-4)
    assert (found["pairs"] == 1.0).all()
    # Levels differ by obs[0] between probes, so a small step does not show, and a large one does.
    assert (np.diff(found["auroc"], axis=0) >= 0).all()
    assert found["auroc"][0, 1] < 0.7
    assert found["auroc"][-1, 0] == 1.0


def test_slices_have_the_normal_upwards_and_the_truth_in_the_middle() -> None:
    model, probes = bowls((100.0,), soft=5.0)
    found = slices(model, probes, 5)
    assert found.shape == (5, 5, 5)
    reach = DISTANCES[-1] ** 2
    np.testing.assert_allclose(
        found[0][2], [5 * reach, 5 * reach / 4, 0, 5 * reach / 4, 5 * reach], atol=1e-3
    )
    np.testing.assert_allclose(found[0][:, 2], 20 * found[0][2], rtol=1e-3, atol=1e-3)


def test_long_chains_stay_in_a_bowl_and_leave_a_hill() -> None:
    model, probes = bowls((50.0, -50.0), soft=5.0)
    still = Langevin(steps=20, first=0.02, last=0.02, noise=0.1)
    config = LandscapeConfig(tiny().baselines, chain=still, pieces=2)
    found = drift(model, probes, config, EMBEDDINGS[0], key=jax.random.key(0))
    assert found.shape == (2, 2)
    assert found[-1, 0] < 0.02
    assert found[-1, 1] > 0.1


def tiny() -> LandscapeConfig:
    short = Langevin(steps=2)
    baselines = BaselinesConfig(
        gaussian=GaussianEnsemble(members=2, elites=2, width=8, depth=1, steps=12, batch_size=16),
        standard=replace(STANDARD, variable="next_obs"),  # as in the study
        autoencoder=AutoencoderSettings(latent_dim=2, width=8, depth=1, steps=20, batch_size=16),
        standard_inference=InferenceSettings(latent=None, ambient=short),
        plain_inference=InferenceSettings(latent=short, ambient=short),
    )
    baselines = scaled_down(
        baselines, batch_size=8, count=2, width=8, depth=1, steps=12, latent=short, ambient=short
    )
    return LandscapeConfig(
        baselines, seeds=2, transitions=200, probes=6, starts=2, chain=short, pieces=2, resolution=5, chunks=3
    )


def test_the_study_writes_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(study.PRESETS, "quick", tiny)
    two = ("standard ETM", "MC-ETM")  # every model is trained alike, and each takes seconds to compile
    monkeypatch.setattr(study, "MODELS", {name: study.MODELS[name] for name in two})
    command = ["study", "landscape", "--state-dim", "5", "--action-dim", "3", "--out", str(tmp_path)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("standard ETM", "MC-ETM", "along the normal"))
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["config"]["state_dim"] == 5
    for model in results["models"].values():
        assert np.shape(model["normal"]["seeds"]) == (len(DISTANCES), 2)
        assert np.shape(model["drift"]["mean"]) == (2,)
        assert np.shape(model["curve"]["normal"]["mean"]) == (3,)
        assert np.all(np.diff(model["curve"]["seconds"]) > 0)
        # The last of the curve is the finished model.
        assert model["curve"]["normal"]["mean"][-1] == pytest.approx(model["normal"]["mean"][2], rel=1e-3)
    for name in ("landscape", "landscape-numbers"):
        assert {*two} <= words_in(tmp_path / name)

    monkeypatch.setattr(study, "Baselines", NoBaselines)
    for drawing in ("draw_slices", "draw_numbers"):
        monkeypatch.setattr(study, drawing, lambda *_: None)  # seconds each, and seen above
    same = LandscapeStudy(out=tmp_path, state_dim=5, action_dim=3)
    again = study.run_landscape(same)
    assert again["models"] == results["models"]
    with pytest.raises(AssertionError, match="trained again"):
        study.run_landscape(same, replace(tiny(), starts=1))
