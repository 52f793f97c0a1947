"""Many cells: which there are, where they are trained, how far they are, and what is chosen in the end.

    plan.py        what a person writes: logs, systems, a grid or a search, where it runs
    search.py      the settings to try, round by round
    jobs.py        a cell as any process on any machine can train it
    attempt.py     training one of them; what went wrong is one sentence
    run.py         a list of them on an executor, until nothing is left
    executors/     where they are trained: processes here, a Ray cluster, SLURM
    status.py      how far everything is
    table.py       what was found, side by side

A benchmark is a list of cells too, and is run by the same means.
"""
