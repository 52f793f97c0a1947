"""A policy as an `.npz` of plain arrays and one Python file that needs the standard library alone."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np

from mcetm.dynamics.plain_pairs import Layers
from mcetm.errors import UserError
from mcetm.export.content import PolicyContent
from mcetm.files import path_kind, write_bytes, write_text

_SOURCE = Path(__file__).with_name("standalone.py")


def write_npz(content: PolicyContent, path: Path) -> list[Path]:
    """`policy.npz` and `policy.py` beside it."""
    program, source = path.with_suffix(".py"), _SOURCE.read_text("utf-8")
    _check_program(program, source)
    pairs = content.pairs
    networks: dict[str, Layers] = {"actor": content.layers, "encoder": (), "decoder": (), "odds": ()}
    activations = {"actor": content.nonlinearity}
    arrays: dict[str, np.ndarray] = {}
    numbers: dict[str, float] = {}
    if pairs is not None:
        networks |= {"encoder": pairs.encoder, "decoder": pairs.decoder, "odds": pairs.odds}
        activations |= {"encoder": pairs.activation, "decoder": pairs.activation}
        activations |= {} if pairs.odds_activation is None else {"odds": pairs.odds_activation}
        arrays |= {"mean": pairs.mean, "std": pairs.std, "whitening": pairs.whitening.T}
        numbers = {name: getattr(pairs, name) for name in ("radius", "usual", "reach", "extent", "bound")}
    for name, layers in networks.items():
        for i, (weight, bias) in enumerate(layers):
            arrays |= {f"{name}/{i}/weight": weight.T, f"{name}/{i}/bias": bias}
    parts = {
        "layers": {name: len(layers) for name, layers in networks.items()},
        "activations": activations,
        "numbers": numbers,
        "far": pairs is not None and pairs.far,
    }
    about = json.dumps({**content.about, "parts": parts}, indent=1)
    stream = io.BytesIO()
    plain = {name: np.ascontiguousarray(array, "<f4") for name, array in arrays.items()}
    np.savez(stream, allow_pickle=False, about=np.frombuffer(about.encode(), np.uint8), **plain)
    write_bytes(path, stream.getvalue())
    write_text(program, source)
    return [path, program]


def _check_program(path: Path, source: str) -> None:
    """Never replace a program of the user's own, and hide no module of Python's."""
    if path.stem in sys.stdlib_module_names or path.stem in ("numpy", "mcetm"):
        raise UserError(f"{path} would be taken for Python's own module '{path.stem}'; choose another name.")
    if path_kind(path) != "nothing" and not path.read_bytes().startswith(source[:40].encode()):
        raise UserError(f"{path} is not an exported policy and would be replaced; choose another name.")
