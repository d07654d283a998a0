"""What `tierrank aggregate` refuses: with the file, the line, and the option that helps."""

import gzip

import pytest

from tierrank.cli.options import spelled
from tierrank.data import files
from tierrank.errors import Argument, ArgumentError, InPython


def test_what_is_not_connected_is_explained_with_the_options_of_the_command(run, tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text('["ann", "bob"]\n["bob", "cy"]\n["cy", "bob"]\n')
    ran = run("aggregate", path)
    assert ran.code == 1
    assert "ann stands above others and never below one" in ran.text
    assert "choose a prior (--prior gaussian or --prior pseudo-item)" in ran.text
    assert ran.out == ""
    assert run("aggregate", path, "--prior", "gaussian:2").code == 0
    games = tmp_path / "games.csv"
    games.write_text("a,b,winner\nx,y,x\ny,z,z\ny,z,tie\n")
    ran = run("aggregate", games, "--model", "davidson")
    assert ran.code == 1
    assert "--prior gaussian" in ran.text


def test_approval_ballots_are_told_of_the_option_that_reads_them(run, tmp_path):
    names = "".join(f"# ALTERNATIVE NAME {n}: {name}\n" for n, name in enumerate("abc", start=1))
    path = tmp_path / "votes.toi"
    path.write_text(f"{names}3: {{1,2}}\n2: {{2,3}}\n2: {{1,3}}\n")
    ran = run("aggregate", path)
    assert ran.code == 1
    assert "as on approval ballots, pass --rest last." in ran.text
    assert run("aggregate", path, "--rest", "last").code == 0


@pytest.mark.filterwarnings("default")  # which the command shows as a note
def test_what_a_preflib_file_left_to_be_assumed_is_one_line(run, tmp_path):
    names = "".join(f"# ALTERNATIVE NAME {number}: {name}\n" for number, name in enumerate("abc"))
    path = tmp_path / "votes.toc"
    path.write_text(f"# NUMBER VOTERS: 9\n{names}3: {{0,1}},2\n2: 2,{{1,0}}\n1: 1,2,0\n")
    ran = run("aggregate", path)
    assert ran.code == 0
    (note,) = [line for line in ran.err.splitlines() if line.startswith("Note: ")]
    assert "ALTERNATIVE NAME is counted from 0" in note
    assert "NUMBER VOTERS is 9, but there are 6 voters" in note


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("list,item,rank\n1,a,1\n", ["--rank", "place"], "line 1: there is no column 'place' (for"),
        ("list,item,when\n1,a,1\n", [], "pass --rank or --score with the name"),
        ("list,item,rank\n1,a,1\n1,b,DNF\n", [], "line 3: the rank is 'DNF'"),
        ("list,item,rank\n1,a,1\n1,b,DNF\n", [], "DNF=last or --missing-rank DNF=drop"),
        ("list,item,rank\n1,a,1\n1,b,\n", [], "or --missing-rank last to put them behind"),
        ("a,b,n\nx,y,3\n", ["--tied", "n"], "--tied counts ties beside wins"),
        ("list,item,rank\n1,a,1\n1,a,2\n", [], "pass --twice best"),
        ("a,b,winner\nx,y,x\nx,y,nobody\n", [], "line 3: the winner is 'nobody'"),
        ("a,b,winner\nx,y,x\nx,y,nobody\n", [], "--tie-word nobody (a tie), --drop-word nobody"),
        ("a,b,score\nx,y,1\n", [], "pass --winner, or --first-score and --second-score, or "
         "--first-wins and --second-wins and --tied"),
        ("a;b;winner\nx;y;x\n", [], 'pass --separator ";"'),
        ("a,b,winner\nx,y,x\n", ["--item", "a", "--winner", "w"], "leave one of them out"),
        ("a,b,winner\nx,y,x\n", ["--rest", "last"], "a game has two sides"),
        ("a,b,winner\nx,y,tie\ny,x,x\nx,y,x\n", ["--model", "bradley-terry"], "--ties half"),
        ("a,b,winner\nx,y,x\ny,x,y\n", ["--model", "davidson"], "use --model bradley-terry"),
        ("list,item,rank\n1,a,1\n1,b,2\n1,c,2\n", ["--model", "davidson"], "--model pl-partition"),
        ("list,item,rank\n1,a,1\n1,b,2\n", ["--model", "davidson", "--home"], "a row a game"),
        ("list,item,rank\n1,a,1\n1,b,1\n", ["--model", "davidson-luce"], "Give a prior (--prior"),
        ("list,item,rank\n1,a,1\n2,b,1\n", ["--model", "davidson-luce", "--rest", "last"],
         "read them with --rest absent"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_table_is_said_with_its_line_and_the_options(
    run, tmp_path, content, arguments, message
):
    path = tmp_path / "data.csv"
    path.write_text(content)
    ran = run("aggregate", path, *arguments)
    assert ran.code == 1
    assert message in ran.text
    assert f"Error: {path}" in ran.text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.jsonl", '["a", "b"]\n["a", "a"]\n', 'line 2: item "a" is in the ranking twice'),
        ("bad.soc", "# ALTERNATIVE NAME 1: a\n1: 1,2\n", "line 2: there is no alternative 2"),
        ("bad.txt", "1\n", "or give --format"),
        ("absent.csv", None, "absent.csv: No such file or directory"),
    ],
)
def test_malformed_files_are_refused(run, tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    ran = run("aggregate", path)
    assert ran.code == 1
    assert message in ran.text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model", "davidsen"], 1, "Did you mean 'davidson'?"),
        (["--model", "pl-topk:q=3"], 1, "--model pl-topk:q=3: PLTopK has no option 'q'"),
        (["--model", "davidson", "--solver", "lbfgs"], 1, "--solver: davidson has one"),
        (["--model", "davidson", "--top-k", "2"], 1, "--top-k: davidson is a model of games"),
        (["--model", "davidson-luce", "--solver", "lbfgs"], 1, "--solver: davidson-luce has one"),
        (["--model", "davidson-luce", "--home"], 1, "--home is for davidson, rao-kupper"),
        (["--groups", "some"], 1, "--groups is a number from 1 on, or auto, not some"),
        (["--groups", "0"], 1, "--groups is a number from 1 on, or auto, not 0"),
        (["--groups", "2", "--model", "davidson"], 1, "leave out --model davidson"),
        (["--groups", "2", "--solver", "lbfgs"], 1, "leave out --solver"),
        (["--model", "davidson-luse"], 1, "Did you mean 'davidson-luce'?"),
        (["--home", "--model", "pl-partition"], 1, "--home is for davidson"),
        (["--neutral", "n"], 1, "it goes with --home"),
        (["--kind", "table"], 1, "--kind is one of items, games"),
        (["--component", "two"], 1, '--component is "all" or "largest"'),
        (["--ties", "half"], 1, "--ties is for davidson"),
        (["--prior", "gausian"], 1, "there is no prior 'gausian': it is none, one of gaussian"),
        (["--items", "nowhere.csv"], 1, "Error: nowhere.csv: No such file"),
        (["--uncertainty", "no"], 1, '--uncertainty is "information", "sandwich" or None'),
        (["--uncertainty", "none", "--clusters", "c"], 1, "leave out --clusters or --uncertainty"),
        (["--rest", "first"], 1, "--rest is absent or last"),
        (["--format", "xls"], 1, "--format is one of auto, preflib"),
        (["--missing-rank", "gone"], 1, "--missing-rank is error, drop or last"),
        (["--missing-rank", "DNF=gone"], 1, "write WORD=drop or WORD=last"),
        (["--first-wins", "w"], 1, "give both of --first-wins and --second-wins"),
        (["--level", "95"], 2, "between 0 and 1, as in --level 0.95"),
        (["--out", "report.pdf"], 2, "the report is a .html file"),
        (["--json", "-", "--csv", "-"], 2, "would both write to standard output"),
        (["--json", "x.html", "--out", "x.html"], 2, "would write the same file"),
        (["--time", "t", "--plot", "x.png", "--card", "x.png"], 2, "would write the same file"),
        (["--csv", "/dev/null/x.csv"], 2, "nothing can be written there"),
        (["--out", "/proc/r.html"], 2, "nothing can be written there: /proc/r.html: No such file"),
        (["--top", "0"], 2, "Invalid value for '--top'"),
    ],
)
def test_wrong_options_are_explained_before_anything_is_read(
    run, tmp_path, arguments, code, message
):
    (tmp_path / "unreadable.csv").write_bytes(b"\0")
    ran = run("aggregate", tmp_path / "unreadable.csv", *arguments)
    assert ran.code == code
    assert message in ran.text


