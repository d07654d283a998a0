"""A Dask scheduler and two workers in processes of their own, which can be killed at once."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

_PROGRAM = """
from distributed import LocalCluster
if __name__ == '__main__':
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, host='127.0.0.1',
                           dashboard_address=':0', silence_logs=50)
    print(cluster.scheduler_address, flush=True)
    import time; time.sleep(300)
"""


@contextmanager
def served(folder):
    """The process, which leads a group of its own, and the scheduler's address."""
    (folder / "serve.py").write_text(_PROGRAM)
    environment = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"}
    server = subprocess.Popen(
        [sys.executable, "serve.py"], cwd=folder, stdout=subprocess.PIPE, text=True,
        env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        yield server, server.stdout.readline().strip()
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
        server.wait(10)
