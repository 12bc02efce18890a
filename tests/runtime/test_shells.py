"""Shells: commands run once, prompts stay waiting, marks cannot be forged, a rebuilt one is as the old one was."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from perdure import Perdure, durable, errors, runtime, sync
from perdure._runtime.keeper_client import client
from perdure.runtime import Runtime, Shell
from tests.runtime.kit import Place, is_alive, until, until_text
from tests.support.processes import ChildDied, Link, die, nursery

SOON = timedelta(seconds=0.2)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A user with no start files of their own."""
    return {"HOME": str(tmp_path), "PS1": "$ "}


async def waits_for(shell: Shell, what: str | None) -> None:
    for _ in range(3000):
        if await shell.waiting() == what:
            return
        await asyncio.sleep(0)
    raise TimeoutError(f"it waits for {await shell.waiting()}")


async def test_a_command_gives_its_output_exit_code_and_folder(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        result = await shell.run("cd /usr; printf 'a\\nb\\n'; false")
        assert (result.output, result.exit_code, result.cwd) == ("a\nb\n", 1, "/usr")
        assert (await shell.run("echo $? in $PWD")).output == "1 in /usr\n"


@pytest.mark.parametrize("argv", [None, ["bash"], ["/bin/bash"]])
async def test_bash_by_any_name_is_the_same_shell(place: Place, env: dict[str, str], argv: list[str] | None) -> None:
    async with place.runtime() as rt:
        await (await rt.shell("main", argv, env=env)).run("FOO=kept")
        assert (await (await rt.shell("main", env=env)).run("echo $FOO")).output == "kept\n"


async def test_a_command_of_many_lines_is_run_as_it_is(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        result = await shell.run("declare -A m=([k]='v w')\nf() {\n  cat <<END\n${m[k]} $1\nEND\n}\nf \"it's\"")
        assert result.output == "v w it's\n"
        assert (await shell.run("f again")).output == "v w again\n"  # at the top level, not inside a function


async def test_broken_syntax_is_an_exit_code(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        result = await shell.run("echo 'never closed")
        assert result.exit_code != 0 and "unexpected EOF" in result.output
        assert (await shell.run("echo fine")).output == "fine\n"


@pytest.mark.req("R59")
async def test_a_key_runs_a_command_once(place: Place, env: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "count"
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        first = await shell.run(f"echo x >> {file}; wc -l < {file}", key="once")
        place.kill_keeper()
        again = await shell.run(f"echo x >> {file}; wc -l < {file}", key="once")
        assert first == again and file.read_text() == "x\n"
        with pytest.raises(errors.InvalidInput, match="another command"):
            await shell.run("echo other", key="once")


async def test_a_key_waits_for_the_command_that_runs(place: Place, env: dict[str, str], tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    command = f"echo begun; cat {go}"
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        with pytest.raises(errors.TimedOut):
            await shell.run(command, key="slow", timeout=SOON)
        with pytest.raises(errors.ShellBusy, match="begun"):
            await shell.run("echo no")
        place.kill_keeper()
        waiting = asyncio.create_task(shell.run(command, key="slow"))
        await asyncio.to_thread(go.write_text, "done\n")
        result = await waiting
        assert (result.output, result.exit_code) == ("begun\ndone\n", 0)


async def test_a_command_that_ended_while_nobody_looked_is_known(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        with pytest.raises(errors.TimedOut):
            await shell.run("read x; cd /usr; (exit 5)", key="away", timeout=SOON)
        await shell.send("now\n")
        client.client_for(place.home).close()
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await waits_for(shell, "prompt")
        [command] = await shell.commands()
        assert (command.command, command.exit_code, command.cwd) == ("read x; cd /usr; (exit 5)", 5, "/usr")


async def test_what_was_typed_by_hand_is_known_too(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await waits_for(shell, "prompt")
        await shell.send("echo by hand; (exit 3)\n")
        await shell.expect("by hand\n")
        await waits_for(shell, "prompt")
        [command] = await shell.commands()
        assert (command.command, command.exit_code) == ("echo by hand; (exit 3)", 3)


async def test_nothing_is_typed_onto_somebodys_half_line(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await waits_for(shell, "prompt")
        await shell.send("rm -rf ")
        with pytest.raises(errors.ShellBusy, match="typed"):
            await shell.run("echo no")


@pytest.mark.req("R143")
async def test_forged_marks_are_plain_output(place: Place, env: dict[str, str], tmp_path: Path) -> None:
    evil, go = tmp_path / "evil.log", tmp_path / "go"
    evil.write_bytes(b"\x1b]133;D;0;p=guess;s=0\x07\x1b]133;A;p=guess\x07\x1b]133;D;0\x07\x1b]7;file:///etc\x07$ \n")
    os.mkfifo(go)
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        running = asyncio.create_task(shell.run(f"cat {evil}; cat {go}; exit_with() {{ return 9; }}; exit_with"))
        await until_text(shell, r"\$ \n")
        with pytest.raises(errors.ShellBusy):
            await shell.run("echo no")
        await asyncio.to_thread(go.write_text, "end\n")
        result = await running
        assert result.exit_code == 9 and result.cwd == os.getcwd()


async def test_another_shell_in_front_takes_no_commands(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await waits_for(shell, "prompt")
        await shell.send("env PS1='inner> ' bash --norc\n")
        await until_text(shell, r"\ninner> ")
        with pytest.raises(errors.ShellBusy):
            await shell.run("echo no")
        await shell.send("exit\n")
        await waits_for(shell, "prompt")
        for _ in range(100):  # its own prompt is a moment away
            try:
                assert (await shell.run("echo yes")).output == "yes\n"
                break
            except errors.ShellBusy:
                await asyncio.sleep(0)


async def test_a_shell_that_became_another_program_takes_no_commands(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await waits_for(shell, "prompt")
        await shell.send("exec sh\n")
        await until_text(shell, "exec sh\n(.|\n)*[$#] ")
        with pytest.raises(errors.ShellBusy):
            await shell.run("echo no")


@pytest.mark.req("R34")
async def test_a_secret_question_waits_through_every_death_and_its_answer_is_kept_nowhere(
    place: Place, env: dict[str, str], tmp_path: Path
) -> None:
    secret = "correct horse battery staple"
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await waits_for(shell, "prompt")
        await shell.send("export TOK=42; read -s -p '[sudo] password: ' X; echo got:$TOK:${#X}\n")
        await waits_for(shell, "secret")
        client.client_for(place.home).close()
    place.kill_keeper()
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        assert (shell.level, await shell.waiting()) == ("kept", "secret")
        await shell.answer(secret)
        await shell.expect(f"got:42:{len(secret)}")
        await waits_for(shell, "prompt")
        for folder in (place.home, Path(place.socket).parent, tmp_path):
            assert not [file for file in folder.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]
        assert secret not in (await shell.read()).text


def test_what_a_durable_function_sends_to_a_question_without_echo_is_in_no_journal(
    place: Place, tmp_path: Path
) -> None:
    secret, asking = "hunter2-and-more", ["bash", "-c", "read -s -p 'password: ' X; echo got:${#X}; exec cat"]

    @durable(name="logs-in")
    async def logs_in() -> list[str]:
        shell = await (await runtime.open()).shell("ask", asking)
        await shell.expect("password: ")
        await shell.send(f"{secret}\n")
        return [await shell.expect("got:[0-9]+"), (await shell.read()).text]

    async def run() -> list[str]:
        async with Perdure(place.url) as app:
            return await app.run("work", logs_in)

    assert f"got:{len(secret)}" in asyncio.run(run())[0]
    for folder in (place.home, Path(place.socket).parent, tmp_path):
        assert not [file for file in folder.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]


async def test_an_answer_waits_until_it_is_asked_for(place: Place, env: dict[str, str], tmp_path: Path) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await waits_for(shell, "prompt")
        with pytest.raises(errors.TimedOut, match="did not ask"):
            await shell.answer("too early", timeout=0.1)
        answering = asyncio.create_task(shell.answer("in time"))
        assert (await shell.run("read -s X; echo ${#X}")).output == "7\n"
        await answering
        assert "too early" not in (await shell.read()).text


async def test_a_question_that_echoes_is_a_prompt(place: Place) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("ask", ["bash", "--norc", "-c", "read -p 'sure? ' x; echo $x; exec sleep 1000"])
        await waits_for(shell, "prompt")
        await shell.send("yes\n")
        await shell.expect("yes\nyes")
        await waits_for(shell, None)


async def test_a_repl_keeps_its_variables(place: Place) -> None:
    async with place.runtime() as rt:
        repl = await rt.shell("py", ["python3", "-q", "-i"])
        await repl.send("x = 41\n")
        place.kill_keeper()
        await repl.send("print(x + 1)\n")
        await repl.expect(r"\n42")
        with pytest.raises(errors.InvalidInput, match=r"this is python3: use send\(\) and expect\(\)"):
            await repl.run("1 + 1")


async def test_signals_and_size_reach_the_program_in_front(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        with pytest.raises(errors.TimedOut):
            await shell.run("sleep 1000", key="sleep", timeout=SOON)
        await shell.signal(signal.SIGINT)
        assert (await shell.run("sleep 1000", key="sleep")).exit_code == 130
        await shell.resize(33, 77)
        assert (await shell.run("stty size")).output == "33 77\n"


async def test_a_flood_that_nobody_reads_leaves_a_gap_and_blocks_nothing(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        result = await shell.run("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo after")
        assert result.exit_code == 0
        found = await shell.read()
        assert found.gap > 25_000_000 and found.text.rstrip("$ ").rstrip().find("after") > 0
        assert found.offset > 30_000_000


async def test_what_expect_has_seen_is_not_seen_again(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await waits_for(shell, "prompt")
        await shell.send("printf 'o%s\\n' ne ne ut\n")
        await shell.expect("one\n")
        await shell.expect("one\n")
        await shell.expect("out\n")
        with pytest.raises(errors.TimedOut):
            await shell.expect("one\n", timeout=0.1)


async def test_the_screen_is_what_a_person_would_see(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await shell.run("clear; printf 'one\\rtwo\\033[5;3Hthere\\n'")
        lines = (await shell.screen()).split("\n")
        assert lines[0] == "two" and lines[4] == "  there"


# ── levels ───────────────────────────────────────────────────────────────────────────────────────


SET_UP = """export A='x y'; arr=(1 2 'three 3'); declare -A m=([k]=v); f() { echo fn-$1; }; alias ll='ls -la'
cd /usr/lib; umask 027; set -o noclobber; shopt -s globstar; trap 'echo bye' USR1; export API_TOKEN=abc-secret-xyz"""
SHOW = """echo "$A|${arr[2]}|${m[k]}|$PWD|$(umask)|${API_TOKEN-none}"; f 1; alias ll; set -o | grep noclobber
shopt globstar; trap -p USR1; printenv A"""


@pytest.mark.req("R83")
async def test_a_rebuilt_shell_is_as_the_old_one_was_and_says_so(
    place: Place, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={**env, "FROM_SPAWN": "yes"})
        await shell.run(SET_UP)
        before = (await shell.run(SHOW)).output
        os.kill(shell.record.pid, signal.SIGKILL)
        assert await shell.ended() == -signal.SIGKILL
        lost = await rt.shell("main", env=env)
        assert lost.level == "lost" and "signal 9" in lost.verdict.reason
        with pytest.raises(errors.UnitEnded):
            await lost.run("echo no")
        monkeypatch.setenv("RESUMER", "of another")
        rt.env["FROM_SPAWN"] = "no"
        again = await rt.shell("main", env=env, rebuild="auto")
        assert again.level == "rebuilt"
        after = (await again.run(SHOW)).output
        assert after == before.replace("abc-secret-xyz", "none")
        assert (await again.run("echo ${RESUMER-none} $FROM_SPAWN")).output == "none yes\n"
        assert "API_TOKEN" in " ".join(again.verdict.differs)
        assert (await again.run("history | grep -c 'noclobber'")).output != "0\n"
        assert not [file for file in place.home.rglob("*") if file.is_file() and b"abc-secret-xyz" in file.read_bytes()]


@pytest.mark.req("R89")
async def test_after_a_restart_of_the_machine_nothing_is_called_kept(
    place: Place, env: dict[str, str], tmp_path: Path
) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        done = await shell.run("echo done", key="done")
        with pytest.raises(errors.TimedOut):
            await shell.run("sleep 1000", key="open", timeout=SOON)
        record = place.home / "units" / shell.uid / "unit.json"
        keeper = place.keeper
        os.kill(keeper, signal.SIGSTOP)
        text = record.read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        record.write_text(text.replace(boot, "another-boot"))
        os.kill(keeper, signal.SIGKILL)
        until(lambda: place.keeper != keeper)
        assert (await rt.shell("main", env=env)).verdict.reason == "the machine was restarted"
        again = await rt.shell("main", env=env, rebuild="auto")
        assert again.level == "rebuilt"
        assert (await again.run("echo done", key="done")).exit_code == done.exit_code
        with pytest.raises(errors.EffectUncertain):
            await again.run("sleep 1000", key="open")


async def test_a_process_of_another_container_is_not_taken_for_ours(place: Place) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", ["cat"])
        record, keeper = place.home / "units" / shell.uid / "unit.json", place.keeper
        os.kill(keeper, signal.SIGSTOP)
        record.write_text(record.read_text().replace(os.readlink("/proc/self/ns/pid"), "pid:[1]"))
        os.kill(keeper, signal.SIGKILL)
        until(lambda: place.keeper != keeper)
        again = await rt.shell("main", ["cat"])
        assert (again.level, again.verdict.reason.split(",")[0]) == ("lost", "it was another container's")


async def test_a_shell_whose_anchor_died_is_lost_and_leaves_no_process(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        pid, anchor = shell.record.pid, place.anchor
        os.kill(anchor, signal.SIGKILL)
        until(lambda: not is_alive(pid))
        again = await rt.shell("main", env=env)
        assert again.level == "lost" and "anchor" in again.verdict.reason
        assert place.anchor != anchor


# ── inside a durable function ────────────────────────────────────────────────────────────────────


def agent(link: Link, url: str, file: str, dies_at: str) -> object:
    """An agent that may die at one of its places."""
    places: list[str] = []

    def here(name: str) -> None:
        places.append(name)
        if name == dies_at:
            die()

    @durable(name="agent")
    async def work() -> list[str]:
        rt: Runtime = await runtime.open()
        shell = await rt.shell("main", env={"HOME": "/", "PS1": "$ "})
        here("opened")
        first = await shell.run(f"echo x >> {file}; wc -l < {file}")
        here("ran")
        await shell.send(f"echo y >> {file}; echo sent\n")
        here("sent")
        await shell.expect("\nsent")
        here("seen")
        last = await shell.run(f"wc -l < {file}")
        return [first.output, last.output, shell.level]

    async def run() -> list[str]:
        async with Perdure(url) as app:
            return await app.run("work", work)

    return asyncio.run(run())


@pytest.mark.req("R59")
@pytest.mark.parametrize("dies_at", ["opened", "ran", "sent", "seen"])
def test_inside_a_durable_function_what_was_done_in_a_shell_is_not_done_again(
    place: Place, tmp_path: Path, dies_at: str
) -> None:
    file = str(tmp_path / "count")
    with nursery() as children:
        with pytest.raises(ChildDied):
            children.start(agent, place.url, file, dies_at).heard()
        assert children.run(agent, place.url, file, "") == ["1\n", "2\n", "kept"]


@pytest.mark.req("R64")
def test_a_command_that_ran_on_while_its_agent_died_is_waited_for(place: Place, tmp_path: Path) -> None:
    file, go = tmp_path / "count", tmp_path / "go"
    os.mkfifo(go)
    with nursery() as children:
        child = children.start(slow_agent, place.url, str(file), str(go))
        until(lambda: file.exists() and file.read_text())
        child.kill()
        again = children.start(slow_agent, place.url, str(file), str(go))
        go.write_text("now\n")
        assert again.heard() == "now\n"
    assert file.read_text() == "x\n"


def slow_agent(link: Link, url: str, file: str, go: str) -> str:
    @durable(name="slow")
    async def work() -> str:
        rt: Runtime = await runtime.open()
        shell = await rt.shell("main", env={"HOME": "/", "PS1": "$ "})
        return (await shell.run(f"echo x >> {file}; cat {go}")).output

    async def run() -> str:
        async with Perdure(url) as app:
            return await app.run("work", work)

    return asyncio.run(run())


def test_blocking_code_has_shells_too(place: Place, env: dict[str, str]) -> None:
    with sync.Perdure(place.url) as app:
        app.tasks.open("work", state={})
        shell = app.runtime("work").shell("main", env=env)
        assert shell.run("echo $((6 * 7))").output == "42\n" and shell.level == "kept"
        shell.send("echo sent\n")
        assert shell.expect("\nsent")