def test_a_file_that_expands_too_far_is_refused_with_what_a_command_can_do(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr(files, "ALWAYS_ALLOWED", 1 << 10)
    path = tmp_path / "votes.jsonl.gz"
    path.write_bytes(gzip.compress(b'["a", "b"]\n' + b"\n" * (1 << 20)))
    ran = run("aggregate", path)
    assert ran.code == 1
    assert ran.err.endswith("If it is to be trusted, unpack it first.\n")


def test_messages_of_the_library_get_the_words_of_the_command():
    prior = ArgumentError("use ", Argument("prior", "gaussian"), " or pseudo-item")
    assert spelled(prior) == "use --prior gaussian or pseudo-item"
    drop, last = Argument("missing_rank", "drop"), Argument("missing_rank", {"DNF": "last"})
    assert spelled(ArgumentError("pass ", drop, ", or ", last)) == (
        "pass --missing-rank drop, or --missing-rank DNF=last"
    )
    assert spelled(ArgumentError("leave out ", Argument("drop", ("a b", "c")))) == (
        'leave out --drop "a b" --drop c'
    )
    more = InPython(" (or call fit)")
    raised = ArgumentError("raise ", Argument("max_iter"), more, "\nor \x1b[2J")
    assert spelled(raised) == "raise --max-iter\nor \ufffd[2J"
    assert str(raised) == "raise max_iter (or call fit)\nor \x1b[2J"
    assert spelled("the rank is 3, as said = so") == "the rank is 3, as said = so"
