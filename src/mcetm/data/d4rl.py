"""D4RL's HDF5 layout, read and written without d4rl; it is also the layout of the files we collect.

Other libraries can read what we write. What D4RL has no field for (task, action bounds,
provenance) lies as JSON in `metadata/mcetm`, where other readers do not look.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from mcetm.data import header
from mcetm.data.transitions import Transitions
from mcetm.data.validate import DataError, Fault, ReadOptions
from mcetm.files import write_bytes
from mcetm.formats import hdf5_array, hdf5_arrays, open_hdf5
from mcetm.tasks.datasets import task_of
from mcetm.tasks.registry import get_task

if TYPE_CHECKING:
    import h5py

NAMES = {
    "obs": "observations",
    "action": "actions",
    "reward": "rewards",
    "next_obs": "next_observations",
    "terminated": "terminals",
    "truncated": "timeouts",
}
HEADER = "metadata/mcetm"
_INFOS = "infos/"


def read_d4rl(
    path: str | Path, *, infos: tuple[str, ...] | Literal["all"] = (), **options: Unpack[ReadOptions]
) -> Transitions:
    """Transitions from a D4RL file.

    `next_observations` and `timeouts` may be missing, as they are in many files in circulation;
    `mcetm.data.validate.build` says what is inferred then. The task is taken from the options,
    from the file, or from the file's name. `infos` names arrays of the file's `infos` group to
    keep, such as `qpos` and `qvel`, or says "all"; few jobs need them, so the default is none.
    """
    path = Path(path)
    with open_hdf5(path) as file:
        stored = header_of(file, path)
        asked = [] if infos == "all" else [f"infos/{name}" for name in infos]
        required = [NAMES["obs"], *asked] if stored.checksum else [NAMES["obs"], NAMES["action"], *asked]
        missing = [name for name in required if name not in file]
        if missing:
            hint = " (the file looks like Minari's)" if "episode_0" in file else ""
            raise DataError(str(path), [Fault(name, f"is missing{hint}") for name in missing])
        names = _infos_per_row(file) if infos == "all" else asked
        # Arrays are handed over as they lie in the file; `build` converts each at most once.
        arrays = hdf5_arrays(file, [*NAMES.values(), *names])
    fields = {field: arrays[name] for field, name in NAMES.items()}
    kept = {name.removeprefix(_INFOS): arrays[name] for name in names}
    return stored.build(fields, infos=kept, **options)


def header_of(file: h5py.File, path: Path) -> header.Stored:
    """What a file says about its arrays; of the task, its name may give a hint."""
    stored = header.decode(hdf5_array(file, HEADER), str(path))
    guess, obs = task_of(path.stem), file.get(NAMES["obs"])
    # A file's name is a hint only: the observations must agree.
    if stored.metadata.task is None and guess and getattr(obs, "shape", ())[1:] == (get_task(guess).obs_dim,):
        stored = replace(stored, metadata=replace(stored.metadata, task=guess))
    return stored


def _infos_per_row(file: h5py.File) -> list[str]:
    """Names of the arrays in the group `infos` that have a row for each observation."""
    group: Any = file.get("infos")
    items = group.items() if hasattr(group, "items") else ()
    rows = _rows(file[NAMES["obs"]])
    return [f"{_INFOS}{name}" for name, item in items if rows is not None and _rows(item) == rows]


def _rows(item: Any) -> int | None:
    shape = getattr(item, "shape", None)
    return shape[0] if shape else None


def write_d4rl(transitions: Transitions, path: Path, *, compress: bool = False) -> None:
    """Write D4RL's fields (and `infos`), whole or not at all."""
    import h5py

    options: dict[str, Any] = {"compression": "gzip", "shuffle": True} if compress else {}
    # In memory first: HDF5 writes much of a file when it closes it, and loses the errors it meets then.
    image = io.BytesIO()
    with h5py.File(image, "w") as file:
        # Bytes of fixed length, as D4RL stores its own strings.
        file.create_dataset(HEADER, data=np.bytes_(header.encode(transitions).encode()))
        arrays = {name: getattr(transitions, field) for field, name in NAMES.items()}
        arrays |= {f"infos/{name}": array for name, array in transitions.infos.items()}
        for name, array in arrays.items():
            # HDF5 cannot chunk, hence not compress, an array without elements.
            file.create_dataset(name, data=array, **(options if array.size else {}))
    write_bytes(path, image.getbuffer())
