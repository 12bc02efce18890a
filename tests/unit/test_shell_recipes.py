"""What it takes to make a shell again, without its secrets."""

from __future__ import annotations

from perdure.keeper.recipes import kept_history, recipe_of

DUMP = (
    r"""#perdure directory
/usr/lib"""
    + "\0"
    + r"""
#perdure umask
umask 0027
#perdure options
shopt -s globstar
shopt -u login_shell
set -o noclobber
set -o monitor
#perdure aliases
alias ll='ls -la'
#perdure traps
trap -- 'echo bye' SIGUSR1
#perdure functions
f ()
{
    echo "fn-$1"
}
__perdure_ready ()
{
    printf x
}
#perdure exported
declare -fx f
declare -fx __perdure_begin
#perdure variables
declare -- A="x y"
declare -x SHOWN="1"
declare -x API_TOKEN="abc"
declare -x URL="postgres://me:pw@host/db"
declare -ir UID="0"
declare -a arr=([0]="1" [1]=$'two\nlines')
declare -- __perdure_status="0"
declare -- BASH_VERSION="5"
"""
)


def test_a_recipe_has_what_a_new_shell_needs() -> None:
    recipe = recipe_of(DUMP)
    assert recipe is not None
    lines = recipe.script.split("\n")
    for wanted in ('declare -- A="x y"', "alias ll='ls -la'", "umask 0027", "set -o noclobber", "cd -- '/usr/lib'"):
        assert wanted in lines
    assert 'echo "fn-$1"' in recipe.script and "declare -fx f" in lines
    assert recipe.directory == "/usr/lib" and recipe.exported == {"SHOWN", "API_TOKEN", "URL"}


def test_a_recipe_has_no_secret_and_nothing_of_the_old_process() -> None:
    recipe = recipe_of(DUMP)
    assert recipe is not None
    for unwanted in ("abc", "pw@host", "UID", "__perdure", "BASH_VERSION", "login_shell", "monitor"):
        assert unwanted not in recipe.script
    assert set(recipe.withheld) == {"API_TOKEN", "URL"}


def test_after_a_secret_was_typed_only_what_was_there_before_is_written_down() -> None:
    before = recipe_of(DUMP)
    assert before is not None
    after = recipe_of(DUMP + 'declare -- X="hunter2"\n', only_known=before.script)
    assert after is not None
    assert "hunter2" not in after.script and "X" in after.withheld and 'declare -- A="x y"' in after.script
    later = recipe_of(DUMP + 'declare -- X="hunter2"\n', tainted=["X"])
    assert later is not None and "hunter2" not in later.script


def test_a_dump_that_is_cut_off_is_no_recipe() -> None:
    assert recipe_of(DUMP[: DUMP.index("#perdure variables")]) is None
    assert recipe_of("") is None


def test_history_that_names_a_secret_is_not_kept() -> None:
    text = "ls\nexport API_TOKEN=abc\ncurl https://me:pw@host/\necho A=1\n"
    assert kept_history(text) == ["ls", "echo A=1"]
