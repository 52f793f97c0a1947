"""Exported dynamics draw what the model draws, run by the program that they are for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import TransitionModel, UserError
from mcetm.dynamics.energy import PlainEnergy
from mcetm.dynamics.gaussian import Gaussian, GaussianEnsemble, GaussianModel
from mcetm.dynamics.inference import EnergyTransitionModel, InferenceSettings
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import Autoencoder, AutoencoderSettings
from mcetm.export import export_energy, export_model
from mcetm.nn.scaling import Scaling
from tests.dynamics.test_energy import LOG, SPACE, STATISTICS
from tests.dynamics.test_model import TOY

KEYS = jax.random.split(jax.random.key(0), 3)


def ensemble(**more: Any) -> GaussianModel:
    """Three members, two of them elites."""
    make = lambda k: Gaussian(GaussianEnsemble(width=16, depth=2), STATISTICS, key=k, **more)  # noqa: E731
    return GaussianModel(eqx.filter_vmap(make)(KEYS), jnp.array([2, 0]))


def energies() -> EnergyTransitionModel:
    """Two energies with chains in latent space and in state space."""
    make = lambda k: PlainEnergy(STATISTICS, SPACE, width=16, depth=2, key=k)  # noqa: E731
    autoencoder = Autoencoder(AutoencoderSettings(width=8), Scaling.of(STATISTICS.obs), key=KEYS[0])
    chains = InferenceSettings(latent=Langevin(steps=3), ambient=Langevin(steps=3))
    return EnergyTransitionModel(eqx.filter_vmap(make)(KEYS[:2]), SPACE, ensemble(), autoencoder, chains)


READER = """
import sys, jax, numpy as np
from jax import export
for name in sys.argv[1:]:
    arguments = np.load(name + ".npz")
    program = export.deserialize(open(name + ".stablehlo", "rb").read())
    np.savez(name + "-out.npz", **program.call(*(arguments[n] for n in arguments.files)))
assert "mcetm" not in sys.modules
"""


def pairs() -> dict[str, np.ndarray]:
    """Rows of the log, and some far from it."""
    obs, action = LOG.obs[:6].copy(), LOG.action[:6].copy()
    obs[3:] *= 20.0
    return {"obs": obs, "action": action}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, np.ndarray]]:
    """What another process makes of the files, where nothing of ours is imported."""
    pytest.importorskip("flatbuffers")
    folder = tmp_path_factory.mktemp("models")
    about = {"data_checksum": "ab"}
    for name, model in {"ensemble": ensemble(), "energies": energies()}.items():
        beside = export_model(model, folder / f"{name}.stablehlo", samples=2, about=about)[1]
        assert '"data_checksum": "ab"' in beside.read_text()
        np.savez(folder / f"{name}.npz", allow_pickle=False, **pairs(), seed=np.uint32(5))
    export_energy(energies(), folder / "energy.stablehlo")
    np.savez(folder / "energy.npz", allow_pickle=False, **pairs(), next_obs=LOG.next_obs[:6])
    environment = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # programs of a test run once
    names = [str(folder / name) for name in ("ensemble", "energies", "energy")]
    subprocess.run([sys.executable, "-I", "-c", READER, *names], check=True, cwd="/", env=environment)
    found = {}
    for name in names:
        with np.load(f"{name}-out.npz") as arrays:
            found[Path(name).name] = dict(arrays)
    return found


@pytest.mark.parametrize("kind", ["ensemble", "energies"])
def test_stablehlo_draws_what_the_model_draws(kind: str, answers: dict[str, dict[str, np.ndarray]]) -> None:
    model: TransitionModel = ensemble() if kind == "ensemble" else energies()
    found, key = answers[kind], jax.random.key(5)
    wanted = model.samples(**pairs(), count=2, key=key)
    # Chains climb by rounding errors where a gradient is steep.
    np.testing.assert_allclose(found["next_obs"], wanted.next_obs, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found["prediction"], model.predict(**pairs(), key=key), rtol=1e-3, atol=1e-3)
    assert ("energy" in found) == model.has_energy
    if wanted.energy is not None:
        np.testing.assert_allclose(found["energy"], wanted.energy, rtol=1e-3, atol=1e-3)


def test_stablehlo_gives_the_energies_of_transitions(answers: dict[str, dict[str, np.ndarray]]) -> None:
    wanted = energies().energy(**pairs(), next_obs=LOG.next_obs[:6])
    np.testing.assert_allclose(answers["energy"]["energy"], wanted, rtol=1e-4, atol=1e-5)


def test_onnx_gives_means_and_spreads_of_the_elites(tmp_path: Path) -> None:
    onnx, runtime = (pytest.importorskip(name) for name in ("onnx", "onnxruntime"))
    model = ensemble()
    (path,) = export_model(model, tmp_path / "m.onnx", about={"obs_names": list("abcde")})
    onnx.checker.check_model(str(path), full_check=True)
    assert any(entry.key == "obs_names" for entry in onnx.load(path).metadata_props)
    mean, std = runtime.InferenceSession(path).run(None, pairs())
    assert (mean.shape, std.shape) == ((6, 2, 5), (6, 2, 5))
    wanted = jax.vmap(model.of_members)(*(jnp.asarray(part) for part in pairs().values()))
    for found, right in zip((mean, std), wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


def test_what_cannot_be_exported_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Only a Gaussian ensemble is exported to ONNX"):
        export_model(energies(), tmp_path / "m.onnx")
    with pytest.raises(UserError, match="no energies to export"):
        export_energy(ensemble(), tmp_path / "e.stablehlo")
    with pytest.raises(UserError, match=r"use \.stablehlo"):
        export_model(ensemble(), tmp_path / "m.h")
    with pytest.raises(UserError, match="does not say the widths"):
        export_model(TOY, tmp_path / "m.stablehlo")
    with pytest.raises(UserError, match="'samples' should be a whole number from 1"):
        export_model(ensemble(), tmp_path / "m.stablehlo", samples=0)
    assert not list(tmp_path.iterdir())
