"""A SLURM cluster on the loopback, with one node and two more to lose: real daemons, own key and ports, no systemd."""

import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "srun", "squeue", "scancel", "sinfo", "scontrol")
# Whatever this starts is killed when we are.
WITH_US = ("setpriv", "--pdeathsig", "SIGKILL")
GPUS = 2
# The node for all but the disturbed training, which has its own partition and nodes.
NODE, SPARE, SPARES = "first", "spare", ("spare1", "spare2")
# Debian keeps daemons where only root's PATH looks.
SYSTEM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

# The nodes claim more than the machine has, so that the profile's requests, made for real nodes, fit.
SLURM_CONF = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,bf_interval=5,sched_interval=5
ReturnToService=2
KillWait=10
MinJobAge=86400
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu
NodeName=DEFAULT CPUs=64 RealMemory=512000 Gres=gpu:h100:{gpus}
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port}
NodeName=spare1 NodeHostname={host} NodeAddr=127.0.0.1 Port={spare1_port}
NodeName=spare2 NodeHostname={host} NodeAddr=127.0.0.1 Port={spare2_port}
PartitionName=cpu Nodes={node} Default=YES
PartitionName=gpu Nodes={node}
PartitionName=spare Nodes=spare1,spare2
"""


@dataclass(frozen=True)
class SlurmJob:
    """The resources requested for one job, and its state."""

    name: str  # gates_wildcards_tiny_all_50_1, or the group's name and those of its rules
    folder: Path  # where Snakemake runs
    partition: str
    gpus: str  # gpu:1, gpu:h100:1 or nothing
    mem_mb: int
    minutes: int
    state: str  # as in SLURM: COMPLETED, FAILED, TIMEOUT
    restarts: int  # by SLURM itself; a retry by Snakemake is another job


@dataclass(frozen=True)
class Cluster:
    """A running cluster; `environment` is what a command needs to reach it."""

    folder: Path
    environment: Mapping[str, str]

    def say(self, *command: str) -> str:
        """Run a client command and return its output."""
        done = subprocess.run(command, env=self.environment, text=True, capture_output=True, check=True, timeout=60)
        return done.stdout

    def jobs(self) -> list[SlurmJob]:
        """All jobs since the start, in order of submission; all must be Snakemake's."""
        lines = self.say("scontrol", "show", "job", "--oneliner").splitlines()
        return [_job(dict(re.findall(r"(\w+)=(\S*)", line))) for line in lines]

    def last_words(self) -> str:
        """The ends of the daemons' logs, for error messages."""
        return "\n".join(f"{log.name}:\n{log.read_text()[-1500:]}" for log in sorted(self.folder.glob("*.log")))


def _job(fields: Mapping[str, str]) -> SlurmJob:
    """One line of scontrol, which writes 32000M as it is and 64000M as 62.50G."""
    amount, unit = fields["MinMemoryNode"][:-1], fields["MinMemoryNode"][-1]
    days, clock = fields["TimeLimit"].rpartition("-")[::2]
    hours, minutes, _ = map(int, clock.split(":"))
    return SlurmJob(
        name=fields["Comment"].removeprefix("rule_"),
        folder=Path(fields["WorkDir"]),
        partition=fields["Partition"],
        gpus=fields.get("TresPerJob", "").removeprefix("gres:"),
        mem_mb=round(float(amount) * {"M": 1, "G": 1024}[unit]),
        minutes=(int(days or 0) * 24 + hours) * 60 + minutes,
        state=fields["JobState"],
        restarts=int(fields["Restarts"]),
    )


def why_not() -> str | None:
    """Why no cluster can be started here, or None."""
    missing = [name for name in (WITH_US[0], *DAEMONS, *CLIENTS) if not shutil.which(name, path=SYSTEM_PATH)]
    if missing:
        return f"no {', '.join(missing)} here: apt-get install munge slurmctld slurmd slurm-client"
    if os.geteuid() != 0:
        return "only root can start munged, slurmctld and slurmd"
    return None


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def write_configuration(folder: Path) -> None:
    """Everything that the daemons read: key, slurm.conf, gres.conf, GPUs that are aliases of /dev/null."""
    host = socket.gethostname().split(".")[0]
    names = ("controller_port", "node_port", "spare1_port", "spare2_port")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    for name in ("state", "bin"):
        (folder / name).mkdir()
    for number in range(GPUS):
        os.mknod(folder / f"gpu{number}", 0o666 | stat.S_IFCHR, Path("/dev/null").stat().st_rdev)
    (folder / "slurm.conf").write_text(SLURM_CONF.format(host=host, folder=folder, node=NODE, gpus=GPUS, **ports))
    devices = f"NodeName={NODE},{','.join(SPARES)} Name=gpu Type=h100 File={folder}/gpu[0-{GPUS - 1}]"
    (folder / "gres.conf").write_text(f"AutoDetect=off\n{devices}\n")
    # Snakemake's job step drops SLURM_CONF before it calls srun.
    wrapper = folder / "bin/srun"
    wrapper.write_text(
        f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun", path=SYSTEM_PATH)} "$@"\n'
    )
    wrapper.chmod(0o755)


