"""What commands are made of: `tierrank` itself, how a function becomes one of its commands, what it
says, and options that several have.

Results go to standard output, and all else that is said to standard error.
"""

from __future__ import annotations

import errno
import functools
import inspect
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

import typer
from typer.core import TyperGroup

from tierrank.__main__ import INTERRUPTED as INTERRUPTED
from tierrank.errors import Argument, ArgumentError, ArgumentWarning, Column
from tierrank.names import counted

if TYPE_CHECKING:
    from rich.console import Console

    from tierrank.data.ranking_data import Categories
    from tierrank.ranking.comparison import Standing


STDIN = Path("-")
ANSWER = 15  # seconds that a scheduler has
_MEMORY = Path("/proc/meminfo")
_PYTHON_WORDS = {"None": None, "True": True, "False": False}

# Arguments of the library that have an option of another name, and those that name columns.
_OPTIONS = {
    "objective": "--model", "tie_words": "--tie-word", "drop_words": "--drop-word",
    "cache": "--cache-folder", "variance": "--innovation", "keep": "--by, --time or --clusters",
    "covariates": "--covariate", "keep_items": "--covariate",
}  # fmt: skip
_WRITTEN = ("out", "json", "csv", "plot", "card", "truth", "target")  # options that name files
COLUMNS = {"wins": ("--first-wins", "--second-wins"), "ties": ("--tied",)}
# What a terminal would obey, but for the line break.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


# The command, and `tierrank extreme`; commands register when they are asked for ------------------


class Lazily(TyperGroup):
    """Commands in the order in which people meet them, each loaded when it is asked for.

    Attributes
    ----------
    homes
        the module of each command, where importing it registers the command
    """

    homes: ClassVar[dict[str, str]] = {
        "train": "train",
        "predict": "predict",
        "evaluate": "evaluate",
        "compare": "compare",
        "export": "predict",
        "aggregate": "aggregate",
        "simulate": "demo",
        "extreme": "options",
        "objectives": "objectives",
        "demo": "demo",
    }

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        self._load(*self.homes)
        return list(self.homes)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if there is none, and then all are there to guess from."""
        self._load(*([cmd_name] if cmd_name in self.homes else self.homes))
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _as_flags(command.get_params(ctx))
        return command

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of the group itself."""
        return _as_flags(super().get_params(ctx))

    def _registered(self) -> Any:
        return typer.main.get_command(app)

    def _load(self, *names: str) -> None:
        lacking = [name for name in names if name not in self.commands]
        for name in lacking:
            import_module(f"tierrank.cli.{self.homes[name]}")
        if lacking:
            self.commands.update(self._registered().commands)


class _LazilyExtreme(Lazily):
    homes: ClassVar[dict[str, str]] = {
        "train": "extreme_train", "predict": "extreme_predict", "evaluate": "extreme_predict",
    }  # fmt: skip

    def _registered(self) -> Any:
        return typer.main.get_command(extreme)


