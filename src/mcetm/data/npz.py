"""Transitions in an `.npz`: one array per field, named as in `Transitions`; ours carry a header too."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Unpack

import numpy as np

from mcetm.console import one_line
from mcetm.data import header
from mcetm.data.transitions import FIELDS, Transitions
from mcetm.data.validate import DataError, Fault, ReadOptions
from mcetm.files import write_bytes
from mcetm.formats import npz_names, read_npz

_HEADER = "mcetm"
_INFOS = "infos/"
_WANTED = {*FIELDS, "episode", _HEADER}


def read_transitions_npz(path: str | Path, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions from arrays `obs`, `action`, `reward`, `next_obs`, `terminated`, `truncated`, `episode`."""
    path = Path(path)
    arrays = read_npz(path, wanted=lambda name: name in _WANTED or name.startswith(_INFOS))
    if "obs" not in arrays:
        names = npz_names(path)
        found = ", ".join(f"'{one_line(name)}'" for name in names[:6])
        hint = "; this looks like a policy" if "last_fc/weight" in names else ""
        raise DataError(str(path), [Fault("obs", f"is missing; the file has {found or 'nothing'}{hint}")])
    stored = header.decode(str(arrays[_HEADER]) if _HEADER in arrays else None, str(path))
    fields = {name: arrays[name] for name in (*FIELDS, "episode") if name in arrays}
    infos = {name.removeprefix(_INFOS): array for name, array in arrays.items() if name.startswith(_INFOS)}
    return stored.build(fields, infos=infos, **options)


def write_transitions_npz(transitions: Transitions, path: Path, *, compress: bool = False) -> None:
    """Write every field, whole or not at all."""
    arrays = {name: getattr(transitions, name) for name in FIELDS}
    arrays |= {f"{_INFOS}{name}": array for name, array in transitions.infos.items()}
    text = np.array(header.encode(transitions))
    image = io.BytesIO()
    write = np.savez_compressed if compress else np.savez
    write(image, allow_pickle=False, **{_HEADER: text}, **arrays)
    write_bytes(path, image.getbuffer())
