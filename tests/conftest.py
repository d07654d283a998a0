"""What all tests rely on."""

import signal
from contextlib import contextmanager

import pytest


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_reaches_the_tests():
    """What a shell starts in the background ignores it, and so would the fits that are stopped."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def full_disk():
    """Let no file grow beyond some bytes, as when the disk is full: writing raises EFBIG."""
    resource = pytest.importorskip("resource", reason="has no such limits")

    @contextmanager
    def full_disk(*, at):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (at, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return full_disk