def wait_for(what: str, cluster: Cluster, *command: str, seconds: float = 60) -> None:
    """Wait until a client command prints `what`; raise RuntimeError with the daemons' logs if it does not."""
    deadline = time.monotonic() + seconds
    said = ""
    while time.monotonic() < deadline:
        done = subprocess.run(command, env=cluster.environment, text=True, capture_output=True, check=False, timeout=60)
        said = done.stdout + done.stderr
        if done.returncode == 0 and what in said.split():
            return
        time.sleep(0.2)
    raise RuntimeError(f"{command[0]} never said {what}, but: {said}\n{cluster.last_words()}")


@contextmanager
def daemon(cluster: Cluster, *command: str, **environment: str) -> Iterator[None]:
    """A daemon in the foreground that ends with the block, or when this process is killed."""
    with (cluster.folder / f"{command[0]}.said.log").open("ab") as said:
        process = subprocess.Popen(
            [*WITH_US, *command],
            env={**cluster.environment, **environment},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the tests, which stop it in the right order
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(15)


@contextmanager
def node(cluster: Cluster, name: str) -> Iterator[None]:
    """The daemon of a node, marked as SLURM marks the node's jobs; wait until it is idle."""
    with daemon(cluster, "slurmd", "-D", "-N", name, SLURMD_NODENAME=name):
        wait_for("idle", cluster, "sinfo", "--noheader", "--format=%T", f"--nodes={name}")
        yield


def lose(cluster: Cluster, name: str) -> None:
    """Kill all processes of a node at once, as a power loss does, and tell slurmctld, to save the wait."""
    processes = processes_with(cluster, f"SLURMD_NODENAME={name}\0")
    # Stopped first, so that none has the time to report another's end.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(int(process.name), number)
    cluster.say("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=lost")


def processes_with(cluster: Cluster, words: str = "") -> list[Path]:
    """Processes whose environment holds the cluster's folder and some words: daemons, steps and jobs."""
    environments = {process: environment_of(process) for process in Path("/proc").glob("[0-9]*")}
    return [process for process, said in environments.items() if str(cluster.folder) in said and words in said]


def environment_of(process: Path) -> str:
    """A process's variables, each ended by a zero byte; empty if it has just ended or we may not look."""
    try:
        return (process / "environ").read_text(errors="replace")
    except OSError:
        return ""


@contextmanager
def no_job_left(cluster: Cluster) -> Iterator[None]:
    """Cancel all jobs at the end and wait until they are gone, so that no step outlives the node's daemon."""
    try:
        yield
    finally:
        subprocess.run(["scancel", "--user=root"], env=cluster.environment, check=False, timeout=60)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and cluster.say("squeue", "--noheader"):
            time.sleep(0.2)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Start munged, slurmctld and the first node, and stop them whatever happens.

    The folder is short and readable by all: munged insists, and the path of a socket has at most 107 bytes.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))
        folder.chmod(0o755)
        write_configuration(folder)
        path = f"{folder}/bin:{SYSTEM_PATH}"
        cluster = Cluster(folder, {**os.environ, "PATH": path, "SLURM_CONF": f"{folder}/slurm.conf"})
        files = {name: folder / f"munge.{name}" for name in ("key", "socket", "pid", "seed")}
        options = [f"--{name}{'' if name == 'socket' else '-file'}={path}" for name, path in files.items()]
        stack.enter_context(daemon(cluster, "munged", "--foreground", f"--log-file={folder}/munged.log", *options))
        wait_for("STATUS:", cluster, "sh", "-c", f"munge -n -S {files['socket']} | unmunge -S {files['socket']}")
        stack.enter_context(daemon(cluster, "slurmctld", "-D", "-i"))
        stack.enter_context(node(cluster, NODE))
        stack.enter_context(no_job_left(cluster))
        yield cluster