def _as_flags(params: list[Any]) -> list[Any]:
    """Show flags as --resume, not as `--resume <bool>`."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
            if param.name == "help":  # typer would load pydantic to convert None
                param.default = False
    return params


app = typer.Typer(
    cls=Lazily,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    help="Learning to rank from tiers: lists of items in ordered groups, by the exact "
    "Plackett-Luce likelihood.",
)
extreme = typer.Typer(
    cls=_LazilyExtreme,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    help="Ranking over huge label sets: rows with a few labels out of thousands to millions.",
)
app.add_typer(extreme, name="extreme")


def _version(wanted: bool) -> None:
    if wanted:
        from tierrank import __version__

        typer.echo(f"tierrank {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@extreme.callback()
def _extreme() -> None:
    pass


# What a function needs to become a command -------------------------------------------------------


def explained(command: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command: it says what it refuses in one message, never by a traceback.

    Warnings become notes, and Ctrl-C ends it in peace. A parameter that is a dataclass is a group
    of options: the command line has one for each field.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def run(**options: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = _as_note
            try:
                _look_for_inputs(options)
                _keep_inputs(options)
                for name, group in groups.items():
                    own = {each.name: options.pop(each.name) for each in fields(group)}
                    options[name] = group(**own)
                command(**options)
            except BrokenPipeError:
                raise  # somebody closed the pipe, as `head` does: typer leaves in silence
            except KeyboardInterrupt:
                stderr().print("Stopped.")
                raise typer.Exit(INTERRUPTED) from None
            except (ValueError, OSError, ImportError, MemoryError) as error:
                stderr().print(
                    f"Error: {_said(error)}",
                    style="red",
                    markup=False,
                    highlight=False,
                    soft_wrap=True,
                )
                raise typer.Exit(1) from None

    flat = [
        each for one in signature.parameters.values() for each in _options_of(one, groups)
    ]  # fmt: skip
    run.__signature__ = signature.replace(parameters=flat)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in flat}
    return run


def _options_of(
    parameter: inspect.Parameter, groups: Mapping[str, Any]
) -> Iterator[inspect.Parameter]:
    """The options that a parameter of a command stands for: itself, or the fields of its group."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    if parameter.name not in groups:
        yield parameter.replace(kind=keyword)
        return
    group = groups[parameter.name]
    hints = get_type_hints(group, include_extras=True)
    for each in fields(group):
        yield inspect.Parameter(
            each.name, keyword, default=each.default, annotation=hints[each.name]
        )


def _look_for_inputs(options: Mapping[str, Any]) -> None:
    """Refuse files and models that are not there, before torch is loaded: that takes seconds."""
    for name in ("data", "file", "valid", "features"):
        path = options.get(name)
        if isinstance(path, Path) and path != STDIN and not path.exists():
            if any(path.parent.glob(path.name)):  # a pattern
                continue
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    typed = (options.get(name) for name in ("model", "init_model"))
    models = [model for model in typed if isinstance(model, Path)]
    for ranker in options.get("rankers", ()):
        if ranker.is_dir():
            models.append(ranker)
        elif ranker != STDIN and not ranker.exists():
            raise ValueError(
                f"{ranker}: there is no such model, nor a file of scores or predictions."
            )
    if models:
        from tierrank import storage

        for model in models:
            storage.check(model, "model")


def _keep_inputs(options: Mapping[str, Any]) -> None:
    """Refuse to write over a file that is read, which is any that has no name of those written."""
    paths = [(name, each) for name, given in options.items()
             for each in (given if isinstance(given, list) else [given])
             if isinstance(each, Path) and each != STDIN and each.is_file()]  # fmt: skip
    for name, path in paths:
        if name in _WRITTEN and any(
            path.samefile(other) for what, other in paths if what not in _WRITTEN
        ):
            raise typer.BadParameter(f"{path}: is what is read, give another file to write")


def stdout() -> Console:
    """Where results go. Numbers are not coloured: colours are for what matters."""
    from rich.console import Console

    return Console(highlight=False)


def stderr() -> Console:
    """Where all else goes, so that results can be piped."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """Say something that the user may want to know; of several processes, the first does."""
    if process_number() > 0:
        return
    stderr().print(f"Note: {spelled(text)}", style="yellow", markup=False, soft_wrap=True)


def said(what: str, path: Path) -> None:
    """Say where something is."""
    stderr().print(f"{what} is in {path}", markup=False, soft_wrap=True)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say on a terminal what takes its time."""
    console = stderr()
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def process_number() -> int:
    """Which of `torchrun`'s processes this is; 0 without it."""
    return int(os.environ.get("RANK", 0)) if by_torchrun() else 0


