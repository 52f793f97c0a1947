"""A transition model as a file: what it draws as StableHLO, whatever it is made of, chains included."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mcetm.arguments import path_of, require, whole
from mcetm.dynamics.gaussian import GaussianModel
from mcetm.dynamics.model import EnergyModel, TransitionModel
from mcetm.errors import UserError
from mcetm.export.onnx import as_metadata, mlp
from mcetm.export.protobuf import Graph
from mcetm.export.stablehlo import write_function
from mcetm.files import write_bytes
from mcetm.nn.members import take_members
from mcetm.nn.mlp import as_mlp
from mcetm.versions import version_of

_MOST_SAMPLES = 1_000_000
"""Next states that each member draws, at most."""


def export_model(
    model: TransitionModel, path: str | Path, *, samples: int = 10, about: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write a transition model for other programs.

    `.stablehlo`: from `obs` and `action` (batch, columns) and a `seed` (one number, uint32) to `next_obs`
    (batch, members, samples, columns), the `energy` of each where the model has energies, and `prediction`.
    Row i draws with the i-th key that the seed is split into, as `model.samples` does.

    `.onnx`, of a Gaussian ensemble alone: `mean` and `std` (batch, members, columns) of its elites.

    **Arguments:**

    - `model`: a trained transition model.
    - `path`: the file to write; its ending is the format.
    - `samples`: next states that each member draws; of `.stablehlo` alone.
    - `about`: what else the file should say of itself, by name.

    **Returns:** the files that were written.
    """
    path, (obs_dim, action_dim) = path_of("path", path), _widths(model)
    whole("samples", samples, least=1, most=_MOST_SAMPLES)
    said = {"members": model.num_members, "samples": samples, **_said(obs_dim, action_dim, about)}
    if path.suffix.lower() == ".onnx":
        return _write_onnx(model, path, said)
    _require_stablehlo(path)

    def draw(obs: Array, action: Array, seed: Array) -> dict[str, Array]:
        keys = jax.random.split(jax.random.key(seed), obs.shape[0])
        drawn = jax.vmap(lambda s, a, k: model.draw(s, a, samples, key=k))(obs, action, keys)
        means = jax.vmap(lambda s, a, k: model.means(s, a, key=k).mean(axis=0))(obs, action, keys)
        found = {"next_obs": drawn.next_obs, "prediction": means}
        return found if drawn.energy is None else {**found, "energy": drawn.energy}

    inputs: dict[str, tuple[str | int, ...]] = {"obs": ("batch", obs_dim), "action": ("batch", action_dim)}
    return write_function(draw, {**inputs, "seed": ()}, path, about=said, kinds={"seed": jnp.uint32})


def export_energy(
    model: TransitionModel, path: str | Path, *, about: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write a model's energies: from `obs`, `action` and `next_obs` to `energy` (batch, members).

    **Arguments:**

    - `model`: a trained transition model with energies.
    - `path`: the file to write, with the ending `.stablehlo`.
    - `about`: what else the file should say of itself, by name.

    **Returns:** the files that were written.
    """
    path, (obs_dim, action_dim) = path_of("path", path), _widths(model)
    if not model.has_energy:
        raise UserError("This model has no energies to export, such as a standard ETM has.")
    _require_stablehlo(path)
    energetic = cast(EnergyModel, model)

    def energy(obs: Array, action: Array, next_obs: Array) -> dict[str, Array]:
        return {"energy": jax.vmap(energetic.energies)(obs, action, next_obs)}

    wide = {"obs": obs_dim, "action": action_dim, "next_obs": obs_dim}
    inputs: dict[str, tuple[str | int, ...]] = {name: ("batch", width) for name, width in wide.items()}
    said = {"members": model.num_members, **_said(obs_dim, action_dim, about)}
    return write_function(energy, inputs, path, about=said)


def _widths(model: TransitionModel) -> tuple[int, int]:
    require("model", model, "a trained transition model, such as mcetm.fit returns", TransitionModel)
    if model.widths is None:
        raise UserError(
            "This model does not say the widths of its states and actions (its property `widths`)."
        )
    return model.widths


def _said(obs_dim: int, action_dim: int, about: Mapping[str, Any] | None) -> dict[str, Any]:
    by = f"mcetm {version_of('mcetm')}"
    return {**(about or {}), "obs_dim": obs_dim, "action_dim": action_dim, "exported_by": by}


def _require_stablehlo(path: Path) -> None:
    if path.suffix.lower() != ".stablehlo":
        raise UserError(f"{path} names no kind of file that this is exported to; use .stablehlo.")


def _write_onnx(model: TransitionModel, path: Path, said: Mapping[str, Any]) -> list[Path]:
    if not model.has_density:
        raise UserError("Only a Gaussian ensemble is exported to ONNX; export this model to .stablehlo.")
    ensemble = cast(GaussianModel, model)
    graph, obs_dim = Graph(), said["obs_dim"]
    elites, scale = ensemble.of_elites(), ensemble.members.inputs
    first = graph.constant(np.array([1]))
    mean = np.concatenate([np.asarray(part.mean[0]) for part in (scale.obs, scale.action)])
    std = np.concatenate([np.asarray(part.std[0]) for part in (scale.obs, scale.action)])
    raw = graph.add("Concat", "obs", "action", axis=-1)
    pair = graph.add("Div", graph.add("Sub", raw, graph.constant(mean)), graph.constant(std))
    found: dict[str, list[str]] = {"mean": [], "std": []}
    for i in range(model.num_members):
        member = take_members(elites, i)
        network = as_mlp(member.network)
        if network is None:
            raise UserError("A model with a network of your own cannot be exported to ONNX; use .stablehlo.")
        layers = [(np.asarray(layer.weight).T, np.asarray(layer.bias)) for layer in network.layers]
        (last, bias), change = layers[-1], member.change_scale
        halves = [
            mlp(graph, pair, (*layers[:-1], (last[:, part], bias[part])), network.activation)
            for part in (slice(obs_dim), slice(obs_dim, None))
        ]
        # As `Gaussian.scaled` and `Gaussian.predict` have it.
        most, least = (graph.constant(b) for b in (member.max_log_variance, member.min_log_variance))
        below = graph.add("Sub", most, graph.add("Softplus", graph.add("Sub", most, halves[1])))
        between = graph.add("Add", least, graph.add("Softplus", graph.add("Sub", below, least)))
        spread = graph.add("Exp", graph.add("Mul", between, graph.constant(0.5)))
        units = graph.constant(change.std)
        moved = graph.add("Add", graph.add("Mul", halves[0], units), graph.constant(change.mean))
        for name, value in {
            "mean": graph.add("Add", "obs", moved),
            "std": graph.add("Mul", spread, units),
        }.items():
            found[name].append(graph.add("Unsqueeze", value, first))
    for name, parts in found.items():
        graph.add("Concat", *parts, to=name, axis=1)
    content = graph.model(
        "dynamics",
        {"obs": ("batch", obs_dim), "action": ("batch", said["action_dim"])},
        dict.fromkeys(found, ("batch", model.num_members, obs_dim)),
        metadata=as_metadata(said),
        producer=("mcetm", version_of("mcetm")),
    )
    write_bytes(path, content)
    return [path]
