"""What leaves the house: the wheel alone in an empty environment, what it needs, and its papers."""

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import jinja2
import pytest
from typer.testing import CliRunner

import tierrank as tr
from tierrank.cli.options import app
from tierrank.integrations import sentence_transformers, transformers

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
yaml = pytest.importorskip("yaml")


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """An environment with the wheel, and with what it depends on as it is installed here.

    A folder of packages that is named in a .pth file is looked through after the environment's
    own, and the .pth files in it, which lead to the checkout, are not read.
    """
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps",
         "-C", f"build-dir={ROOT / 'build' / 'wheel'}", "-w", folder, ROOT],
        check=True,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    made = venv.EnvBuilder(with_pip=False)
    made.create(folder / "venv")
    python = made.ensure_directories(folder / "venv").env_exe
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps",
         "--no-index", wheel],
        check=True,
    )  # fmt: skip
    ours = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.check_output([python, "-c", ours], text=True).strip())
    there = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "what_it_depends_on.pth").write_text("\n".join(there), encoding="utf-8")
    return python


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_wheel_opens_the_three_doors_without_the_checkout(empty, tmp_path):
    script = (ROOT / "tests" / "three_doors.py").read_text(encoding="utf-8")
    (tmp_path / "three_doors.py").write_text(script, encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        [empty, "three_doors.py"], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    version, place = re.search(r"of tierrank (\S+) open: (.*)", ran.stdout).groups()
    assert version == PROJECT["version"]
    assert Path(place).is_relative_to(Path(empty).parents[1])
    paths = subprocess.check_output(
        [empty, "-c", "import sys, tierrank._native as native; print(native.__file__, *sys.path)"],
        cwd=tmp_path, env=clean, text=True,
    ).split()  # fmt: skip
    assert [path for path in paths if Path(path).is_relative_to(ROOT / "src")] == []
    assert Path(paths[0]).is_relative_to(Path(empty).parents[1])


OPTIONAL = (
    "matplotlib", "lightning_fabric", "lightgbm", "xgboost", "pyarrow", "onnx", "onnxruntime",
    "dask", "distributed", "pandas", "sentence_transformers", "transformers",
)  # fmt: skip


def test_leaderboards_and_linear_rankers_need_nothing_that_is_optional():
    required = " ".join(PROJECT["dependencies"])
    assert not [name for name in OPTIONAL if name.replace("_", "-") in required]
    script = f"""
import sys
sys.modules.update(dict.fromkeys({OPTIONAL!r}))  # importing one fails
import tierrank as tr
fitted = tr.RankAggregator().fit([["a", ("b", "c")], ["b", "a"], ["c", "a", "b"]])
print(fitted.ranking(), fitted.summary())
games = tr.PairedTies(prior="gaussian").fit([("a", "b", 1), ("b", "c", 0), ("c", "a", -1)])
print(games.predict_proba("a", "b"))
tr.LinearRanker(features=None).fit([[0.0], [1.0], [2.0]], [0, 1, 1], qid=[1, 1, 1])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("['c', 'a', 'b'] RankAggregator")


def plot():
    tr.RankAggregator().fit([["a", "b"], ["b", "a"]]).plot()


def fit(ranker):
    ranker.fit([[0.0], [1.0]], [0, 1], qid=[1, 1])


@pytest.mark.parametrize(
    ("library", "extra", "use"),
    [
        ("matplotlib", "plots", plot),
        ("lightning_fabric", "neural", lambda: fit(tr.NeuralRanker())),
        ("lightgbm", "boost", lambda: fit(tr.BoostedRanker(trees=1))),
        ("xgboost", "boost", lambda: fit(tr.BoostedRanker(trees=1, library="xgboost"))),
        ("pyarrow", "tables", lambda: tr.data.read_rankings("votes.parquet")),
        ("transformers", "transformers", lambda: transformers.TieredDPOTrainer),
        ("datasets", "sentence-transformers", lambda: sentence_transformers.listwise({})),
    ],
)
def test_what_is_missing_is_answered_by_the_command_that_installs_it(
    library, extra, use, monkeypatch, tmp_path
):
    assert extra in PROJECT["optional-dependencies"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.parquet").touch()
    monkeypatch.delitem(vars(transformers), "TieredDPOTrainer", raising=False)
    monkeypatch.setitem(sys.modules, library, None)  # importing it fails
    with pytest.raises((ImportError, ValueError), match=rf'pip install "tierrank\[{extra}\]"'):
        use()


def test_without_matplotlib_a_training_draws_no_curve_and_a_picture_is_refused_at_once(
    monkeypatch, tmp_path
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    rows = "".join(f"{i % 2} qid:{i // 4} 1:{i % 5}\n" for i in range(40))
    (tmp_path / "rows.txt").write_text(rows, encoding="utf-8")
    model = tmp_path / "model"
    typed = ["train", str(tmp_path / "rows.txt"), "--model", "linear", "--out", str(model)]
    trained = CliRunner().invoke(app, typed)
    assert trained.exit_code == 0, trained.output
    assert 'pip install "tierrank[plots]"' in trained.output
    assert (model / "curve.csv").exists()
    assert not (model / "curve.png").exists()
    drawn = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "picture.png")])
    assert drawn.exit_code == 2
    assert 'pip install "tierrank[plots]"' in " ".join(drawn.output.replace("│", " ").split())


def test_the_recipe_for_conda_has_the_version_and_the_needs_of_the_project():
    text = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    asked = {"load_file_data": lambda path, from_recipe_dir: tomllib.loads(
        (ROOT / "conda" / path).read_text(encoding="utf-8")),
        "compiler": lambda language: f"{language}-compiler", "PYTHON": "python"}  # fmt: skip
    recipe = yaml.safe_load(jinja2.Template(text).render(asked))
    assert recipe["package"] == {"name": "tierrank", "version": PROJECT["version"]}
    needs = {each.replace(" ", "") for each in recipe["requirements"]["run"]}
    python = f"python{PROJECT['requires-python']}"
    assert {each.replace("pytorch", "torch") for each in needs} == {
        python, *PROJECT["dependencies"]
    }  # fmt: skip
    assert python in {each.replace(" ", "") for each in recipe["requirements"]["host"]}
    for file in recipe["test"]["source_files"]:
        assert (ROOT / file).is_file()


def test_who_cites_it_finds_the_same_name_licence_and_home():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Homepage"]
    assert "version" not in citation  # pyproject.toml has it


def test_public_ci_tries_every_python_that_the_project_names():
    pythons = {each.rpartition(" ")[2] for each in PROJECT["classifiers"] if ":: 3." in each}
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
    for job in ("test", "windows"):
        assert set(jobs[job]["strategy"]["matrix"]["python"]) == pythons
    publish = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text(encoding="utf-8"))
    assert publish["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    for job in publish["jobs"].values():
        for step in job["steps"]:
            for name in re.findall(r"tests/\w+\.py", str(step)):
                assert (ROOT / name).is_file()


def test_every_work_that_the_paper_cites_is_in_its_bibliography():
    paper = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    known = set(
        re.findall(r"^@\w+\{([\w:-]+),", (ROOT / "paper/paper.bib").read_text("utf-8"), re.M)
    )
    cited = set(re.findall(r"@([\w:-]+\w)", paper.partition("\n---\n")[2]))
    assert cited
    assert cited == known
    words = re.sub(r"```.*?```", "", paper.partition("\n---\n")[2], flags=re.S).split()
    assert 250 <= len(words) <= 1000  # as the journal asks
    for heading in ("# Summary", "# Statement of need", "# References"):
        assert heading in paper
