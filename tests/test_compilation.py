"""Compiled code is kept on disk, and never outlives the sources it was made of."""

from tierrank.compilation import announce, compiled, digest


def test_the_digest_follows_the_text_of_every_file(tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("A = 1")
    two.write_text("B = 1")
    before = digest([one, two])
    assert before == digest([two, one])
    two.write_text("B = 2")  # as long as before, and perhaps at the same time
    assert digest([one, two]) != before


def test_other_sources_are_another_entry_of_the_cache():
    def make(sources):
        def double(x):
            return 2 * x

        return compiled(double, sources=sources)

    first, second = make("one"), make("two")
    assert first(3) == second(3) == 6
    names = {function.py_func.__qualname__.rsplit("_", 1)[1] for function in (first, second)}
    assert names == {"one", "two"}


def test_compiling_is_announced_unless_something_is_kept(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    file, cache = str(tmp_path / "kernel.py"), tmp_path / "__pycache__"
    announce(file, "abc", "no folder: kept elsewhere")
    cache.mkdir()
    announce(file, "abc", "this once")
    (cache / "kernel.scan_abc-1.nbi").touch()
    announce(file, "abc", "kept already")
    announce(file, "def", "other sources")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/elsewhere")
    announce(file, "ghi", "kept elsewhere")
    assert [record.message for record in caplog.records] == ["this once", "other sources"]
