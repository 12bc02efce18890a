"""A shell that is made again is what the old one was, or says by name what it is not; nothing of it is run as code."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from perdure import errors
from perdure._runtime.keeper_client import client
from perdure.runtime import Runtime, Shell
from tests.runtime.kit import Place, until, until_text
from tests.runtime.test_shells import waits_for


async def killed(shell: Shell) -> None:
    os.kill(shell.record.pid, signal.SIGKILL)
    assert await shell.ended() == -signal.SIGKILL


async def again(rt: Runtime, shell: Shell, env: dict[str, str]) -> Shell:
    await killed(shell)
    made = await rt.shell(shell.name, env=env, rebuild="auto")
    assert made.level == "rebuilt"
    return made


STATES = {
    "a function with a here document": (
        "f() {\n  cat <<END\n}\n#perdure directory\n$1 it's\nEND\n  echo done\n}",
        "f x; declare -f f",
    ),
    "a function with two here documents": ("f() { cat <<A - <<'B'\n$1\nA\n$1\nB\n}", "f x; declare -f f"),
    "a function in a subshell": ('f() (echo "$1"; exit 3)', "f x; echo $?"),
    "a function with an odd name": ("my-f.1() { echo odd; }", "my-f.1"),
    "an exported function": ("f() { echo in; }; export -f f; g() { :; }", "bash -c f; bash -c g 2>&1 | grep -c found"),
    "traps": (
        "trap \"echo 'it' \\\"is\\\"\" USR1; trap 'true # debug' DEBUG; trap 'echo err' ERR; trap '' INT",
        "trap -p; kill -USR1 $$",
    ),
    "a trap of two lines": ("trap $'echo one\\necho two' USR1", "trap -p; kill -USR1 $$"),
    "options": (
        "set -o pipefail -o noglob; set +o histexpand; set -o vi; shopt -s nullglob extglob; shopt -u checkwinsize",
        "echo $- $SHELLOPTS $BASHOPTS",
    ),
    "a umask": ("umask 0137", "umask; touch made; stat -c %a made; rm made"),
    "arrays": (
        "a=([2]=two [9]=$'li\\nne'); declare -A m=(['k ]$(touch x)']='v\"1' [b]=2); "
        "declare -i n=7; e=(); declare -u U=up",
        "declare -p a m n e U",
    ),
    "values of all kinds": (
        "x=$'a\\nb\\'c\"d\\\\'; y='$(touch pwned)'; z='`touch pwned`'; "
        "declare -x EMPTY; declare -n ref=x; readonly R=1",
        "declare -p x y z EMPTY ref R; ls pwned",
    ),
    "aliases": ("alias ll='ls -la' q=\"echo 'x'\"", "alias ll; alias q"),
    "prompts": ("PROMPT_COMMAND='true mine'; PS2='more> '; PS0=''", 'echo "${PROMPT_COMMAND[@]}" | grep -c mine'),
    "an IFS": ("IFS=:; x=a:b", "printf '%q\\n' \"$IFS\"; printf '%s\\n' $x"),
}


@pytest.mark.req("R83")
@pytest.mark.parametrize("name", STATES)
async def test_it_comes_back_as_it_was(place: Place, env: dict[str, str], name: str) -> None:
    set_up, show = STATES[name]
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await shell.run("cd ~")
        await shell.run(set_up)
        before = await shell.run(show)
        made = await again(rt, shell, env)
        after = await made.run(show)
        assert (after.output, after.exit_code) == (before.output, before.exit_code)
        assert [told for told in made.verdict.differs if told.startswith("not rebuilt:")] == []


@pytest.mark.parametrize(
    "folder", ["li\nne; touch ../pwned", "it's $(touch ../pwned)", "x\n#perdure traps\ncd; touch pwned\n#", "\t `a` \\"]
)
async def test_a_folder_of_any_name_is_a_name(place: Place, env: dict[str, str], tmp_path: Path, folder: str) -> None:
    (tmp_path / folder.replace("/", "_")).mkdir()
    target = tmp_path / folder.replace("/", "_")
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={**env, "TARGET": str(target)})
        await shell.run('cd "$TARGET"')
        made = await again(rt, shell, env)
        assert (await made.run('[[ $PWD == "$TARGET" ]]')).exit_code == 0
        assert f"directory {target}" in made.verdict.same
    assert not (tmp_path / "pwned").exists()


async def test_a_folder_that_is_gone_is_named(place: Place, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await shell.run(f"cd {tmp_path}/gone; rmdir {tmp_path}/gone")
        made = await again(rt, shell, env)
        assert f"directory {tmp_path}/gone is gone: it is in {os.getcwd()}" in made.verdict.differs


async def test_what_cannot_be_rebuilt_is_named(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await shell.run("x=$'\\xff'; long() { : " + "x" * 120_000 + "; }; set +o history")
        made = await again(rt, shell, env)
        named = {told for told in made.verdict.differs if told.startswith("not rebuilt")}
        assert {"not rebuilt: variable x", "not rebuilt: function long", "not rebuilt: set +o history"} <= named
        assert any("background jobs, open descriptors" in told for told in named)


async def test_what_a_start_file_changes_is_named(place: Place, env: dict[str, str], tmp_path: Path) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await shell.run("x=1; f() { echo mine; }")
        (tmp_path / ".bashrc").write_text("readonly x=theirs\nf() { echo theirs; }\n")
        made = await again(rt, shell, env)
        assert "not rebuilt: variable x" in made.verdict.differs
        assert (await made.run("echo $x; f")).output == "theirs\nmine\n"


async def test_that_it_was_rebuilt_is_said_to_the_attempt_it_happened_to(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await shell.run("x=1")
        made = await again(rt, shell, env)
        assert (await rt.shell("main", env=env)).level == "rebuilt"  # the same attempt
        pid = made.record.pid
    told = place.in_another_process("main", env)
    assert told == ["kept", pid]


async def test_that_it_was_rebuilt_is_said_to_the_next_one_if_nobody_has_heard_it(
    place: Place, env: dict[str, str]
) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await shell.run("x=1")
        await killed(shell)
        await rt._client.ask("rebuild", unit=shell.uid)
        client.client_for(place.home).close()  # as one that has died over it
    assert place.in_another_process("main", env)[0] == "rebuilt"
    assert place.in_another_process("main", env)[0] == "rebuilt"  # the one before has asked nothing more
    assert place.in_another_process("main", env, "true")[0] == "rebuilt"
    assert place.in_another_process("main", env)[0] == "kept"


# ── results by key ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R59")
async def test_a_result_whose_output_is_gone_says_so_and_is_not_run_again(
    place: Place, env: dict[str, str], tmp_path: Path
) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        command = f"echo x >> {tmp_path}/count; printf 12345"
        first = await shell.run(command, key="once")
        assert (first.output, first.gap) == ("12345", 0)
        made = await again(rt, shell, env)
        bare = await made.run(command, key="once")
        assert (bare.output, bare.gap, bare.exit_code) == ("", 5, 0)
        made = await again(rt, made, env)
        assert (await made.run(command, key="once")).gap == 5
    assert (tmp_path / "count").read_text() == "x\n"


async def test_a_shell_is_not_made_again_without_what_was_asked_of_the_old_one(
    place: Place, env: dict[str, str]
) -> None:
    """Else a key would run its command a second time."""
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await shell.run("true", key="once")
        await killed(shell)
        journal = place.home / "units" / shell.uid / "commands"
        journal.unlink()
        journal.mkdir()
        with pytest.raises(errors.UnitEnded):
            await rt.shell("main", env=env, rebuild="auto")


# ── a folder that strangers write to ─────────────────────────────────────────────────────────────


# Every link in here leads to a file or folder of the test itself: the shell has all the rights of whoever runs this.
GARBAGE = {
    "links": "for n in {0..40}; do ln -sf ~/victim $PLACE/state.$n; done; ln -sf ~/private $PLACE/history",
    "noise": "head -c 300000 /dev/urandom > $PLACE/history; for n in {0..40}; do echo noise > $PLACE/state.$n; done",
    "a folder": "rm -rf $PLACE/history; mkdir $PLACE/history $PLACE/state.{0..40}",
    "a folder that is a link": "rm -rf $PLACE/begun; mkdir ~/other; ln -s ~/other $PLACE/begun",
}


@pytest.mark.req("R143")
@pytest.mark.parametrize("what", GARBAGE)
async def test_a_keeper_lives_on_whatever_a_unit_has_put_into_its_folder(
    place: Place, env: dict[str, str], tmp_path: Path, what: str
) -> None:
    (tmp_path / "victim").write_text("untouched\n")
    (tmp_path / "private").write_text("not for a recipe\n")
    async with place.runtime() as rt:
        shell, other = await rt.shell("main", env=env), await rt.shell("other", env=env)
        folder = Path(place.socket).parent / shell.uid
        await other.run("x=1")
        await shell.run("true")
        await waits_for(shell, "prompt")
        await shell.send(f"PLACE={folder}; {GARBAGE[what]}; echo done > ~/done\n")
        until(lambda: Path(env["HOME"], "done").exists())
        place.kill_keeper()
        assert (await other.run("echo $x")).output == "1\n"
        assert {unit.level for unit in await rt.units()} == {"kept"}
        before = place.keeper
        await shell.send("echo still $((1 + 1))\n")
        await until_text(shell, "still 2")
        assert place.keeper == before
    assert (tmp_path / "victim").read_text() == "untouched\n"
    kept = [file for file in place.home.rglob("*") if file.is_file()]
    assert not [file for file in kept if b"not for a recipe" in file.read_bytes()]
    assert not list(tmp_path.glob("other/*"))
