"""What all tests rely on."""

import signal

import pytest


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_reaches_the_tests():
    """What a shell starts in the background ignores it, and so would the fits that are stopped."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
