"""What the extras of the package bring along: megabytes on the disk, each beside the plain install.

    python benchmarks/extras.py            # all extras for users: minutes, some GB for a while
    python benchmarks/extras.py --quick    # the smallest one

An environment gets what `tierrank` itself needs, in the versions of `constraints.txt`; a copy of it
for each extra gets what that asks for in addition. Needs an index of packages, and no compiler:
the package itself (a few MB) is not installed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from measure import Column, Progress, Report, Table, figures

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = (
    "plots", "neural", "tables", "export", "boost", "distributed", "transformers",
    "sentence-transformers",
)  # fmt: skip


def install(python: Path, requirements: Sequence[str]) -> None:
    """By pip, in the versions that are known to work."""
    constraints = str(ROOT / "constraints.txt")
    command = [str(python), "-m", "pip", "install", "--quiet", "-c", constraints, *requirements]
    subprocess.run(command, check=True, stdout=sys.stderr)


def megabytes(folder: Path) -> float:
    """Of all files under it."""
    files = (path.lstat() for path in folder.rglob("*") if not path.is_dir())
    return sum(found.st_size for found in files) / 1e6


def packages(python: Path) -> int:
    """How many are installed."""
    command = [str(python), "-m", "pip", "list", "--format", "freeze"]
    return len(subprocess.run(command, check=True, capture_output=True).stdout.splitlines())


def measure(extras: Sequence[str], report: Report, progress: Progress) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as name:
        plain = Path(name, "plain")
        progress("what tierrank itself needs")
        subprocess.run([sys.executable, "-m", "venv", str(plain)], check=True)
        empty = megabytes(plain)
        install(plain / "bin" / "python", project["dependencies"])
        size, number = megabytes(plain), packages(plain / "bin" / "python")
        rows.append(["`tierrank` itself", size - empty, number])
        for extra in extras:
            progress(extra)
            folder = Path(name, extra)
            shutil.copytree(plain, folder, symlinks=True)
            python = folder / "bin" / "python"
            install(python, project["optional-dependencies"][extra])
            rows.append(
                [f"`tierrank[{extra}]`", megabytes(folder) - size, packages(python) - number]
            )
            shutil.rmtree(folder)
    columns = [Column("installed"), Column("MB more on the disk", figures), Column("packages more")]
    report.add(Table("What the extras bring along", columns, rows))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--quick", action="store_true", help="the smallest extra alone")
    options.add_argument("--markdown", action="store_true", help="tables to paste")
    chosen = options.parse_args()
    watched = Progress()
    measure(EXTRAS[:1] if chosen.quick else EXTRAS, Report(chosen.markdown, watched), watched)
