"""What all tests rely on."""

import gc
import importlib.util
import os
import signal
import sys
from contextlib import contextmanager

import pytest
from hypothesis import settings

# A process a core: further threads of several processes would only wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")


def pytest_configure(config):
    """Take another build of the native core, if one is named, as `make test-native` does."""
    if path := os.environ.get("TIERRANK_TEST_MODULE"):
        spec = importlib.util.spec_from_file_location("tierrank._native", path)
        sys.modules["tierrank._native"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["tierrank._native"])


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Mark what waits for a cluster to start, and what hypothesis draws examples for.

    A fifth of the examples are drawn, unless all are asked for.
    """
    for item in items:
        if {"client", "cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
        test = getattr(item, "obj", None)
        if not getattr(test, "is_hypothesis_test", False):
            continue
        item.add_marker("fuzz")
        if not os.environ.get("TIERRANK_ALL_EXAMPLES"):
            asked = test._hypothesis_internal_use_settings
            fewer = min(asked.max_examples, max(10, asked.max_examples // 5))
            test._hypothesis_internal_use_settings = settings(asked, max_examples=fewer)


def pytest_collection_finish():
    """Nothing collected so far is garbage: the collector need not look through it all again."""
    gc.freeze()


def pytest_report_header(config):
    from tierrank import native_info

    return "native core: {build}; {instructions}; {file}".format(**native_info())


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_reaches_the_tests():
    """What a shell starts in the background ignores it, and so would the fits that are stopped."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk():
    """What tests write need not outlive a power failure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


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
