"""An agent without asyncio: plain functions, the same guarantees.

python examples/plain_agent.py             # waits at its question; kill it if you like
perdure answer report-7 yes                # somebody says yes, from any terminal
python examples/plain_agent.py             # goes on: nothing is fetched again
"""

from perdure.sync import Perdure, durable, effect, pause, step


@step
def fetch(page: int) -> int:
    print("fetching page", page, flush=True)
    return page * 100


@effect(keyed=True)
def publish(words: int) -> str:
    print("publishing", words, "words")
    return f"published {words} words"


@durable
def report(pages: int) -> str:
    words = sum(fetch(page) for page in range(1, pages + 1))
    print("waits for: perdure answer report-7 yes", flush=True)
    if pause.input(f"Publish {words} words?", str) != "yes":
        return "not published"
    return publish(words)


with Perdure() as app:
    print(app.run("report-7", report, 3))
