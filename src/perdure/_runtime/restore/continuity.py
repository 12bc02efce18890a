"""The part of a runtime that saves what a task has around it and brings it back: `rt.save`, `rt.plan`, `rt.restore`.

Each process has one context for each task it works on; the runtime of a task shows it. Inside a durable function a
save is recorded: a replay makes no second one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from perdure._durable import current_attempt, once
from perdure._runtime.context import Context, Fingerprint, Held, context_of, mapped
from perdure._runtime.kinds import Back, HttpSession, KeptWorkspace, RateLimits, RequestQueue, type_of, unknown_kind
from perdure._runtime.restore import restore_on_claim as world
from perdure._runtime.restore import restore_plan as plans
from perdure._runtime.restore import restore_run as restores
from perdure._runtime.restore import save as saves
from perdure._runtime.restore.cut import Cut, bare_cut, cut_of, from_data
from perdure._runtime.restore.report import RestorePlan, RestoreReport
from perdure._runtime.restore.restore_run import Missing, Restored
from perdure._runtime.workspace import Workspace
from perdure._runtime.workspace import swap as workspace_swap
from perdure._store import Store
from perdure._tasks import Task, Tasks, arrival, carried, task_by_uid
from perdure.errors import NotFound, RecordDamaged


class Continuity:
    """Save and restore the surroundings of a task. A base of `Runtime`."""

    context: Context

    def __init__(self, store: Store, task_id: str, uid: str) -> None:
        self._store, self._task_id, self._uid = store, task_id, uid
        self.context = context_of(store, uid)

    async def _task(self) -> Task:
        return await task_by_uid(Tasks(self._store), self._uid)

    # ── what there is ───────────────────────────────────────────────────────────────────────────

    @property
    def env(self) -> dict[str, str]:
        """The environment of what is started from now on."""
        return self.context.env

    @env.setter
    def env(self, env: dict[str, str]) -> None:
        self.context.env = env

    @property
    def cwd(self) -> Path:
        return self.context.cwd

    @property
    def variables(self) -> dict[str, Any]:
        """Values to be saved with the rest, chosen by the agent."""
        return self.context.variables

    @property
    def messages(self) -> Any:
        """The messages that the model has seen and said, saved with the rest."""
        return self.context.messages

    @messages.setter
    def messages(self, messages: Any) -> None:
        self.context.messages = messages

    async def chdir(self, path: str | Path) -> None:
        """Another working directory for what is started from now on.

        Inside a durable function it is recorded: a replay, wherever it runs, comes to the same folder.
        """
        if current_attempt() is None:
            self.context.chdir(path)
            return
        was = self.context.cwd

        async def change() -> str:
            self.context.chdir(path)
            return str(self.context.cwd)

        folder = await once("chdir", str, change)
        came = await arrival(self._store, self._uid) or {}
        self.context.previous_cwd, self.context.cwd = was, Path(mapped(folder, came.get("paths") or {}))

    async def expect(self, *fingerprints: Fingerprint) -> None:
        """Have these parts of the world recorded by every save, and checked before every restore."""
        self.context.expect(*fingerprints)
        if self.context.unlooked:
            await world.look_now(await self._task(), self.context, fingerprints)

    def allow(self, *permissions: str) -> None:
        """Let this run do only so much from now on: read, write, run, network. It is never widened again."""
        wanted = frozenset(permissions)
        now = self.context.permissions
        self.context.permissions = wanted if now is None else wanted & now

    # ── units that need no keeper ───────────────────────────────────────────────────────────────

    def hold(self, name: str, kind: str, live: Any, *, after: Sequence[str] = ()) -> Held:
        """Save this live thing with the rest, and bring it back before those that come `after` it.

        In a durable function that was claimed again, the one that was brought back is given instead of `live`. Of a
        kind that is not known here, its verdict says at once that it will be lost; a save names it as such.
        """
        held = self.context.units.get(name)
        if held is not None and held.kind == kind and name in self.context.brought:
            self.context.brought.discard(name)
            return held
        lost = unknown_kind(kind) if type_of(kind) is None else None
        return self.context.hold(name, kind, live, after=after, verdict=lost)

    async def release(self, name: str) -> None:
        """Let go of a unit. What was held by `hold` is not saved any more.

        Raises:
            NotFound: there is no such unit.
        """
        if name not in self.context.units and name not in self.context.waiting:
            raise NotFound("unit", name, f"task {self._task_id!r}")
        self.context.units.pop(name, None)
        self.context.waiting.pop(name, None)
        self.context.brought.discard(name)

    def __getitem__(self, name: str) -> Any:
        """The live thing of this name."""
        held = self.context.units.get(name)
        if held is None:
            raise NotFound("unit", name, f"task {self._task_id!r}", do="hold it, or restore first")
        return held.live

    def workspace(
        self, root: str | Path, *, ignored: bool = False, repositories: bool = False, back: Back = "missing"
    ) -> KeptWorkspace:
        """Cut this folder at every save. `back` says when a restore puts it back: missing, always or never."""
        home, ring = saves.home_of(self._store), self._store.ring
        workspace_swap.recover(home)  # before any code works in it: later it would take back new work too
        workspace = Workspace(root, home, ignored=ignored, repositories=repositories, ring=ring)
        kept: KeptWorkspace = self.context.hold("workspace", "workspace", KeptWorkspace(workspace, back)).live
        return kept

    async def http(
        self,
        name: str,
        base_url: str = "",
        *,
        refresh: Callable[[], Any] | None = None,
        login: Callable[[], Any] | None = None,
        make: Callable[[], Any] | None = None,
    ) -> HttpSession:
        """A session that is saved with its cookies and token; the functions renew an expired one at a restore.

        Raises:
            CredentialRefused: it came back with an expired token, and the functions gave no other.
        """
        ways = {"refresh": refresh, "login": login, **({"make": make} if make else {})}
        self.context.given[base_url or "http"] = ways
        if name in self.context.waiting:
            await world.bring_back_now(await self._task(), self.context, name)
        if name not in self.context.units:
            session = (make or HttpSession)()
            if isinstance(session, HttpSession):
                session.base_url = base_url
            self.hold(name, "http", session)
        found: HttpSession = self[name]
        return found

    def rate_limits(self, name: str = "rate-limits") -> RateLimits:
        """Counters of what was used of each provider's allowance; what is taken stays taken, saved or not."""
        if name not in self.context.units:
            self.hold(name, "rate_limits", RateLimits(self._store.clock))
        found: RateLimits = self[name]
        found.keep_in(saves.home_of(self._store) / "limits" / f"{self._uid}-{name}", self._store.ring)
        return found

    def queue(self, name: str) -> RequestQueue:
        """Requests that are sent once each, also by the next process."""
        if name not in self.context.units:
            path = saves.home_of(self._store) / "queues" / f"{self._uid}-{name}"
            self.hold(name, "queue", RequestQueue(path, self._store.ring))
        found: RequestQueue = self[name]
        return found

    # ── save and restore ────────────────────────────────────────────────────────────────────────

    async def save(self, *, label: str = "") -> Cut:
        """A checkpoint of the task's state and of all it has around it; once this returns, it outlives the process."""

        was_made = False

        async def make() -> str:
            nonlocal was_made
            was_made = True
            return (await saves.save(await self._task(), self.context, label=label)).id

        id = await once("save", str, make)
        try:
            cut = await self.cut(id)
        except (NotFound, RecordDamaged):
            return bare_cut(id)  # a replay long after: gc or a bad disk has taken it, and the code goes on all the same
        if not was_made:
            await restores.surround_again(await self._task(), self.context, id)
        return cut

    async def cut(self, id: str | None = None) -> Cut:
        """A cut that was saved: the one named, or the newest.

        Raises:
            NotFound: there is none.
        """
        found = await carried(await self._task(), saves.PART, cause=saves.CAUSE, at=id)
        if found is None:
            raise NotFound("cut of task", self._task_id, self._store.place, do="`await rt.save()` makes one")
        return cut_of(found[0], from_data(found[1], found[0].id))

    async def plan(self, cut: Cut | str | None = None, *, trust: bool = False) -> RestorePlan:
        """The plan of a restore; making it changes nothing."""
        return (await plans.prepare(await self._task(), self.context, _id(cut), trust=trust)).plan

    async def restore(self, cut: Cut | str | None = None, *, missing: Missing = "ask", trust: bool = False) -> Restored:
        """Bring back what the task had around it (at its newest cut, if none is named), or change nothing.

        `trust` brings back all of a task imported from an unsigned bundle: its recipes may start programs and
        change files.
        """
        return await restores.restore(await self._task(), self.context, _id(cut), missing=missing, trust=trust)

    async def last_report(self) -> RestoreReport | None:
        """The report of the last restore; as text for the model: `.for_model()`."""
        return await restores.last_report(await self._task())


def _id(cut: Cut | str | None) -> str | None:
    return cut.id if isinstance(cut, Cut) else cut
