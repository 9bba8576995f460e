"""Which process of a distributed run this is.

`mlx.launch` sets MLX_RANK for every back end that it starts itself (ring, nccl, jaccl: `RemoteProcess.make_launch_script` in
mlx/_distributed_utils/launch.py); its back end mpi leaves that to mpirun, whose makers each have a variable of their own.
"""

from __future__ import annotations

import os
import pathlib

_VARIABLES = ("MLX_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def rank() -> int | None:
    """This process's rank, None outside a distributed run."""
    for name in _VARIABLES:
        value = os.environ.get(name, "")
        if value.isdecimal():
            return int(value)
    return None


def with_rank(path: pathlib.Path) -> pathlib.Path:
    """`run.memviz` becomes `run.rank0.memviz` in process 0 of a distributed run: each process has a file of its own."""
    number = rank()
    if number is None or f"rank{number}" in path.stem:
        return path
    return path.with_name(f"{path.stem}.rank{number}{path.suffix}")
