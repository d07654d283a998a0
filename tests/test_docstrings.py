"""What the reference says of each public name, by numpydoc's own validation."""

import re
from pathlib import Path

import pytest

validate = pytest.importorskip("numpydoc.validate").validate
REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference.rst"

# What must hold of every name. Types of parameters are in the signatures (PR04), descriptions are
# phrases (PR08, PR09), and what a reader of a record needs is in its one line (PR01, RT01, EX01).
HOLDS = {
    "GL06", "GL07", "GL08", "SS01", "SS03", "SS04", "SS06", "PR05", "PR06", "PR07", "PR10", "RT02",
    "YD01", "SA02", "SA03", "SA04",
}  # fmt: skip


def public_names():
    module = ""
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   ([A-Za-z_][\w.]*)$", line):
            yield f"{module}.{found[1]}"


@pytest.mark.slow  # after make docs, which brings numpydoc
def test_every_public_name_is_explained_in_numpydocs_form():
    names = list(public_names())
    assert len(names) > 150
    wrong = [f"{name}: {code} {said}" for name in names for code, said in validate(name)["errors"]
             if code in HOLDS]  # fmt: skip
    assert wrong == []
