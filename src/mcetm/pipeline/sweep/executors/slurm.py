"""SLURM, by submitit: an array of jobs, each of which trains one cell.

A job that is told that its time is nearly over, or that another needs its place, saves a checkpoint and goes
back to the queue; there it goes on bit for bit. Jobs outlive the process that submitted them: called again,
a sweep finds those that are still queued or running and waits for them.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from mcetm.documents import read_json
from mcetm.errors import UserError
from mcetm.files import write_json
from mcetm.pipeline.sweep.attempt import Outcome, attempt_apart, note_failure
from mcetm.pipeline.sweep.executors.settings import SlurmSettings
from mcetm.pipeline.sweep.jobs import Job

_MOST = 10_000
"""Jobs in the queue at the same time; how many of them run is for the array to say."""
_AGAIN = {"NODE_FAIL", "PREEMPTED", "REVOKED", "BOOT_FAIL"}
"""States that are no fault of the cell."""


class SlurmExecutor:
    """Cells as jobs of SLURM."""

    def __init__(self, settings: SlurmSettings, folder: Path) -> None:
        if importlib.util.find_spec("submitit") is None:
            raise UserError(
                "submitit is not installed, which the executor asks for: pip install 'mcetm[slurm]'."
            )
        self._settings, self._folder = settings, folder
        self._going: dict[str, tuple[Job, Any]] = {}
        self._full: list[str] = []
        self._record = folder / "slurm" / "submitted.json"
        self._submitted: dict[str, str] = (
            read_json(self._record, dict[str, str]) if self._record.exists() else {}
        )

    @property
    def room(self) -> int:
        """As many as a queue takes."""
        return _MOST - len(self._going)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Have an array of these in the queue, but for those that are there already."""
        fresh = []
        for job in jobs:
            handle = self._earlier(job)
            if handle is None:
                fresh.append(job)
            else:
                self._going[job.name] = job, handle
        if not fresh:
            return
        executor = self._executor()
        try:
            with executor.batch():
                handles = [executor.submit(CellTask(), job.model_dump(), str(self._folder)) for job in fresh]
        except Exception as error:  # what sbatch says
            raise UserError(f"SLURM does not take these jobs: {error}".replace("\n", " ")) from None
        for job, handle in zip(fresh, handles, strict=True):
            self._going[job.name] = job, handle
            self._submitted[job.name] = handle.job_id
        write_json(self._record, self._submitted)

    def finished(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Ask how the jobs are; they are hours long, so nobody is in a hurry."""
        deadline = time.monotonic() + seconds
        while True:
            over = [(job, handle) for job, handle in self._going.values() if handle.done()]
            if over or time.monotonic() > deadline:
                break
            time.sleep(min(1.0, seconds))
        for job, _ in over:
            del self._going[job.name]
        return [(job, self._outcome(job, handle)) for job, handle in over]

    def close(self) -> None:
        """Jobs that are queued or run stay; `scancel` ends them, and they save first."""
        if self._settings.cluster != "slurm":
            for _, handle in self._going.values():
                handle.cancel()
            for _, handle in self._going.values():
                while not handle.done():
                    time.sleep(0.2)
        self._going = {}

    def _executor(self) -> Any:
        submitit: Any = importlib.import_module("submitit")
        told, folder = self._settings, self._folder / "slurm" / "%j"
        try:
            if told.cluster == "local":
                executor = submitit.LocalExecutor(folder, max_num_timeout=told.timeouts)
                parameters = {
                    "timeout_min": told.minutes,
                    "signal_delay_s": told.notice,
                    "gpus_per_node": told.gpus,
                }
            else:
                executor = submitit.SlurmExecutor(folder, max_num_timeout=told.timeouts)
                parameters = self._parameters()
            executor.update_parameters(**{k: value for k, value in parameters.items() if value is not None})
        except (RuntimeError, ValueError, TypeError, NameError, AssertionError) as error:
            said = str(error).splitlines()[0]
            raise UserError(f"SLURM cannot be used as the plan says: {said}") from None
        return executor

    def _parameters(self) -> dict[str, Any]:
        """What `sbatch` is asked for."""
        told = self._settings
        return {
            "job_name": "mcetm",
            "time": math.ceil(told.minutes),
            "signal_delay_s": told.notice,
            "array_parallelism": told.parallel,
            "partition": told.partition,
            "account": told.account,
            "cpus_per_task": told.cpus,
            "gpus_per_node": told.gpus or None,
            "mem": None if told.memory_gb is None else f"{math.ceil(1024 * told.memory_gb)}MB",
            "exclude": ",".join(self._full) or None,
            "setup": told.setup or None,
            "additional_parameters": told.more or None,
        }

    def _earlier(self, job: Job) -> Any:
        """The job that an earlier call has submitted for a cell, if it is still to end."""
        number = self._submitted.get(job.name)
        if number is None or self._settings.cluster != "slurm":
            return None
        submitit: Any = importlib.import_module("submitit")
        handle = submitit.SlurmJob(folder=self._folder / "slurm" / "%j", job_id=number)
        handle.watcher.register_job(number)
        if handle.paths.result_pickle.exists():
            return None
        state = handle.get_info(mode="force").get("State", "UNKNOWN").split()[0]
        return handle if state in ("PENDING", "RUNNING", "REQUEUED", "COMPLETING", "SUSPENDED") else None

    def _outcome(self, job: Job, handle: Any) -> Outcome:
        submitit: Any = importlib.import_module("submitit")
        try:
            outcome = handle.result()
        except submitit.core.utils.UncompletedJobError as error:
            if "timed-out too many times" in str(error):
                words = (
                    f"It has reached its limit of {self._settings.minutes:g} minutes "
                    f"{self._settings.timeouts + 1} times; more minutes or timeouts let it go on."
                )
                note_failure(self._folder, job, words)
                return Outcome("failed", words)
            if str(handle.state).split()[0] in _AGAIN:
                return Outcome("gone")
            return Outcome("lost", f"its job {handle.job_id} has ended ({handle.state})")
        if outcome.kind == "no room" and outcome.place not in self._full:
            self._full.append(outcome.place)
        return outcome


class PreemptedError(KeyboardInterrupt):
    """The scheduler wants the machine back soon; a training that is interrupted saves."""


class CellTask:
    """What a job does: train a cell, and when it is told to go, save and ask for another turn."""

    def __call__(self, job: dict[str, Any], folder: str) -> Outcome:
        """Train it."""
        environment: Any = importlib.import_module("submitit").JobEnvironment()
        number = environment._usr_sig()
        handler = signal.getsignal(number)

        def told(number: int, frame: Any) -> NoReturn:
            signal.signal(number, signal.SIG_IGN)  # it saves now
            raise PreemptedError

        if callable(handler):
            signal.signal(number, told)
        try:
            return attempt_apart(Job.model_validate(job), Path(folder), place=environment.hostname)
        except PreemptedError:
            if callable(handler):
                handler(number, None)  # submitit's own: it calls `checkpoint`, requeues and ends the process
            raise

    def checkpoint(self, job: dict[str, Any], folder: str) -> Any:
        """What the next turn does: the same, for all that matters is in the folder."""
        return importlib.import_module("submitit").helpers.DelayedSubmission(self, job, folder)

    # The name that submitit's documentation has; its release calls the other.
    __submitit_checkpoint__ = checkpoint
