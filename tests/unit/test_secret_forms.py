"""One list says what is secret: what one filter withholds, none of the others writes down."""

from __future__ import annotations

import json

import pytest

from perdure._ground.secrets import secret_forms
from perdure._runtime.secrets import environment, redaction
from perdure.keeper.kinds.shell.recipes import kept_history, recipe_of

VARIABLES = {
    "GITHUB_TOKEN": "plainword",
    "APP_DSN": "plainword",
    "AUTH": "plainword",
    "DB_PASSPHRASE": "plainword",
    "SESSION_COOKIE_VALUE": "plainword",
    "URL": "postgresql://ada:hunter22@db/app",
    "CONNINFO": "host=db user=ada password=hunter22",
    "SERVER": "ghs_" + "a1B2c3D4e5f6G7h8",
    "JSON": '{"api_key": "hunter22"}',
    "HEADER": "Authorization: Bearer hunter22",
    "JWT": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N",
    "NOISE": "q7Zr2Lx9Vb4Nm8Kt1Wc6Yd3",
}
HARMLESS = {
    "PATH": "/opt/token-tools/bin:/usr/bin:/home/ada/secret/bin",
    "AUTHOR": "Ada Lovelace",
    "HOME": "/home/ada",
    "LS_COLORS": "di=01;34:ln=01;36",
    "VERSION": "3.11.4-rc.1+build.5",
    "COMMIT": "6deecf0a51b20a2b3c35e0ab35cfa9ec67c3d83e",
}


def recipe_with(name: str, value: str) -> tuple[str, list[str]]:
    """What a shell's recipe says, and which variables it withholds."""
    told = f"declare -x {name}='{value}'\n"
    parts = ("perdure-shell-1", "directory", "/usr", "variable", name, told, "1", "0", value, "end")
    recipe = recipe_of(b"".join(part.encode() + b"\0" for part in parts))
    assert recipe is not None
    return json.dumps(recipe.as_json()), recipe.withheld


@pytest.mark.req("R142")
@pytest.mark.parametrize("name", VARIABLES)
def test_what_is_secret_in_an_environment_is_so_in_a_shells_recipe_and_in_a_report(name: str) -> None:
    value = VARIABLES[name]
    redaction.forget_all()
    captured = environment.capture({name: value})
    redaction.forget_all()
    script, withheld = recipe_with(name, value)
    assert captured.values == {} and name in captured.secrets
    assert json.dumps(value)[1:-1] not in script and withheld == [name]
    assert kept_history(f"ls\nexport {name}='{value}'\n") == ["ls"]
    assert value not in secret_forms.hide_in_command([f"--{name.lower()}={value}"])[0]
    assert name == "NOISE" or value not in str(redaction.redact_value({name: value}))  # no text is searched for noise


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_not_secret_passes_all_of_them(name: str) -> None:
    value = HARMLESS[name]
    assert environment.capture({name: value}).values == {name: value}
    script, withheld = recipe_with(name, value)
    assert json.dumps(value) in script and withheld == []


@pytest.mark.parametrize(
    "argv, shown",
    [
        (["serve", "--token", "hunter22", "-v"], ["serve", "--token", "[secret]", "-v"]),
        (["serve", "--api-key=hunter22"], ["serve", "--api-key=[secret]"]),
        (["env", "PASSWORD=x", "serve"], ["env", "PASSWORD=[secret]", "serve"]),
        (["curl", "-H", "Authorization: Bearer hunter22"], ["curl", "-H", "Authorization: Bearer [secret]"]),
        (["psql", "postgresql://ada:hunter22@db/app"], ["psql", "postgresql://ada:[secret]@db/app"]),
        (["serve", "--token", "--verbose"], ["serve", "--token", "--verbose"]),
        (["npm", "run", "dev", "--port=5173"], ["npm", "run", "dev", "--port=5173"]),
        (["python", "-c", "import sys; print(sys.argv)"], ["python", "-c", "import sys; print(sys.argv)"]),
    ],
)
def test_a_command_line_is_shown_without_its_secrets(argv: list[str], shown: list[str]) -> None:
    assert secret_forms.hide_in_command(argv) == shown


@pytest.mark.parametrize(
    "url, shown",
    [
        ("https://ada:hunter22@host/x", "https://[secret]@host/x"),
        ("https://host/x?q=1&api_key=hunter22#top", "https://host/x?q=1&api_key=[secret]#top"),
        ("https://host:8080/x?q=a%20b", "https://host:8080/x?q=a%20b"),
        ("http://[broken", "http://[broken"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert secret_forms.hide_in_address(url) == shown
