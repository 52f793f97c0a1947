"""Transitions in an `.npz`: one array per field, named as in `Transitions`; ours carry a header too."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Unpack

import numpy as np

from mcetm.data import header
from mcetm.data.transitions import FIELDS, Transitions
from mcetm.data.validate import DataError, Fault, ReadOptions, build
from mcetm.files import write_bytes
from mcetm.formats import read_npz

_HEADER = "mcetm"
_INFOS = "infos/"


def read_transitions_npz(path: str | Path, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions from arrays `obs`, `action`, `reward`, `next_obs`, `terminated`, `truncated`, `episode`."""
    arrays = read_npz(Path(path))
    metadata = header.decode(str(arrays[_HEADER]) if _HEADER in arrays else None, str(path))
    fields = {
        name: arrays[name] for name in (*FIELDS, "episode") if name in arrays and name not in metadata.absent
    }
    if "obs" not in arrays:
        found = ", ".join(f"'{name}'" for name in list(arrays)[:6])
        hint = "; this looks like a policy" if "last_fc/weight" in arrays else ""
        raise DataError(str(path), [Fault("obs", f"is missing; the file has {found}{hint}")])
    infos = {name.removeprefix(_INFOS): array for name, array in arrays.items() if name.startswith(_INFOS)}
    return build(fields, metadata, infos=infos, **options)


def write_transitions_npz(transitions: Transitions, path: Path, *, compress: bool = False) -> None:
    """Write every field, whole or not at all."""
    arrays = {name: getattr(transitions, name) for name in FIELDS}
    arrays |= {f"{_INFOS}{name}": array for name, array in transitions.infos.items()}
    text = np.array(header.encode(transitions))
    image = io.BytesIO()
    write = np.savez_compressed if compress else np.savez
    write(image, allow_pickle=False, **{_HEADER: text}, **arrays)
    write_bytes(path, image.getbuffer())
