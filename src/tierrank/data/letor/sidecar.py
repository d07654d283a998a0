"""LightGBM's .query files: the number of rows of each query, one a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from tierrank.data.files import SUFFIXES, read_bytes, without_compression
from tierrank.data.letor.errors import LetorError


def queries_of(path: Path, rows: int) -> npt.NDArray[np.int64]:
    """Number the queries of a file without qid, by the .query file beside it.

    Beside `rank.train` or `rank.train.xz` it is `rank.train.query`, which may be compressed too.

    Returns
    -------
    [rows] 0 for the rows of the first query, 1 for those of the second, …
    """
    plain = without_compression(path)
    names = dict.fromkeys(f"{base.name}.query" for base in (path, plain))
    candidates = [path.with_name(name + suffix) for name in names for suffix in ("", *SUFFIXES)]
    sidecar = next((file for file in candidates if file.is_file()), None)
    if sidecar is None:
        raise LetorError(
            path,
            1,
            f"no row has a qid, and there is no {' or '.join(names)} beside the file: write "
            "qid:… after the labels, or the number of rows of each query into such a file.",
        )
    counts = []
    for line, word in enumerate(read_bytes(sidecar, LetorError).splitlines(), start=1):
        word = word.removeprefix(b"\xef\xbb\xbf").strip()
        if not word:
            continue
        if not word.isdigit() or len(word) > 18 or int(word) == 0:
            raise LetorError(
                sidecar,
                line,
                f"{word[:40].decode(errors='backslashreplace')!r} is not the number of rows of a "
                "query: write a whole number of at least 1 a line.",
            )
        counts.append(int(word))
    if sum(counts) != rows:
        raise LetorError(
            sidecar,
            None,
            f"its counts sum to {sum(counts):,}, but {path.name} has {rows:,} rows: the two files "
            "do not belong together, or one is cut short.",
        )
    return np.repeat(np.arange(len(counts)), counts)
