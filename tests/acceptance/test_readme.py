"""What the README and the examples show works when it is pasted, killed and started again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from perdure.cli.base.command import root
from tests.support.programs import kill_after, run

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@pytest.mark.req("R147", "R112", "R116")
def test_the_quick_start_is_short_and_carries_on_after_it_was_killed(tmp_path):
    code = BLOCKS[0].replace("asyncio.sleep(0.5)", "asyncio.sleep(0.01); open('ran', 'a').write(f'{number} ')")
    (tmp_path / "book.py").write_text(code)
    first = kill_after([sys.executable, "book.py"], tmp_path, "chapter 4")
    assert first == [f"chapter {n}" for n in range(1, 5)]
    told = run([sys.executable, "-m", "perdure", "show", "my-book"], tmp_path)
    assert "its process has died" in told and "at work" not in told
    second = run([sys.executable, "book.py"], tmp_path).split("\n")
    assert second[:8] == [f"chapter {n}" for n in range(1, 9)] and second[8] == "published 8036 words"
    ran = (tmp_path / "ran").read_text().split()
    assert set(ran) == {str(n) for n in range(1, 9)}
    assert all(ran.count(str(n)) == 1 for n in (1, 2, 3)), "what had ended was not read again"
    told = run([sys.executable, "-m", "perdure", "where", "my-book"], tmp_path)
    assert "completed" in told and "publish" in told
    assert re.search(
        r"saved +not repeated: [34] steps", run([sys.executable, "-m", "perdure", "show", "my-book"], tmp_path)
    )


@pytest.mark.req("R16", "R106")
def test_the_first_hour_example_carries_on_from_its_last_checkpoint(tmp_path):
    script = [sys.executable, str(ROOT / "examples/first_hour.py"), "0.01"]
    kill_after(script, tmp_path, "chapter 5 done")
    again = run(script, tmp_path)
    assert re.search(r"carrying on after chapter [5-9]", again) and "all done: 12078 words" in again
    assert "finished already" in run(script, tmp_path)


@pytest.mark.req("R28", "R30")
def test_the_blocking_example_waits_for_an_answer_given_in_the_shell(tmp_path):
    script = [sys.executable, str(ROOT / "examples/blocking_script.py")]
    assert "paused" in run(script, tmp_path)
    assert "still waiting" in run(script, tmp_path)
    run([sys.executable, "-m", "perdure", "resume", "nightly-copy", "--set", "approved=true"], tmp_path)
    assert "published 42" in run(script, tmp_path)


@pytest.mark.req("R40", "R120")
def test_a_report_is_steered_from_outside(tmp_path):
    said = run([sys.executable, str(ROOT / "examples/steering.py")], tmp_path).splitlines()
    written = [line for line in said if line.startswith("writing")]
    assert written[5:7] == ["writing chapter 6 in English", "writing chapter 7 in French"]
    assert said[-3:] == ["chapters 10", "chapters-short 4", "chapters-2 2"]


@pytest.mark.req("R116")
def test_a_failing_tool_shows_where_it_failed_and_goes_on_when_it_is_mended(tmp_path):
    script = [sys.executable, str(ROOT / "examples/failing_tool.py")]
    cli = [sys.executable, "-m", "perdure"]
    said = run(script, tmp_path)
    assert said.startswith(
        "fetching tea\nfetching cake\nfailed: could not convert string to float: 'n/a', at failing_tool"
    )
    for told in (said, run([*cli, "where", "price-list"], tmp_path), run([*cli, "show", "price-list"], tmp_path)):
        assert re.search(r"at failing_tool.py:\d+ in price_of: return float\(text\)", told)
        assert re.findall(r"line \d+, in (\w+)", told) == ["price_list", "price", "price_of"]
    assert "`perdure resume price-list` begins a new attempt" in run([*cli, "where", "price-list"], tmp_path)
    run([*cli, "resume", "price-list"], tmp_path)
    assert run([*script, "mended"], tmp_path) == "prices: {'tea': 4.5, 'cake': 0.0}\n", "nothing was fetched again"


def test_examples_bear_each_other_in_one_folder_and_a_second_run(tmp_path):
    for name in ("first_hour", "blocking_script", "steering", "team", "comes_back"):
        argv = [sys.executable, str(ROOT / f"examples/{name}.py"), "0.01"]
        if name == "comes_back":
            kill_after(argv, tmp_path, "crashed")
        run(argv, tmp_path)
        run(argv, tmp_path)


_PROMISES = re.compile(
    r"last finished step|steps (are|do) not run again|does not run again|is not done again|interrupted step"
    r"|step that was (cut off|interrupted)|step cut off",
    re.IGNORECASE,
)
_WINDOW = re.compile(r"#when-a-step-is-on-disk|on-disk\.md|less than about a millisecond")


def test_every_page_that_promises_not_to_repeat_a_step_says_from_when_on():
    rooms = ("tutorial", "guide", "explanation")
    pages = [ROOT / "README.md", *(page for room in rooms for page in sorted((ROOT / "docs" / room).glob("*.md")))]
    promising = [page for page in pages if _PROMISES.search(page.read_text())]
    assert len(promising) >= 5
    assert [page.name for page in promising if not _WINDOW.search(page.read_text())] == []
    assert "## When a step is on disk" in (ROOT / "docs/guide/durable-functions.md").read_text()


@pytest.mark.req("R32", "R147")
def test_the_approval_example_waits_through_a_kill_and_goes_on_when_it_was_approved(tmp_path):
    (tmp_path / ".perdure").mkdir()
    script = [sys.executable, str(ROOT / "examples/approval.py")]
    assert kill_after(script, tmp_path, "waits for: perdure approve order-42")[0] == "preparing tea"
    cli = [sys.executable, "-m", "perdure"]
    assert "Charge 500 cents for tea?" in run([*cli, "show", "order-42"], tmp_path)
    run([*cli, "approve", "order-42", "--by", "ada", "--comment", "fine"], tmp_path)
    assert run(script, tmp_path).splitlines() == ["charged 500 cents, approved by ada (fine)"]


@pytest.mark.req("R32", "R147")
def test_the_release_example_returns_at_each_pause_and_is_killed_in_between(tmp_path):
    (tmp_path / ".perdure").mkdir()
    script = [sys.executable, str(ROOT / "examples/release.py"), "0.05"]
    cli = [sys.executable, "-m", "perdure"]
    kill_after(script, tmp_path, "built core")
    said = run(script, tmp_path)
    built = said.split("waits")[0].split()[1::2]  # how far the first run came before the kill reached it, nobody knows
    assert built == ["core", "cli", "docs"][3 - len(built) :]
    assert "waits for: Ship core.whl, cli.whl, docs.whl? (human_approval, since" in said
    run([*cli, "approve", "release-1.4", "--by", "ada"], tmp_path)
    assert run(script, tmp_path) == "waits for: the signal 'replicas'\n"
    wrong = subprocess.run(
        [*cli, "signal", "release-1.4", "replicas", "many"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2 and "as int, and got 'many'" in wrong.stderr and "keeps waiting" in wrong.stderr
    run([*cli, "signal", "release-1.4", "replicas", "3"], tmp_path)
    for _ in range(2):
        assert run(script, tmp_path) == "done: 1.4 runs 3 times, said ada\n"


@pytest.mark.req("R33", "R147")
def test_the_plain_example_waits_through_a_kill_and_fetches_nothing_again(tmp_path):
    (tmp_path / ".perdure").mkdir()
    script = [sys.executable, str(ROOT / "examples/plain_agent.py")]
    cli = [sys.executable, "-m", "perdure"]
    with subprocess.Popen(script, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        fetched = [child.stdout.readline().strip() for _ in range(4)]
        while "paused" not in run([*cli, "show", "report-7"], tmp_path):
            pass
        child.kill()
    assert fetched[:3] == ["fetching page 1", "fetching page 2", "fetching page 3"]
    run([*cli, "answer", "report-7", "yes"], tmp_path)
    said = run(script, tmp_path).splitlines()
    assert said[1:] == ["publishing 600 words", "published 600 words"]


def _named_commands() -> set[tuple[str, str]]:
    """Each `perdure VERB WORD` that the documentation or a message of perdure tells somebody to type."""
    files = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/perdure/**/*.py")]
    typed = re.compile(r"(?:`|^\$ )perdure ([a-z][a-z-]+)\b(?: ([a-z][a-z-]+)\b)?", re.MULTILINE)
    return {found for file in files for found in typed.findall(file.read_text(encoding="utf-8"))}


def test_every_command_that_is_named_anywhere_exists():
    context, unknown = click.Context(root), []
    for verb, word in sorted(_named_commands()):
        command = root.get_command(context, verb)
        if command is None or (word and isinstance(command, click.Group) and not command.get_command(context, word)):
            unknown.append(f"perdure {verb} {word}".rstrip())
    assert not unknown


def test_the_reference_has_every_command():
    text = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `([a-z-]+)", text, re.MULTILINE)) | set(re.findall(r" / `([a-z-]+) ID`", text))
    assert set(root.list_commands(click.Context(root))) <= told
