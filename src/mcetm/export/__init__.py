"""A policy or a model as a file that other programs run: the suffix of the file says which kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mcetm.arguments import path_of
from mcetm.dynamics.plain_pairs import PlainPairScore
from mcetm.errors import UserError
from mcetm.export.c import write_header
from mcetm.export.content import PolicyContent
from mcetm.export.model import export_energy, export_model
from mcetm.export.npz import write_npz
from mcetm.export.onnx import write_onnx
from mcetm.export.stablehlo import write_stablehlo
from mcetm.tasks.policy import TanhGaussianPolicy

FORMATS: dict[str, Callable[[PolicyContent, Path], list[Path]]] = {
    ".npz": write_npz,
    ".h": write_header,
    ".onnx": write_onnx,
    ".stablehlo": write_stablehlo,
}
"""What writes each kind of file."""

__all__ = ["FORMATS", "PolicyContent", "export_energy", "export_model", "export_policy"]


def export_policy(
    network: TanhGaussianPolicy, pairs: PlainPairScore | None, about: Mapping[str, Any], path: str | Path
) -> list[Path]:
    """Write a policy, its score of pairs if there is one, and what is known of it; the files."""
    path = path_of("path", path)
    write = FORMATS.get(path.suffix.lower())
    if write is None:
        raise UserError(f"{path} names no kind of export; its suffix should be one of {', '.join(FORMATS)}.")
    return write(PolicyContent.of(network, pairs, about), path)
