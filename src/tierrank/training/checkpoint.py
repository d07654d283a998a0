"""Where a fit that was stopped can be taken up again, to the same result."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tierrank import storage
from tierrank.storage import Arrays

SAVINGS_BETWEEN = 10  # so keeping states takes a tenth of a fit's time, at most about


class Checkpoint:
    """A folder that keeps the state of a fit.

    Parameters
    ----------
    folder
        where to keep it; None: nowhere, and all methods do nothing
    identity
        what the fit is of: settings and data, JSON-able. A state of another fit is refused.
    every
        seconds between two states that are kept; if keeping one takes long, ten times as long as
        that. 0: keep all, whatever it takes.
    """

    def __init__(
        self, folder: Path | str | None, identity: Mapping[str, Any], *, every: float = 20.0
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.identity = json.loads(json.dumps(identity))
        self.every = every
        self._wait = every
        self._last = time.monotonic()

    def load(self) -> tuple[dict[str, Any], Arrays] | None:
        """The state that was kept, or None if there is none."""
        if self.folder is None or not storage.exists(self.folder, "checkpoint"):
            return None
        content, tensors = storage.read(self.folder, "checkpoint")
        if not isinstance(content, dict) or not isinstance(content.get("identity"), dict):
            raise storage.StorageError(
                f"{self.folder}: holds no state of a fit. Remove it, and begin anew."
            )
        if content["identity"] != self.identity:
            other = ", ".join(_differing(content["identity"], self.identity))
            raise storage.StorageError(
                f"{self.folder}: holds a checkpoint of another fit (what differs: {other}). "
                "Continue with what it was begun with, or remove the folder."
            )
        return content["state"], tensors

    @property
    def due(self) -> bool:
        """Whether it is time to keep the state."""
        return self.folder is not None and time.monotonic() - self._last >= self._wait

    def save(self, state: Mapping[str, Any], tensors: Arrays) -> None:
        """Keep a state in place of the last one."""
        if self.folder is not None:
            content = {"identity": self.identity, "state": state}
            begun = time.monotonic()
            storage.write(self.folder, "checkpoint", content, tensors)
            self._last = time.monotonic()
            if self.every > 0:
                self._wait = max(self.every, SAVINGS_BETWEEN * (self._last - begun))


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of what two fits do not share; of settings, which."""
    found = []
    for key in sorted({*one, *other}):
        old, new = one.get(key), other.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differing(old, new)
        elif old != new:
            found.append(key)
    return found


def digest(*arrays: Any) -> str:
    """A digest of what arrays hold: dense, sparse, or None."""
    total = hashlib.blake2b(digest_size=16)
    for array in arrays:
        if array is None:
            total.update(b"none")
            continue
        sparse = hasattr(array, "indptr")
        parts = (array.data, array.indices, array.indptr) if sparse else (array,)
        for part in parts:
            flat = np.ascontiguousarray(part)
            total.update(f"{flat.dtype.str}{flat.shape}".encode())
            named = flat.dtype.kind in "OUS"
            total.update(repr(flat.tolist()).encode() if named else flat.data)
    return total.hexdigest()