def by_torchrun() -> bool:
    """Whether `torchrun` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def spell(argument: Argument) -> str:
    """An argument of the library as the option that it is here, with its value for a shell.

    >>> spell(Argument("missing_rank", {"DNF": "last"})), spell(Argument("separator", ";"))
    ('--missing-rank DNF=last', '--separator ";"')
    """
    name, value = argument
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    if isinstance(argument, Column):
        return " and ".join(COLUMNS.get(name, (option,)))
    if value is None:
        return option
    if isinstance(value, tuple):
        return " ".join(f"{option} {_quoted(each)}" for each in value)
    if isinstance(value, Mapping):
        return " ".join(f"{option} {_quoted(f'{word}={what}')}" for word, what in value.items())
    return f"{option} {_quoted(value)}"


def _quoted(value: str) -> str:
    """A value as a shell takes it."""
    return value if re.fullmatch(r"[\w.=:/-]+", value) else f'"{value}"'


def _said(error: Exception) -> str:
    if isinstance(error, MemoryError):
        why = f" ({error})" if str(error) else ""
        return f"there is not enough memory{why}. To train, text can be left on the disk: --cache."
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return spelled(error)


def spelled(message: object) -> str:
    """A message in the words of the command line, and harmless to a terminal."""
    if isinstance(message, ArgumentError | ArgumentWarning):
        message = message.spelled(spell)
    return _CONTROL.sub("\ufffd", str(message))


def _as_note(message: Warning | str, *rest: Any, **more: Any) -> None:
    note(spelled(message))


# Arguments and options ----------------------------------------------------------------------------


STDOUT = Path("-")


def option(
    help: str, *names: str, panel: str | None = None, default: str | bool = True, **more: Any
) -> Any:
    """An option: what it is for, its names if they are not its parameter's, its panel, what to show
    as its default, and limits or a metavar.
    """
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=default, **more)


def argument(help: str, **more: Any) -> Any:
    """An argument of a command."""
    return typer.Argument(help=help, **more)


DATA = "Data"
MODEL = "Model"
VALID = "Validation"
CLUSTER = "Cluster"

# fmt: off
Kind = Annotated[str | None, option(
    "linear, neural, boosted, or best: a blend of all three.", "--model", metavar="KIND",
    panel=MODEL, default="boosted")]
Features = Annotated[list[str] | None, option(
    "Feature step: impute, standardize, query-scale, second-order, perhaps with parameters, as in "
    "second-order:threshold=0.1; none for no steps. Repeat for several, in their order.",
    metavar="STEP", panel=MODEL)]
Valid = Annotated[Path | None, option(
    "Validation data: the best step by them is kept.", metavar="FILE", panel=VALID)]
Seed = Annotated[int, option("Seed of all that is random.", min=0)]
Threads = Annotated[int | None, option("Threads to compute with.", min=1, default="all cores")]
Fold = Annotated[int | None, option("Which fold of a folder that has several.", min=1, panel=DATA)]
Separator = Annotated[str | None, option(
    "What stands between two cells of a CSV file, as in ';'.", metavar="CHARACTER", panel=DATA,
    default="as the name says")]
RawCsv = Annotated[bool, option(
    "In CSV, write text as it is, also where a spreadsheet would take it for a formula; without "
    "this it gets ' in front.", "--raw-csv")]
ModelFolder = Annotated[Path, argument("Folder of a trained model.", metavar="MODEL")]
Out = Annotated[Path, option("Folder for the model, its curve and checkpoints.")]
Resume = Annotated[bool, option("Go on with a training that was stopped.", "--resume")]
Overwrite = Annotated[
    bool, option("Replace the model or training that is in --out.", "--overwrite")
]
# fmt: on


@dataclass(frozen=True)
class Reading:
    """How files of labelled rows are to be read."""

    # fmt: off
    label: Annotated[str, option("Label column of a table.", panel=DATA)] = "label"
    query: Annotated[str, option("Query column of a table.", panel=DATA)] = "qid"
    drop: Annotated[list[str] | None, option(
        "Column of a table that is no feature. Repeat for several.", metavar="COLUMN", panel=DATA
    )] = None
    missing: Annotated[str, option(
        "What missing values become: keep (for boosted trees, or the step impute), or a number.",
        metavar="VALUE", panel=DATA)] = "keep"
    separator: Separator = None
    zero_based: Annotated[bool, option(
        "Feature indices of the LETOR file start at 0, even if no row has a 0.", "--zero-based",
        panel=DATA)] = False
    # fmt: on

    def __post_init__(self) -> None:
        self.fill()  # refuses what is no number

    def fill(self) -> float | None:
        """What missing values become; None to keep them."""
        if self.missing == "keep":
            return None
        try:
            return float(self.missing)
        except ValueError:
            raise ValueError(f"--missing is keep or a number, not {self.missing!r}.") from None

    @property
    def weight(self) -> str | None:
        """The column of a table that says how much a row's list counts, which is no feature."""
        return None

    @property
    def position(self) -> str | None:
        """The column of a table that says where a row was shown, which is no feature."""
        return None

    @property
    def categorical(self) -> Categories:
        """Columns of a table that hold categories."""
        return ()

    def cache_for(self, *files: Path) -> bool | Path:
        """Whether, or in which folder, arrays of files that are read together are kept."""
        return False

    def columns(self) -> dict[str, object]:
        """What is said of columns that only a table has, by option."""
        return {"--label": self.label != "label", "--query": self.query != "qid",
                "--drop": self.drop, "--separator": self.separator, "--weight-column": self.weight,
                "--position-column": self.position,
                "--categories": self.categorical not in ((), "auto")}  # fmt: skip


