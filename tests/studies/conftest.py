"""Whole studies are many small programs: compiling them takes longer than running them."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture
def hasty_compiler() -> Iterator[None]:
    """Compile with few optimisations."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
