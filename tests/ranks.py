"""Several processes that find each other by gloo on this machine's loopback, as torchrun's do."""

import os
import socket
import sys
import time
import traceback

from killable import processes


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