@dataclass(frozen=True)
class Categorical(Reading):
    """As `Reading`, where some columns may hold categories."""

    # fmt: off
    categories: Annotated[list[str] | None, option(
        "Column of a table that holds categories, of text or numbers, which boosted trees split "
        "into sets. Repeat for several.", metavar="COLUMN", panel=DATA,
        default="those that Parquet says are dictionaries")] = None
    # fmt: on

    @property
    def categorical(self) -> Categories:
        """Columns that hold categories."""
        return "auto" if self.categories is None else tuple(self.categories)


@dataclass(frozen=True)
class Caching:
    """Whether files are read into arrays on the disk."""

    # fmt: off
    cache: Annotated[bool | None, option(
        "Read text in pieces, once, into arrays in a folder beside it (FILE.cache), and learn from "
        "there.", "--cache/--no-cache", panel=DATA,
        default="where it would not fit into memory")] = None
    cache_folder: Annotated[Path | None, option(
        "Folder for these arrays, if they are not to be beside the files.", panel=DATA)] = None
    # fmt: on

    def cache_for(self, *files: Path) -> bool | Path:
        """Whether, or in which folder, arrays of files that are read together are kept.

        Read into memory, text of LETOR takes 3 times its size (its bytes, 12 for each value and 8
        for each cell) and, where it is compressed, some 15.
        """
        from tierrank.data.files import PARQUET, SUFFIXES, is_table

        if self.cache is False and self.cache_folder is not None:
            raise typer.BadParameter("--cache-folder is for --cache: leave one of them out")
        if not self.cache and self.cache_folder is None:
            there = [file for file in files if file.is_file()]
            packed = (*SUFFIXES, PARQUET)
            needed = sum(
                file.stat().st_size * (15 if file.suffix.lower() in packed else 3) for file in there
            )
            if self.cache is False or needed < (available() or math.inf):
                return False
            if any(is_table(file) and file.suffix.lower() in SUFFIXES for file in there):
                return False  # which cannot be read in pieces
            note(
                f"{' and '.join(file.name for file in there)} may not fit into memory, so arrays "
                "are kept on the disk; --no-cache reads all of it into memory."
            )
        return self.cache_folder or True


def available() -> int | None:
    """Bytes that can still be had; None where neither the system nor a limit says."""
    found: list[int] = []
    with suppress(OSError, ValueError, IndexError):
        lines = _MEMORY.read_text().splitlines()
        said = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
        found += [int(kilobytes) * 1024 for kilobytes in said]
    with suppress(ImportError):  # on Windows
        import resource

        limits = (
            resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)
        )
        found += [limit for limit in limits if limit != resource.RLIM_INFINITY]
    return min(found, default=None)


