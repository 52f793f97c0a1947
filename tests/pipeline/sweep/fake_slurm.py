"""SLURM's commands as one script, by the name it is called by: jobs are processes of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PLACE = Path(__file__).resolve().parent
"""Where the script was copied to; what was submitted is noted there."""


def sbatch(arguments: list[str]) -> None:
    """Run every job of an array, one after the other, in the background."""
    text = Path(arguments[-1]).read_text()
    (PLACE / "submitted").open("a").write(text + "\n")
    array = re.search(r"--array=0-(\d+)%(\d+)", text)
    indices = range(int(array.group(1)) + 1) if array else [None]
    for index in indices:
        number = {"SLURM_JOB_ID": f"{77 + (index or 0)}", "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}
        number |= {"SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_JOB_NUM_NODES": "1"}
        if index is not None:
            number |= {"SLURM_ARRAY_JOB_ID": "77", "SLURM_ARRAY_TASK_ID": str(index)}
        number |= {"SLURM_JOB_NODELIST": "here"}
        log = (PLACE / "jobs.log").open("a")
        subprocess.Popen(["/bin/bash", arguments[-1]], env={**os.environ, **number}, stdout=log, stderr=log)
    print("Submitted batch job 77")


def srun(arguments: list[str]) -> None:
    """Run what comes after the options."""
    command = next(i for i, argument in enumerate(arguments) if os.access(argument, os.X_OK))
    os.execvp(arguments[command], arguments[command:])


def sacct(arguments: list[str]) -> None:
    """Everything runs, as far as it knows."""
    print("JobID|State|NodeList")
    for number in ("77_0", "77_1"):
        print(f"{number}|RUNNING|here")


if __name__ == "__main__":
    {"sbatch": sbatch, "srun": srun, "sacct": sacct}[Path(sys.argv[0]).name](sys.argv[1:])
