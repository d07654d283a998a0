"""Files beside mapped ones: they go with the process, and with the next one if it was killed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tierrank.data.cache import scratch_folder

KEEPS = """
import sys
from pathlib import Path
from tierrank.data.cache import scratch_folder
place = scratch_folder(Path(sys.argv[1]), ".bins-")
(Path(place.name) / "page").write_text("bins")
print(place.name, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks")
def test_what_a_killed_process_left_is_removed_by_the_next_and_the_rest_stays(tmp_path):
    (tmp_path / "others").mkdir()
    command = [sys.executable, "-c", KEEPS, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as killed, subprocess.Popen(command, **pipes) as alive:
        try:
            left, kept = (Path(each.stdout.readline().strip()) for each in (killed, alive))
            killed.send_signal(signal.SIGKILL)
            killed.wait(20)
            assert (left / "page").exists()
            place = scratch_folder(tmp_path, ".bins-")
            assert not left.exists()
            assert (kept / "page").exists()
            assert Path(place.name).is_dir()
            alive.communicate("", timeout=20)
            assert not kept.exists()
        finally:
            for process in (killed, alive):
                process.kill()
    del place
    assert [path.name for path in tmp_path.iterdir()] == ["others"]
