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
from mcetm.data.validate import DataError, Fault, ReadOptions, build
from mcetm.files import write_bytes
from mcetm.formats import hdf5_array, open_hdf5
from mcetm.tasks.datasets import task_of
from mcetm.tasks.registry import get_task

if TYPE_CHECKING:
    import h5py

_NAMES = {
    "obs": "observations",
    "action": "actions",
    "reward": "rewards",
    "next_obs": "next_observations",
    "terminated": "terminals",
    "truncated": "timeouts",
}
_HEADER = "metadata/mcetm"


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
        metadata = header.decode(hdf5_array(file, _HEADER), str(path))
        required = [_NAMES["obs"], *(f"infos/{name}" for name in infos if infos != "all")]
        missing = [name for name in required if name not in file]
        if missing:
            hint = " (the file looks like Minari's)" if "episode_0" in file else ""
            raise DataError(str(path), [Fault(name, f"is missing{hint}") for name in missing])
        # Arrays are handed over as they lie in the file; `build` converts each at most once.
        fields = {
            field: hdf5_array(file, name) for field, name in _NAMES.items() if field not in metadata.absent
        }
        names = _infos_per_row(file, len(fields["obs"])) if infos == "all" else infos
        kept = {name: hdf5_array(file, f"infos/{name}") for name in names}
    guess = task_of(path.stem)
    # A file's name is a hint only: the observations must agree.
    if metadata.task is None and guess and fields["obs"].shape[1:] == (get_task(guess).obs_dim,):
        metadata = replace(metadata, task=guess)
    return build(fields, metadata, infos=kept, **options)


def _infos_per_row(file: h5py.File, rows: int) -> list[str]:
    group: Any = file.get("infos", {})
    return [name for name, item in group.items() if getattr(item, "shape", ())[:1] == (rows,)]


def write_d4rl(transitions: Transitions, path: Path, *, compress: bool = False) -> None:
    """Write D4RL's fields (and `infos`), whole or not at all."""
    import h5py

    options: dict[str, Any] = {"compression": "gzip", "shuffle": True} if compress else {}
    # In memory first: HDF5 writes much of a file when it closes it, and loses the errors it meets then.
    image = io.BytesIO()
    with h5py.File(image, "w") as file:
        # Bytes of fixed length, as D4RL stores its own strings.
        file.create_dataset(_HEADER, data=np.bytes_(header.encode(transitions).encode()))
        arrays = {name: getattr(transitions, field) for field, name in _NAMES.items()}
        arrays |= {f"infos/{name}": array for name, array in transitions.infos.items()}
        for name, array in arrays.items():
            # HDF5 cannot chunk, hence not compress, an array without elements.
            file.create_dataset(name, data=array, **(options if array.size else {}))
    write_bytes(path, image.getbuffer())
