"""What the reference says of each public name, by numpydoc's own validation."""

import ast
import builtins
import doctest
import importlib
import inspect
import re
import runpy
from pathlib import Path

import pytest

validate = pytest.importorskip("numpydoc.validate").validate
DOCS = Path(__file__).resolve().parents[1] / "docs"
NOT_FOR_PEOPLE = runpy.run_path(str(DOCS / "conf.py"))["NOT_FOR_PEOPLE"]

# What numpydoc asks for and need not be there. All else must, of every name and method.
NOT_ASKED = {"ES01"}  # more than a summary: one line often says it all
NOT_ASKED_OF_PROPERTIES = {"SA01", "EX01"}  # they stand on the page of their class, which has both


def public_names():
    module = ""
    for line in (DOCS / "reference.rst").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   ([A-Za-z_][\w.]*)$", line):
            yield f"{module}.{found[1]}"


def looked_up(name):
    """The object, and the class it is a member of, if it is one."""
    owner, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(owner), last)
    except ImportError:
        return getattr(looked_up(owner), last)


def members(name, seen):
    """Methods and properties of a class that this package wrote, each once, with what they are."""
    kind = looked_up(name)
    for member in dir(kind) if inspect.isclass(kind) else ():
        found = inspect.getattr_static(kind, member)
        function = getattr(found, "fget", None) or getattr(found, "func", None)
        is_property = function is not None
        function = function or getattr(found, "__func__", found)
        ours = (getattr(function, "__module__", None) or "").startswith("tierrank")
        if member.startswith("_") or member in NOT_FOR_PEOPLE or not ours or function in seen:
            continue
        if inspect.isfunction(function):
            seen.add(function)
            yield f"{name}.{member}", is_property


def complaints(name, is_property=False):
    """What numpydoc says of a name, but for what is not asked."""
    not_asked = NOT_ASKED | (NOT_ASKED_OF_PROPERTIES if is_property else set())
    for code, said in validate(name)["errors"]:
        if code == "PR01":
            # The constructor of an error is that of the class above it, and nobody gives a record
            # what begins with _.
            found = looked_up(name)
            inherits = inspect.isclass(found) and "__init__" not in vars(found)
            if inherits and issubclass(found, Exception):
                continue
            if all(each.startswith("'_") for each in re.findall(r"'\w+'", said)):
                continue
        if code not in not_asked:
            yield f"{name}: {code} {said}"


def not_imported(name):
    """Names in an example from nowhere: doctest has those of the module, a reader has not."""
    found = looked_up(name)
    text = inspect.getdoc(getattr(found, "fget", found)) or ""
    source = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
    made, used = set(dir(builtins)), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            made |= {(each.asname or each.name).split(".")[0] for each in node.names}
        elif isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else made).add(node.id)
        elif isinstance(node, ast.arg):
            made.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
            made.add(node.name)
    return used - made


@pytest.mark.slow  # it imports all there is
def test_every_example_imports_what_it_uses():
    names, seen = list(public_names()), set()
    names += [method for name in public_names() for method, _ in members(name, seen)]
    assert {name: free for name in names if (free := not_imported(name))} == {}


def test_editors_are_told_of_every_objective_as_a_module():
    import tierrank.losses

    told = inspect.getsource(tierrank.losses)
    modules = {entry.module_name for entry in tierrank.losses.OBJECTIVES.values()}
    assert modules - set(re.findall(r"\w+(?= = )", told)) == set()


@pytest.mark.slow  # after make docs, which brings numpydoc
def test_every_public_name_and_method_is_explained_in_numpydocs_form():
    names, seen = list(dict.fromkeys(public_names())), set()
    assert len(names) > 150
    wrong = [each for name in names for each in complaints(name)]
    methods = [found for name in names for found in members(name, seen)]
    assert len(methods) > 150
    wrong += [each for name, is_property in methods for each in complaints(name, is_property)]
    assert wrong == []


@pytest.mark.parametrize(
    ("section", "code"),
    [("Parameters", "PR01"), ("Returns", "RT01"), ("See Also", "SA01"), ("Examples", "EX01")],
)
def test_a_docstring_that_lacks_a_section_is_found(section, code, monkeypatch):
    from tierrank.data import Rankings

    name, text = "tierrank.data.Rankings.of", Rankings.of.__doc__
    assert list(complaints(name)) == []
    rest = re.sub(rf"\n\n *{section}\n *-+\n.*?(?=\n\n|\n *\Z)", "", text, count=1, flags=re.DOTALL)
    monkeypatch.setattr(Rankings.of, "__doc__", rest)
    assert [said.split()[1] for said in complaints(name)] == [code]
