"""Compiled programs outlive their process, and a folder that cannot be written stops nothing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache import compilation_cache

from mcetm.compilation import CHOICE, keep_programs, programs_folder
from mcetm.processor import processor_kind
from mcetm.training import train_loop


@pytest.fixture
def fresh_jax(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """JAX as a new process has it: it keeps no programs, and remembers none."""

    def forget() -> None:
        jax.config.update("jax_compilation_cache_dir", None)
        compilation_cache.reset_cache()
        jax.clear_caches()

    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    of_all_tests = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    forget()
    yield
    forget()
    jax.config.update("jax_compilation_cache_dir", of_all_tests)


def train() -> int:
    """Train a little; how many programs were found compiled."""
    found: list[str] = []

    def listen(event: str, **_: str | int) -> None:
        found.append(event)

    jax.monitoring.register_event_listener(listen)
    step = lambda state, data, *, key: (state + data, {"loss": state})  # noqa: E731
    train_loop(step, jnp.zeros(()), jnp.ones(()), steps=4, chunk=2, key=jax.random.key(0))
    jax.monitoring.unregister_event_listener(listen)
    return found.count("/jax/compilation_cache/cache_hits")


_TRAINING = """
import jax
import jax.numpy as jnp
from mcetm.training import train_loop

found = []
jax.monitoring.register_event_listener(lambda event, **_: found.append(event))
step = lambda state, data, *, key: (state + data, {"loss": state})
train_loop(step, jnp.zeros(()), jnp.ones(()), steps=4, chunk=2, key=jax.random.key(0))
print(found.count("/jax/compilation_cache/cache_hits"))
"""


def test_the_second_process_finds_the_programs_of_the_first(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    environment = {
        **os.environ,
        CHOICE: str(programs),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }

    def found() -> int:
        command = [sys.executable, "-c", _TRAINING]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return int(done.stdout.split()[-1])

    assert found() == 0
    assert found() > 0


def test_little_room_holds_few_programs(tmp_path: Path) -> None:
    """What was not used for longest goes, so that the folder stays within its bytes."""
    script = _TRAINING.replace("import", "import mcetm.compilation as c; c.MOST_BYTES = 20_000\nimport", 1)
    programs = tmp_path / "programs"
    environment = {
        **os.environ,
        CHOICE: str(programs),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, capture_output=True)
    kept = [path.stat().st_size for path in programs.glob("*-cache")]
    assert kept
    assert sum(kept) <= 20_000


@pytest.mark.usefixtures("fresh_jax")
def test_a_folder_that_cannot_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(CHOICE, str(tmp_path / "file" / "programs"))
    assert keep_programs() is None
    assert train() == 0


@pytest.mark.usefixtures("fresh_jax")
def test_a_folder_that_jax_was_given_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, str(tmp_path / "programs"))
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    assert keep_programs() == tmp_path / "own"
    assert not (tmp_path / "programs").exists()


def test_where_programs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert programs_folder() is None, "the tests keep none"
    monkeypatch.delenv(CHOICE)
    assert programs_folder() == Path(os.environ["MCETM_CACHE"]) / "compiled" / processor_kind()
    monkeypatch.setenv(CHOICE, str(tmp_path))
    assert programs_folder() == tmp_path
