"""The same for a plain script without asyncio: copies items in batches and asks before it publishes.

python examples/blocking_script.py               # stops at the question
perdure resume nightly-copy --set approved=true  # somebody says yes
python examples/blocking_script.py               # goes on and completes
"""

from perdure.sync import Perdure

ITEMS = [f"item-{number}" for number in range(1, 43)]

with Perdure() as app:
    task = app.tasks.open("nightly-copy", state={"copied": []})
    if task.is_paused:
        print("still waiting for an answer")
    elif task.is_finished:
        print("finished already:", task.record().result)
    else:
        with task.attempt():
            copied = task.state["copied"]
            while len(copied) < len(ITEMS):
                copied = [*copied, *ITEMS[len(copied) : len(copied) + 7]]
                task.checkpoint({**task.state, "copied": copied})
                task.mark_progress("copy", done=len(copied), total=len(ITEMS))
                print("copied", len(copied), "of", len(ITEMS))
            if not task.state.get("approved"):
                task.pause("Publish the 42 items?", reason="human_approval")
                print("paused: perdure resume nightly-copy --set approved=true")
            else:
                task.complete({"published": len(copied)})
                print("published", len(copied))
