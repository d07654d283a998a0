"""Several processes that find each other by gloo on this machine's loopback, as torchrun's do."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import torch

from killable import processes
from tierrank.ranks import Ranks


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(rank, ranks, port):
    """What a launcher tells a rank."""
    return {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "TORCHELASTIC_USE_AGENT_STORE": "False",
    }  # fmt: skip


def on_ranks(ranks, work, *arguments, timeout=100, **variables):
    """What `work(*arguments)` gives on each of so many ranks; it is a function of a module."""
    context, port = processes(), free_port()
    pipes = [context.Pipe(duplex=False) for _ in range(ranks)]
    started = [
        context.Process(
            target=_run,
            args=(environment(rank, ranks, port) | variables, end, work, arguments),
        )
        for rank, (_, end) in enumerate(pipes)
    ]
    found = {}
    try:
        for process in started:
            process.start()
        until = time.monotonic() + timeout
        while len(found) < ranks and time.monotonic() < until:
            for rank, (end, _) in enumerate(pipes):
                if rank not in found and end.poll(0.01):
                    found[rank] = end.recv()
                    failed, result = found[rank]
                    assert not failed, f"rank {rank}:\n{result}"
                elif rank not in found and started[rank].exitcode is not None and not end.poll():
                    raise AssertionError(f"rank {rank} ended with {started[rank].exitcode}")
        assert len(found) == ranks, f"only ranks {sorted(found)} came to an end"
        for process in started:
            process.join(max(1.0, until - time.monotonic()))
    finally:
        for process in started:
            if process.pid is not None:
                process.kill()
                process.join()
    return [found[rank][1] for rank in range(ranks)]


def _run(variables, end, work, arguments):
    os.environ.update(variables)
    import torch

    torch.set_num_threads(1)
    try:
        end.send((False, work(*arguments)))
    except BaseException:
        end.send((True, traceback.format_exc()))
        sys.exit(1)


def children(process):
    """Processes that another one started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(path.parent.name))
    return found


def killed_once(arguments, out, pattern, timeout=250):
    """What `tierrank` prints on two ranks of torchrun, of which one is killed on the way.

    That is when files of a pattern are there below the folder `out`.
    """
    launch = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=2",
        "--master-addr=127.0.0.1", f"--master-port={free_port()}", "-m", "tierrank",
    ]  # fmt: skip
    variables = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    printed = out.with_name(f"{out.name}.said")
    with printed.open("w") as file:
        running = subprocess.Popen(
            [*launch, *arguments, "--out", str(out)], env=os.environ | variables, stdout=file,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    killed = 0
    try:
        end = time.monotonic() + timeout
        while running.poll() is None and time.monotonic() < end:
            if not killed and list(out.rglob(pattern)):
                killed = max(children(running.pid))
                os.kill(killed, signal.SIGKILL)
            time.sleep(0.05)
        said = printed.read_text()
        assert running.poll() == 0, said
    finally:
        for each in children(running.pid):
            os.kill(each, signal.SIGKILL)
        running.kill()
        running.wait()
    assert killed
    return said


class Thread(Ranks):
    """A rank that is a thread of this process: what ranks compute of numbers, without processes."""

    def __init__(self, rank, shared, barrier):
        super().__init__()
        self.rank, self.size, self._shared, self._barrier = rank, len(shared), shared, barrier

    def _all(self, tensor):
        self._barrier.wait()
        self._shared[self.rank] = tensor.clone()
        self._barrier.wait()
        return torch.stack(self._shared)

    def sum(self, tensor):
        """As ranks do."""
        return self._all(tensor).sum(0)

    def max(self, tensor):
        """As ranks do."""
        return self._all(tensor).amax(0)

    def side_by_side(self, tensor):
        """As ranks do."""
        return torch.cat(list(self._all(tensor)), 1)


def on_threads(ranks, work):
    """What `work(rank)` gives on each of so many ranks that are threads."""
    shared, barrier = [None] * ranks, threading.Barrier(ranks, timeout=20)
    here = threading.local()

    def run(rank):
        here.rank = Thread(rank, shared, barrier)
        return work(here.rank)

    joined = mock.patch.object(Ranks, "join", side_effect=lambda: here.rank)
    with joined, ThreadPoolExecutor(ranks) as pool:
        return [each.result() for each in [pool.submit(run, rank) for rank in range(ranks)]]