@dataclass(frozen=True)
class Standings:
    """How the standings of rankers are written, if not as a table to read."""

    as_json: Annotated[bool, option("Write JSON.", "--json")] = False
    as_csv: Annotated[bool, option("Write CSV.", "--csv")] = False
    raw_csv: RawCsv = False

    def __post_init__(self) -> None:
        if self.as_json and self.as_csv:
            raise typer.BadParameter("--json or --csv: give one of them")

    def write(self, standings: Sequence[Standing], **about: Any) -> bool:
        """Write them, with what they are about; False if a table is wanted."""
        from tierrank.report.tables import standings_csv, standings_json

        if self.as_json:
            typer.echo(standings_json(standings, **about), nl=False)
        elif self.as_csv:
            typer.echo(standings_csv(standings, raw=self.raw_csv), nl=False)
        return self.as_json or self.as_csv


@dataclass(frozen=True)
class Cluster:
    """Who computes: this process, a Dask cluster that is there, or one that is started here."""

    # fmt: off
    dask: Annotated[str | None, option(
        "Compute on the Dask cluster whose scheduler is there, as in tcp://10.0.0.1:8786.",
        metavar="ADDRESS", panel=CLUSTER)] = None
    workers: Annotated[int | None, option(
        "Compute by so many Dask workers, which are started on this machine.", min=1, panel=CLUSTER,
    )] = None
    # fmt: on

    def __post_init__(self) -> None:
        if self.dask is not None and self.workers is not None:
            raise ValueError("--dask names a cluster, and --workers starts one: give one of them.")

    def __bool__(self) -> bool:
        return self.dask is not None or self.workers is not None

    @contextmanager
    def client(self) -> Iterator[Any]:
        """A client of the cluster, which ends with the context if it was started here."""
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise ImportError(
                '--dask and --workers need Dask: pip install "tierrank[distributed]"'
            ) from None
        if self.dask is not None:
            try:
                client = Client(self.dask, timeout=ANSWER)
            except (OSError, TimeoutError, ValueError) as error:
                raise ConnectionError(
                    f"{self.dask}: no Dask scheduler answered within {ANSWER} s. Is it running "
                    "there? `dask scheduler` starts one, `dask worker ADDRESS` a worker."
                ) from error
            with client:
                note(f"{_workers(len(client.nthreads()))}; dashboard: {client.dashboard_link}")
                yield client
            return
        with LocalCluster(
            n_workers=self.workers, processes=True, host="127.0.0.1", dashboard_address=":0"
        ) as cluster, Client(cluster) as client:  # fmt: skip
            note(f"{_workers(self.workers or 0)} here; dashboard: {client.dashboard_link}")
            yield client


def _workers(number: int) -> str:
    return counted(number, "Dask worker")


def check_rankers(rankers: Sequence[Path], data: Path) -> None:
    """Refuse a ranker that is given twice, and a model where the data should be."""
    if (data / "model.json").is_file():
        raise ValueError(f"{data}: is a model. The data come last: RANKER... DATA.")
    for number, ranker in enumerate(rankers):
        if ranker in rankers[:number]:
            raise ValueError(f"{named(ranker)} is given twice.")


def check_choice(*, resume: bool, overwrite: bool) -> None:
    """Refuse to go on and to begin anew."""
    if resume and overwrite:
        raise typer.BadParameter("--resume goes on, --overwrite begins anew: give one of them")


