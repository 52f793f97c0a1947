"""Every test runs with an empty cache, an empty configuration folder and an empty Minari store of its own."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import jax
import numpy as np
import pytest

from mcetm.data import Transitions
from mcetm.tasks import registry

# Compiling in haste, XLA's newer code generator takes about twice as long as the older one, and tests do
# little but compile.
# Flags are read once, before the first program; commands that tests start inherit them. JAX 0.12 has only the
# newer one, and an unknown flag ends the process.
if jax.__version_info__ < (0, 11):
    # Small programs are not worth several threads of the compiler either.
    hasty = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {hasty}".strip()

# Models that a whole module shares are trained before any test has folders of its own.
os.environ["MCETM_COMPILATION_CACHE"] = "off"
# What one module compiled, another need not, in whichever worker it runs: a sixth of the time.
_PROGRAMS = "MCETM_TEST_PROGRAMS"
if _PROGRAMS not in os.environ:
    os.environ[_PROGRAMS] = tempfile.mkdtemp(prefix="mcetm-programs-")
    atexit.register(shutil.rmtree, os.environ[_PROGRAMS], ignore_errors=True)
jax.config.update("jax_compilation_cache_dir", os.environ[_PROGRAMS])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
# Small programs take longer to compile than to run, those that modules make for all their tests among them.
jax.config.update("jax_disable_most_optimizations", True)
# Programs are lowered faster where no operation says which line of Python it comes from.
jax.config.update("jax_traceback_in_locations_limit", 0)
# An accidental mix of precisions is an error, not a silent choice.
jax.config.update("jax_numpy_dtype_promotion", "strict")

_SHARED = Path(os.environ.get("MCETM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def pytest_collection_finish() -> None:
    """What was imported for the tests stays; the garbage collector need not look through it all the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest test begins first, so that workers end together."""
    items.sort(key=lambda item: item.name != "test_the_example_of_the_readme_works_as_written")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("MCETM_CACHE", str(home / "cache"))
    monkeypatch.setenv("MCETM_CONFIG", str(home / "config"))
    monkeypatch.setenv("MCETM_COMPILATION_CACHE", "off")  # a test's programs are for that test
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(home / "minari"))
    monkeypatch.setenv("MCETM_D4RL_URL", "http://127.0.0.1:9")  # nothing listens there
    monkeypatch.delenv("MCETM_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "160")  # tables are as wide wherever the tests run


@pytest.fixture(autouse=True)
def _thorough_compiler(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests marked `thorough` compile as users do."""
    thorough = request.node.get_closest_marker("thorough") is not None
    if thorough:
        jax.clear_caches()  # it may hold the same programs, compiled in haste
        jax.config.update("jax_disable_most_optimizations", False)
    yield
    if thorough:
        jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(autouse=True, scope="module")
def _forget_programs() -> Iterator[None]:
    """Compiled programs of a finished module would only fill the memory."""
    yield
    jax.clear_caches()


@pytest.fixture
def real_data() -> Path:
    """The folder with real D4RL slices and behaviour policies, where this machine has it."""
    if not (_SHARED / "d4rl").is_dir():
        pytest.skip(
            f"no real data: {_SHARED} is absent (set MCETM_DATA to a folder with d4rl/ and policies/)"
        )
    return _SHARED


_HELPER = """
import pathlib, mcetm
pathlib.Path({marker!r}).touch()
mcetm.register_task(mcetm.Task("jump", "Pendulum-v1", 3, (-2.0,), (2.0,), 200))
"""


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that `helper.py`, in the current folder, makes when it is imported; it has a task `jump`."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    path = tmp_path / "marker"
    Path("helper.py").write_text(_HELPER.format(marker=str(path)))
    yield path
    for name in ("helper", "package", "package.inner"):
        sys.modules.pop(name, None)


def random_fields(
    lengths: tuple[int, ...] = (7, 5, 9), *, obs_dim: int = 3, action_dim: int = 2, seed: int = 0
) -> dict[str, Any]:
    """Fields of a well-formed log; odd episodes terminate, even ones are truncated."""
    rng = np.random.default_rng(seed)
    paths = [rng.normal(size=(n + 1, obs_dim)).astype(np.float32) for n in lengths]
    rows = sum(lengths)
    ends = np.cumsum(lengths) - 1
    terminated, truncated = np.zeros(rows, bool), np.zeros(rows, bool)
    truncated[ends[0::2]], terminated[ends[1::2]] = True, True
    return {
        "obs": np.concatenate([path[:-1] for path in paths]),
        "action": rng.uniform(-1, 1, (rows, action_dim)).astype(np.float32),
        "reward": rng.normal(size=rows).astype(np.float32),
        "next_obs": np.concatenate([path[1:] for path in paths]),
        "terminated": terminated,
        "truncated": truncated,
    }


@pytest.fixture
def log() -> Transitions:
    """Three episodes of 7, 5 and 9 rows; the second terminates."""
    return Transitions.from_arrays(**random_fields())


D4RL_NAMES = {
    "obs": "observations",
    "action": "actions",
    "reward": "rewards",
    "next_obs": "next_observations",
    "terminated": "terminals",
    "truncated": "timeouts",
}


def write_hdf5(path: Path, fields: dict[str, Any], *, without: tuple[str, ...] = ()) -> Path:
    """A file in D4RL's layout, written with h5py alone."""
    with h5py.File(path, "w") as file:
        for name, array in fields.items():
            if name not in without:
                file.create_dataset(D4RL_NAMES.get(name, name), data=array)
    return path


def assert_same(first: Transitions, second: Transitions) -> None:
    """Equal in every array."""
    for name in ("obs", "action", "reward", "next_obs", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)
