"""What holds for the package as a whole: its version, what importing it costs, what it ships, and
how its command starts.
"""

import importlib.metadata
import importlib.resources
import inspect
import json
import os
import pydoc
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

import tierrank

ROOT = Path(__file__).resolve().parents[1]

HEAVY = (
    "jinja2",
    "matplotlib",
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


def loaded_by(script, *arguments):
    """What a fresh Python has imported at the end of a script, also if it exits."""
    said = "import atexit, sys; atexit.register(lambda: print('loaded:', *sys.modules))\n"
    ran = subprocess.run(
        [sys.executable, "-c", said + script, *arguments], capture_output=True, text=True
    )
    output, _, names = ran.stdout.rpartition("loaded: ")
    return names.split(), output + ran.stderr


def test_importing_the_package_loads_nothing_heavy():
    names, _ = loaded_by("import tierrank")
    assert "tierrank" in names
    assert [name for name in ("torch", "numpy", *HEAVY) if name in names] == []


def test_what_needs_no_estimator_loads_nothing_heavy_beyond_torch():
    names, said = loaded_by(
        "import torch; print('by torch:', *sys.modules)\n"
        "import tierrank as tr; tr.Tiers, tr.log_prob, tr.losses, tr.metrics, tr.data, tr.load\n"
        "import tierrank.integrations.transformers, tierrank.integrations.sentence_transformers"
    )
    assert "tierrank.integrations.transformers" in names, said
    before = said.partition("by torch: ")[2].split()
    assert "torch" in before
    heavy = (*HEAVY, "transformers", "sentence_transformers", "datasets", "accelerate")
    assert [name for name in heavy if name in names and name not in before] == []


TYPED = (
    ["--help", "--version", "tarin", "train --help", "train --hlep", "train", "aggregate --help",
     "extreme trian", "extreme train --help", "train trian.txt --out m", "aggregate vots.csv",
     "predict modle x.txt", "export modle m.onnx", "compare floder",
     "extreme evaluate modle x.txt", "train . --out m --model liner", "compare . --model liner",
     "aggregate . --component two", "aggregate . --missing-rank gone",
     "train . --out m --objective pl-partiton", "train . --out m --objective rank:ndcg",
     "train . --out m --metric ndgc@10", "train . --out m --metric ndcg@ten",
     "train . --out m --features standrdize", "train . --out m --set trees",
     "train . --out m --missing zero", "compare . --objective pl-partiton",
     "compare . --metric ndgc@10", "compare . --features standrdize",
     "aggregate . --model davison", "aggregate . --prior gausian", "aggregate . --kind gmes",
     "aggregate . --solver newtn", "aggregate . --uncertainty sandwch", "aggregate . --ties hlf",
     "aggregate . --format cvs", "extreme train . --out m --sampler unifrm",
     "aggregate . --rest lst", "extreme train . --out m --objective foo",
     "extreme train . --out m --metric psp", "objectives pl-partiton", "evaluate . .",
     "evaluate - . --metric ndgc@10", "predict . .", "predict . . --missing zero",
     "extreme evaluate . .", "export . m.onnx"]
)  # fmt: skip


@pytest.fixture(scope="module")
def loaded_when_typed():
    """For each command, what it has imported at its end.

    One process asks for help, so that the command line is loaded, and forks for each: starting
    Python takes longer than all that follows.
    """
    script = """
import json, os, sys
from tierrank.__main__ import main
commands, kept = sys.argv[1:], os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
os.dup2(1, 2)
for typed in ["--help", *commands]:
    loaded = "tierrank.cli.options" in sys.modules
    if loaded and os.fork():
        os.wait()
        continue
    sys.argv = ["tierrank", *typed.split()]
    try:
        main()
    except SystemExit:
        pass
    if not loaded:
        continue
    os.write(kept, (json.dumps([typed, sorted(sys.modules)]) + "\\n").encode())
    os._exit(0)
"""
    ran = subprocess.run([sys.executable, "-c", script, *TYPED], capture_output=True, text=True)
    return dict(json.loads(line) for line in ran.stdout.splitlines())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked")
@pytest.mark.parametrize("typed", TYPED)
def test_help_and_typing_mistakes_do_not_wait_for_torch(typed, loaded_when_typed):
    names = loaded_when_typed[typed]
    assert "tierrank.cli.options" in names
    assert [name for name in ("torch", "numpy", "sklearn") if name in names] == []


def test_help_in_a_python_of_its_own_does_not_wait_for_torch_either():
    names, said = loaded_by("from tierrank.__main__ import main; main()", "--help")
    assert "tierrank.cli.options" in names, said
    assert [name for name in ("torch", "numpy", "sklearn") if name in names] == []


def test_the_names_that_commands_know_are_those_of_the_registries():
    from tierrank import metrics, names
    from tierrank.aggregation.terms import PRIORS
    from tierrank.data.rankings.reading import FileFormat
    from tierrank.data.rankings.usual_names import KINDS
    from tierrank.extreme.samplers import Name
    from tierrank.ranking.features import TRANSFORMERS

    assert tuple(metrics.MEASURES) == tuple(names.METRICS)
    whole = [name for name, measure in metrics.MEASURES.items()
             if "k" not in inspect.signature(measure).parameters]  # fmt: skip
    assert tuple(whole) == names.WHOLE_LIST
    for name in names.LABEL_METRICS:
        assert metrics.labels.from_name(f"{name}@5").name == f"{name}@5"
    assert tuple(TRANSFORMERS) == names.FEATURES
    assert tuple(PRIORS) == names.PRIORS
    assert tuple(KINDS) == names.TABLE_KINDS
    assert get_args(Name) == names.SAMPLERS
    formats = [name for part in get_args(FileFormat) for name in get_args(part) or [part]]
    assert ("auto", *formats) == names.RANKING_FORMATS


@pytest.mark.parametrize("module", ["typer", "typer.rich_utils", "numpy", "torch", "torch._C"])
def test_ctrl_c_while_the_command_starts_ends_it_in_silence(module, tmp_path):
    votes = tmp_path / "votes.jsonl"
    votes.write_text('["ann", "bob"]\n["bob", "ann"]\n', encoding="utf-8")
    script = f"""
import signal, sys
class Press:
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Press)
from tierrank.__main__ import main
main()
"""
    typed = ["--help"] if module.startswith("typer") else ["aggregate", votes]
    ran = subprocess.run([sys.executable, "-c", script, *typed], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize("target", ["demo", "test", "dist"])
def test_without_a_compiler_make_says_what_to_install_before_anything_else(target, tmp_path):
    venv = tmp_path / "venv"
    ran = subprocess.run(
        [shutil.which("make"), target, f"VENV={venv}"],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k not in ("CXX", "MAKEFLAGS")}
        | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode != 0
    assert not venv.exists()
    for remedy in ("apt install g++", "dnf install gcc-c++", "xcode-select --install", "winget"):
        assert remedy in ran.stderr


def test_all_public_names_are_completed_and_explained():
    assert set(tierrank.__all__) <= set(dir(tierrank))
    assert [name for name in dir(tierrank) if not name.startswith("_")] == sorted(tierrank.__all__)
    assert all(getattr(tierrank, name) is not None for name in tierrank.__all__)
    lines = re.findall(r"^    (\w+)  +\S", tierrank.__doc__, flags=re.MULTILINE)
    assert sorted(lines) == sorted(tierrank.__all__)
    shown = pydoc.plain(pydoc.render_doc(tierrank))
    kinds = [name for name in tierrank.__all__ if name[0].isupper()]
    assert [name for name in kinds if f"class {name}(" not in shown] == []
    assert "    log_prob(scores" in shown


def test_names_are_the_same_wherever_they_are_taken_from():
    from tierrank import losses, plackett_luce
    from tierrank.aggregation.aggregator import RankAggregator

    assert tierrank.log_prob is plackett_luce.log_prob
    assert tierrank.RankAggregator is RankAggregator
    assert tierrank.losses is losses
    with pytest.raises(AttributeError, match="'tierrank' has no attribute 'looses'"):
        tierrank.looses  # noqa: B018


def test_the_command_leads_to_a_function():
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="tierrank")
    assert callable(command.load())


def test_type_checkers_find_the_marker():
    assert importlib.resources.files("tierrank").joinpath("py.typed").is_file()


def test_the_templates_of_the_report_are_shipped():
    folder = importlib.resources.files("tierrank.report").joinpath("templates")
    names = {"page.css", "page.js", "page.html", "sections.html"}
    assert names <= {each.name for each in folder.iterdir()}
