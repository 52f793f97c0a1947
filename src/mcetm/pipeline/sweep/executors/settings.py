"""What can be said of a place where cells are trained."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from mcetm.documents import Finite, Name, Record

Amount = Annotated[Finite, Field(ge=0)]
Parallel = Annotated[int, Field(ge=1, le=10_000)]
Share = Annotated[float, Field(gt=0, le=1)]


class LocalSettings(Record):
    """Processes on this machine; several share a device."""

    name: Literal["local"] = "local"
    parallel: Parallel = 1
    """Cells trained at the same time."""
    memory: Share | None = None
    """Share of a GPU's memory that each may take; by default nine tenths, divided among them."""


class RaySettings(Record):
    """A Ray cluster: one task for each cell, placed by what it asks for."""

    name: Literal["ray"] = "ray"
    address: Name | None = None
    """`auto`, `HOST:PORT` or `ray://HOST:PORT`. None is a cluster of this machine alone."""
    parallel: Parallel = 1000
    """Cells that are asked for at the same time, at most; an autoscaled cluster grows by what is asked."""
    cpus: Amount = 1.0
    """Cores for each cell."""
    gpus: Amount = 0.0
    """GPUs for each cell; 0.25 lets four share one."""
    memory_gb: Amount = 0.0
    """Memory for each cell; 0 asks for none."""
    resources: dict[Name, Amount] = Field(default_factory=dict)
    """Resources of your own, such as those that mark a kind of node."""
    environment: dict[Name, str] = Field(default_factory=dict)
    """Variables of the environment that every cell gets."""
    patience: Amount = 600.0
    """Seconds to wait for a cluster that does not answer, such as one whose head begins anew."""


class SlurmSettings(Record):
    """SLURM: an array of jobs by submitit, each of which trains one cell."""

    name: Literal["slurm"] = "slurm"
    cluster: Literal["slurm", "local"] = "slurm"
    """`local` is submitit's own stand-in: every cell is a process here, to try a plan out."""
    partition: Name | None = None
    """Where jobs queue."""
    account: Name | None = None
    """Who is charged."""
    parallel: Parallel = 100
    """Jobs of an array that run at the same time, at most."""
    minutes: Annotated[float, Field(gt=0)] = 240.0
    """Time limit of a job; one that reaches it saves, and goes on in the queue."""
    timeouts: Annotated[int, Field(ge=0, le=1000)] = 20
    """How often a job may reach its limit."""
    notice: Annotated[int, Field(ge=1)] = 90
    """Seconds before the limit at which a job is told to save."""
    cpus: Annotated[int, Field(ge=1)] = 4
    """Cores of each job."""
    gpus: Annotated[int, Field(ge=0)] = 1
    """GPUs of each job."""
    memory_gb: Annotated[float, Field(gt=0)] | None = None
    """Memory of each job."""
    setup: list[str] = Field(default_factory=list)
    """Lines of shell before each job, such as `module load cuda`."""
    more: dict[Name, Any] = Field(default_factory=dict)
    """Other options of `sbatch`, such as constraint or qos."""
