"""What the native core is, and which instructions it uses."""

from __future__ import annotations

from typing import Any


def native_info() -> dict[str, Any]:
    """Say how the native core was built and what it uses on this machine.

    The environment variable ``TIERRANK_INSTRUCTIONS``, set before tierrank is loaded, overrides the
    choice by the name of another set.

    Returns
    -------
    dict
        ``instructions``, the set that is used; ``available``, all that this machine runs, from the
        plainest to the widest; ``compiler``; ``build``, its type and what sanitizers watch over it;
        and ``file``, the module itself.

    See Also
    --------
    log_prob : What it computes.

    Examples
    --------
    >>> import tierrank as tr
    >>> info = tr.native_info()
    >>> info["instructions"] in info["available"]
    True
    """
    from tierrank import _native

    return {
        "instructions": _native.instructions(),
        "available": _native.all_instructions(),
        "compiler": _native.compiler,
        "build": _native.build,
        "file": _native.__file__,
    }