def use_threads(threads: int | None) -> None:
    """Compute with so many threads."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def named(file: Path) -> str:
    """What results call a file."""
    return "standard input" if file == STDIN else str(file)


def check_file(path: Path, option: str) -> None:
    """Refuse a place where no file can be written: better known before the work than after it."""
    if path.is_dir():
        raise typer.BadParameter(f"{option}: {path} is a folder, give the name of a file")
    if path.exists() and not path.is_file():
        return  # a device or a pipe
    from tempfile import TemporaryFile

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise typer.BadParameter(
            f"{option}: nothing can be written there: {path}: {error.strerror}"
        ) from None


def check_picture(
    path: Path, option: str, kinds: tuple[str, ...] = (".png", ".pdf", ".svg")
) -> None:
    """Refuse a place where no picture can be drawn, or drawing where nothing draws."""
    if path.suffix.lower() not in kinds:
        *others, last = kinds
        known = f"{', '.join(others)} or {last}" if others else last
        raise typer.BadParameter(f"{option}: a picture is a {known} file, and {path} is none")
    check_file(path, option)
    from importlib.util import find_spec

    if not find_spec("matplotlib"):
        raise typer.BadParameter(f'{option} needs matplotlib: pip install "tierrank[plots]"')


def can_draw() -> bool:
    """Whether a picture beside other results can be drawn; if not, it is said how it could."""
    from importlib.util import find_spec

    if find_spec("matplotlib"):
        return True
    note('matplotlib is not installed, so no curve is drawn: pip install "tierrank[plots]"')
    return False


def write(path: Path | None, what: str, content: Callable[[], str]) -> None:
    """Write text to a file, whole or not at all, and say so; or to standard output."""
    from tierrank.storage import replace_file

    if path is None:
        return
    if path == STDOUT:
        typer.echo(content(), nl=False)
        return
    replace_file(path, content().encode("utf-8", errors="backslashreplace"))
    said(what, path)


def suffix_of(start: bytes, lists: bool = False) -> str:
    """How the name of a file would end, by how it begins; LETOR's, scores' and PrefLib's: "".

    `lists` is whether it has lists or games, and no rows or scores.
    """
    if start.startswith(b"PAR1"):
        return ".parquet"
    lines = start.removeprefix(b"\xef\xbb\xbf").splitlines()
    filled = (each.lstrip(b" ") for each in lines if each.strip())
    line = next((each for each in filled if lists or not each.startswith(b"#")), b"")
    if lists and line.startswith((b"[", b"{")):
        return ".jsonl"
    if line.startswith(b"#") if lists else _is_row_or_score(line):
        return ""
    return ".tsv" if b"\t" in line and b"," not in line else ".csv"


def _is_row_or_score(line: bytes) -> bool:
    """Whether it is LETOR's, or one number; so is nothing."""
    try:
        float(line.split()[0] if line else 0)
        return True
    except ValueError:
        return b"qid:" in line


def parse_value(text: str) -> Any:
    """A value as JSON has it (or Python: None, True, False); anything else is a string."""
    try:
        return json.loads(text)
    except ValueError:
        return _PYTHON_WORDS.get(text, text)


def parse_settings(pairs: Iterable[str], option: str) -> dict[str, Any]:
    """The values of NAME=VALUE pairs by name."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise ValueError(f"{option} {pair}: write it as NAME=VALUE, as in {option} k=5.")
        if name in settings:
            raise ValueError(f"{option} gives {name} twice: leave one of them.")
        settings[name] = parse_value(value.strip())
    return settings


def parse_named(text: str, option: str) -> tuple[str, dict[str, Any]]:
    """A name with settings of its own: `pl-topk:k=5`, `second-order:threshold=0.1`."""
    name, _, rest = text.partition(":")
    # A comma may also stand inside a JSON list: only one before NAME= starts the next pair.
    pairs = re.split(r",(?=\s*[\w-]+=)", rest) if rest else []
    return name.strip(), parse_settings(pairs, f"{option} {name}:")


@contextmanager
def on_disk(file: Path, lists: bool = False) -> Iterator[Path]:
    """The path to read from; standard input (-) is kept in a file for so long.

    Its name ends as it begins (`suffix_of`), and messages call it standard input.
    """
    if file != STDIN:
        yield file
        return
    from tierrank.data.files import beginning
    from tierrank.storage import replace_file

    content = sys.stdin.buffer.read()
    start, packed = beginning(content)
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        path = Path(folder, f"standard input{suffix_of(start, lists)}{packed}")
        replace_file(path, content)  # which names it, if there is no room

        def called(message: object) -> str:
            return spelled(message).replace(str(path), "standard input")

        show = warnings.showwarning
        warnings.showwarning = lambda message, *rest: show(called(message), *rest)
        try:
            yield path
        except ValueError as error:
            raise ValueError(called(error)) from None
