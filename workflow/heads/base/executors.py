"""Whether Snakemake's executor can do anything here: SLURM needs its commands and a controller that answers."""

import shutil
import subprocess

from heads.base.files import UserError

SLURM = ("sbatch", "squeue", "scancel", "sinfo", "sacct")
"""Commands that Snakemake's executor for SLURM calls: if one is missing, it waits for its first job for ever."""
SECONDS = 10
WAY_OUT = (
    "leave out --profile profiles/slurm (or --executor slurm) to run on this machine, or run where sinfo shows the "
    "cluster, on its login node or with its SLURM module loaded."
)


def check_executor(name: str) -> None:
    """Raise UserError if jobs are to go to SLURM, and a command for that is missing or no controller answers.

    name: as for Snakemake's --executor; others than slurm need nothing that could be missing.
    """
    if name != "slurm":
        return
    missing = [command for command in SLURM if not shutil.which(command)]
    if why := f"{missing[0]} is not on PATH" if missing else _no_answer():
        raise UserError(f"No job can be sent to SLURM from here ({why}): {WAY_OUT}")


def _no_answer() -> str:
    """Why the controller does not answer; "" if it does."""
    try:
        subprocess.run(["sinfo"], capture_output=True, text=True, check=True, timeout=SECONDS)
    except subprocess.CalledProcessError as error:
        return str(error.stderr).strip().rpartition("\n")[2] or f"sinfo ends with status {error.returncode}"
    except (OSError, subprocess.TimeoutExpired):
        return f"sinfo does not answer within {SECONDS} seconds"
    return ""
