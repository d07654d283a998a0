"""What holds for the package as a whole: its version, what importing it costs, what it ships."""

import importlib.metadata
import importlib.resources
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import tierrank

ROOT = Path(__file__).resolve().parents[1]

HEAVY = (
    "matplotlib",
    "numba",
    "pandas",
    "rich",
    "scipy",
    "sklearn",
    "torch._dynamo",
    "torch._inductor",
    "typer",
)


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tierrank.__version__ == project["version"]
    assert importlib.metadata.version("tierrank") == project["version"]


def test_the_changelog_has_a_heading_for_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^#+ \[?v?(\d+\.\d+\.\d+\w*)", changelog, flags=re.MULTILINE)
    assert tierrank.__version__ in versions


def test_importing_the_package_loads_nothing_heavy_beyond_torch():
    script = (
        "import sys, torch; before = set(sys.modules)\n"
        "import tierrank; print(*sorted(set(sys.modules) - before), sep='\\n')"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = ran.stdout.split()
    assert "tierrank" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_the_command_leads_to_a_function():
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="tierrank")
    assert callable(command.load())


def test_type_checkers_find_the_marker():
    assert importlib.resources.files("tierrank").joinpath("py.typed").is_file()
