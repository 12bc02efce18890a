"""What users get wrong; a checker must say so at each line marked `# wrong`, and nowhere else."""

from __future__ import annotations

from perdure import Perdure, durable, effect, pause, step


@step
async def double(n: int) -> int:
    return n * 2


@effect
async def pay(cents: int) -> str:
    return str(cents)


@durable
async def job(n: int) -> int:
    await double("two")  # wrong
    await pay()  # wrong
    text: str = await double(2)  # wrong
    return await double(n) + len(text)


@durable
async def waits() -> None:
    await pause.approval("go?", default="perhaps")  # wrong
    text: str = await pause.input("how many?", int)  # wrong
    await pause.wait(fortnights=1)  # wrong
    await pause.poll(double, every=10, what=text)  # wrong
    await pause.task("other", on_failure="ignore")  # wrong


async def use(app: Perdure) -> None:
    await app.run("job", job)  # wrong
    await app.run("job", job, "three")  # wrong
    await app.run_until_paused("job", job, "three")  # wrong
    await app.run(job, 3)  # wrong
    await app.tasks.list(status="sleeping")  # wrong
    await app.tasks.create("y", state={}, status="paused")  # wrong
    job.options(timeout=5)  # wrong
    task = await app.tasks.open("x")
    await task.pause("wait", reason="coffee")  # wrong
    await task.approve()  # wrong
    app.memory("job", ["no layer"])  # wrong


class Agent:
    @effect
    async def tell(self, what: str) -> int:
        return 1

    @durable
    async def live(self, days: int) -> str:
        text: str = await self.tell("x")  # wrong
        await self.tell(3)  # wrong
        await self.tell.plain()  # wrong
        return text


async def keep(app: Perdure, agent: Agent) -> None:
    await app.run("a", agent.live)  # wrong
    await app.run("a", agent.live, "three")  # wrong
    number: int = await app.run("a", agent.live, 3)  # wrong
    print(number)
