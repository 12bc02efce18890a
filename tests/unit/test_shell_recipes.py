"""What it takes to make a shell again: data, without its secrets, whatever a dump holds."""

from __future__ import annotations

import random

from perdure.keeper.kinds.shell import recipes
from perdure.keeper.kinds.shell.recipes import Recipe, Variable, kept_history, recipe_of

PARTS = [
    "perdure-shell-1",
    *("directory", "/usr/lib", "options", "noclobber:monitor:history", "globstar:login_shell", "umask", "0027\n"),
    *("traps", "trap -- 'echo '\\''bye'\\''' SIGUSR1\ntrap -- 'two\nlines' EXIT\n", "exported", "declare -fx f\n"),
    *("alias", "ll", "ls -la"),
    *("function", "f", 'f () \n{ \n    cat <<END\n}\n#perdure directory\nEND\n\n    echo "fn-$1"\n}\n'),
    *("function", "__perdure_ready", "__perdure_ready () \n{ \n    printf x\n}\n"),
    *("function", "g", "g () \n( echo one )\n"),
    *("variable", "A", 'declare -- A="x y"\n', "1", "0", "x y"),
    *("variable", "SHOWN", 'declare -x SHOWN="1"\n', "1", "0", "1"),
    *("variable", "API_TOKEN", 'declare -x API_TOKEN="abc"\n', "1", "0", "abc"),
    *("variable", "URL", 'declare -x URL="…"\n', "1", "0", "postgres://me:pw@host/db"),
    *("variable", "UID", 'declare -ir UID="0"\n', "1", "0", "0"),
    *("variable", "FIXED", 'declare -r FIXED="1"\n', "1", "0", "1"),
    *("variable", "arr", "declare -a arr=(…)\n", "2", "0", "1", "7", "two\nlines"),
    *("variable", "m", "declare -A m=(…)\n", "1", "a ]$(touch x)", "v"),
    *("variable", "PS2", "declare -- PS2=…\n", "1", "0", "${__perdure_no[__perdure_more=1]-}> "),
]


def dump(*more: str, end: str = "end") -> bytes:
    return b"".join(part.encode() + b"\0" for part in (*PARTS, *more, end))


def recipe(*more: str) -> Recipe:
    found = recipe_of(dump(*more))
    assert found is not None
    return found


def test_a_recipe_has_what_a_new_shell_needs() -> None:
    found = recipe()
    assert (found.directory, found.umask, found.aliases) == ("/usr/lib", "0027", {"ll": "ls -la"})
    assert found.traps == {"SIGUSR1": "echo 'bye'", "EXIT": "two\nlines"}
    assert set(found.functions) == {"f", "g"} and found.exported_functions == ["f"]
    assert found.functions["f"].startswith("() {") and found.functions["f"].endswith('echo "fn-$1"\n}')
    assert found.functions["g"] == "() {\n( echo one )\n}"
    assert Variable("arr", "a", [("0", "1"), ("7", "two\nlines")]) in found.variables
    assert Variable("FIXED", "r", [("0", "1")]) in found.variables
    assert Variable("PS2", "", [("0", "> ")]) in found.variables
    assert found.exported == ["SHOWN", "API_TOKEN", "URL"] and found.not_rebuilt == []
    assert Recipe.read(found.as_json()) == found


def test_a_recipe_has_no_secret_and_nothing_of_the_old_process() -> None:
    found = recipe()
    text = repr(found.as_json()) + repr(recipes.fields(found)) + repr(recipes.definitions(found))
    for unwanted in ("abc", "pw@host", "'UID'", "__perdure"):
        assert unwanted not in text
    assert set(found.withheld) == {"API_TOKEN", "URL"}


def test_after_a_secret_was_typed_only_what_was_there_before_is_written_down() -> None:
    typed = ("variable", "X", 'declare -- X="hunter2"\n', "1", "0", "hunter2")
    after = recipe_of(dump(*typed), before=recipe())
    assert after is not None
    assert "hunter2" not in repr(after) and "X" in after.withheld
    assert Variable("A", "", [("0", "x y")]) in after.variables
    later = recipe_of(dump(*typed), tainted=["X"])
    assert later is not None and "hunter2" not in repr(later)


def test_what_assigning_would_evaluate_is_not_rebuilt_and_named() -> None:
    found = recipe(
        *("variable", "n", "declare -i n=…\n", "1", "0", "a[$(touch x)]"),
        *("variable", "i", "declare -a i=…\n", "1", "a[$(touch x)]", "1"),
        *("variable", "r", 'declare -n r="a[$(touch x)]"\n', "0"),
        *("function", "h", "touch x; h () \n{ \n :\n}\n"),
        *("alias", "@", "x"),
    )
    assert found.not_rebuilt == ["variable n", "variable i", "variable r", "function h", "alias @"]
    assert b"touch x)]" not in recipes.fields(found).replace(b"a ]$(touch x)", b"")


def test_a_dump_that_is_cut_off_or_is_none_is_no_recipe() -> None:
    whole = dump()
    for length in range(len(whole)):
        assert recipe_of(whole[:length]) is None
    assert recipe_of(b"#perdure directory\n/\n") is None


def test_a_dump_of_anything_is_a_recipe_or_none() -> None:
    chance, whole = random.Random(7), dump()
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data))
            data[at : at + chance.randint(0, 9)] = chance.choice(
                [b"\0", b"\xff", b"-1", b"9" * 30, b"end\0", b"", b"'"]
            )
        found = recipe_of(bytes(data))
        assert found is None or Recipe.read(found.as_json()) == found


def test_history_that_names_a_secret_is_not_kept() -> None:
    text = "ls\nexport API_TOKEN=abc\ncurl https://me:pw@host/\necho A=1\n"
    assert kept_history(text) == ["ls", "echo A=1"]
