"""A `python` for workflow tests that forks a process with Snakemake and torch loaded, to save importing them each time.

Most jobs of a tiny experiment, and most plans, take longer to import than to work. `python -m heads …`, `python -m
snakemake …` and `python benchmarks/….py …` are handed to a server with their streams, folder and environment, and take
it for their own interpreter; all else is the usual Python. Forked processes share their hash seed, so tests of equal
bytes need a second server with another seed.
"""

import atexit
import gc
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from importlib import import_module
from pathlib import Path

OF_PLANS = ("pydantic", "snakemake.cli")
"""What is imported for any job."""
OF_JOBS = (
    *("torch", "torch._dynamo", "safetensors.torch", "sacrebleu", "sentencepiece", "pulp", "stanza", "seaborn"),
    *("matplotlib.figure", "matplotlib.backends.backend_pdf", "fontTools.subset"),
)
"""What is imported for the first job that is not Snakemake, since most tests only plan."""
OURS = "heads"
"""Never imported beforehand, since the code of a checkout is its own."""
LONGEST = 200_000
"""Size limit of a message in bytes: the words and the environment of a job."""
SECONDS = 60
CLIENT = """#!{python} -IS
import os, sys
script = "".join(sys.argv[1:2]).startswith("benchmarks/")
if not script and sys.argv[1:3] not in (["-m", "heads"], ["-m", "snakemake"]):
    os.execv("{python}", ["{python}", *sys.argv[1:]])
import json, signal, socket
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect("{address}")
    job = {{"words": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
    socket.send_fds(server, [json.dumps(job).encode()], [0, 1, 2])
    signal.signal(signal.SIGTERM, lambda number, _: server.send(str(number).encode()))
    status = int(server.recv(16) or 1)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


def warm_python(hashes: str = "random") -> str:
    """Path of the program; its server has this hash seed and ends with this process."""
    return _served(hashes)


@cache
def _served(hashes: str) -> str:
    folder = Path(tempfile.mkdtemp(prefix="warm"))
    address = folder / "socket"
    program = folder / "python"
    program.write_text(CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
    program.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, __file__, str(address)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": hashes},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    atexit.register(shutil.rmtree, folder)
    atexit.register(server.communicate, timeout=SECONDS)
    until = time.monotonic() + SECONDS
    while not address.exists():
        assert server.poll() is None and time.monotonic() < until, "the warm Python does not start"
        time.sleep(0.05)
    return str(program)


def load(names: tuple[str, ...]) -> None:
    """Import packages, unless they are, and nothing of ours; no fork will search them for garbage."""
    if not {*names} <= {*sys.modules}:
        for name in names:
            import_module(name)
        assert OURS not in sys.modules
        gc.freeze()


def work(job: dict[str, object], streams: list[int], python: str) -> None:
    """Act as the process that the job asked for, to its end; Snakemake calls what it takes for its own interpreter."""
    status = 1
    sys.executable = python
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.environ.clear()
        os.environ.update(job["environment"])  # type: ignore[call-overload]
        os.chdir(str(job["folder"]))
        own = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        words = list(job["words"])  # type: ignore[call-overload]
        module = words[0] == "-m"
        sys.path[:1] = [str(job["folder"] if module else Path(words[0]).parent.absolute()), *own]
        sys.argv = words[1:] if module else words
        try:
            if module:
                runpy.run_module(words[1], run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(words[0], run_name="__main__")
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def serve(address: str) -> None:
    """Fork a process for each job until standard input ends, and send each job its process's exit status."""
    waiting = selectors.DefaultSelector()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(address)
    listening.listen(100)
    for source in (sys.stdin, listening):
        waiting.register(source, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is sys.stdin:
                return
            if key.fileobj is listening:
                connection, _ = listening.accept()
                said, streams, _, _ = socket.recv_fds(connection, LONGEST, 3)
                job = json.loads(said)
                if job["words"][:2] != ["-m", "snakemake"]:
                    load(OF_JOBS)
                process = os.fork()
                if not process:
                    work(job, streams, str(Path(address).with_name("python")))
                for stream in streams:
                    os.close(stream)
                ended = os.pidfd_open(process)
                waiting.register(ended, selectors.EVENT_READ, (process, connection))
                waiting.register(connection, selectors.EVENT_READ, (process, ended))
            elif isinstance(key.fileobj, socket.socket):
                # Pass a signal on; if the client is gone, end what it asked for.
                signals = key.fileobj.recv(16)
                os.kill(key.data[0], int(signals or signal.SIGKILL))
                if not signals:
                    waiting.unregister(key.fileobj)
            else:
                process, connection = key.data
                status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
                waiting.unregister(key.fd)
                os.close(key.fd)
                if connection in [one.fileobj for one in waiting.get_map().values()]:
                    waiting.unregister(connection)
                    connection.send(str(status).encode())
                connection.close()


if __name__ == "__main__":
    load(OF_PLANS)
    serve(sys.argv[1])
