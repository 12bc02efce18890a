"""Operating a store over HTTP: workers, upkeep as jobs, facts, bundles."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from perdure import Perdure, durable
from perdure._ground.bridge import Nap
from perdure._ground.ids import new_uid
from perdure._ground.secrets.crypto import generate
from perdure.server import make_app
from perdure.server.http.requests import Caller
from perdure.server.jobs import Job, KeptJob
from tests.support.asking import ALL, Known, serving
from tests.support.http_server import request
from tests.support.waiting import look_again
from tests.tasks.upkeep_kit import sql


@durable
async def napping() -> int:
    return 1


async def ended(ask: Any, job: Any) -> Any:
    while job["state"] == "running":
        await look_again()
        _, job = await ask("GET", f"/v1/jobs/{job['id']}")
    return job


async def test_workers_queues_and_handlers_are_listed_and_workers_drained(url):
    async with Perdure(url) as app, serving(url) as ask:
        app.queue("default", concurrency=3)

        @app.on("completed", name="teller")
        async def tell(event: Any) -> None: ...

        async with app.worker():
            while not await app.functions():
                await look_again()
            await app.start("n", napping)
            await app.tasks.wait_for("n", timeout="120s")
            _, found = await ask("GET", "/v1/workers")
            (worker,) = [one for one in found["items"] if one["is_worker"]]
            assert (worker["state"], worker["queues"]) == ("alive", ["default"])
            _, queues = await ask("GET", "/v1/queues")
            assert [(one["name"], one["workers"], one["concurrency"]) for one in queues["items"]] == [("default", 1, 3)]
            while not (handlers := (await ask("GET", "/v1/handlers"))[1]["items"]):
                await look_again()
            assert [(one["name"], one["event"], one["is_in_trouble"]) for one in handlers] == [
                ("teller", "completed", False)
            ]
            assert (await ask("POST", "/v1/workers/drain", {"workers": ["nobody"]}))[0] == 404
            assert (await ask("POST", "/v1/workers/drain", {"workers": []}))[0] == 422
            status, job = await ask("POST", "/v1/workers/drain", {"workers": [worker["id"]]})
            job = await ended(ask, job)
            assert (status, job["state"], job["result"]) == (202, "done", {"drained": [worker["id"]], "busy": []})


async def test_a_store_is_told_at_a_glance(url):
    async with serving(url) as ask:
        await ask("POST", "/v1/tasks", {"id": "t"}, idempotency_key="1")
        status, facts = await ask("GET", "/v1/store")
        assert (status, facts["namespace"], facts["sealing_key"]) == (200, "default", None)
        assert facts["engine"] in url


async def test_gc_says_what_it_would_remove_and_then_removes_it(url):
    async with serving(url) as ask:
        await ask("POST", "/v1/tasks", {"id": "old"}, idempotency_key="1")
        await ask("POST", "/v1/tasks/old/complete", {})
        policy = {"policy": {"finished_for": 0}}
        _, job = await ask("POST", "/v1/store/gc", policy)
        job = await ended(ask, job)
        assert (job["result"]["dry_run"], job["result"]["tasks"]) == (True, 1)
        assert (await ask("GET", "/v1/tasks/old"))[0] == 200
        _, job = await ask("POST", "/v1/store/gc", {**policy, "dry_run": False})
        assert (await ended(ask, job))["result"]["tasks"] == 1
        assert (await ask("GET", "/v1/tasks/old"))[0] == 404
        assert (await ask("POST", "/v1/store/gc", {"policy": {"finished_for": -1}}))[0] == 422
        assert (await ask("POST", "/v1/store/gc", {"policy": {"keep_all": 1}}))[0] == 422


async def test_doctor_looks_as_a_job_and_its_last_look_is_kept(url):
    async with serving(url) as ask:
        await ask("POST", "/v1/tasks", {"id": "t"}, idempotency_key="1")
        never = await ask("GET", "/v1/store/doctor")
        assert never == (200, {"at": None, "items": [], "problems": None})
        _, job = await ask("POST", "/v1/store/doctor")
        job = await ended(ask, job)
        assert job["state"] == "done", job
        _, last = await ask("GET", "/v1/store/doctor")
        assert last["items"] == job["result"]["items"]


async def test_an_administrator_of_one_namespace_is_told_of_others_that_there_is_something_and_not_what(shared_url):
    """doctor and reseal go through the whole store, whoever asks."""
    async with serving(shared_url) as ask, serving(shared_url, namespace="other") as other:
        for told, id in ((ask, "mine"), (other, "theirs")):
            _, made = await told("POST", "/v1/tasks", {"id": id, "state": {"n": 1}}, idempotency_key="1")
            sql(shared_url, "UPDATE {events} SET at = at + 1 WHERE task_uid = ? AND number = 1", made["uid"])
        for told, id, hidden in ((ask, "mine", "theirs"), (other, "theirs", "mine")):
            _, job = await told("POST", "/v1/store/doctor")
            found = (await ended(told, job))["result"]["items"]
            assert f"audit of {id}" in [one["subject"] for one in found]
            assert [one["what"][0] for one in found if one["subject"] == "other namespaces"] == ["1"]
            assert hidden not in str(found) + str((await told("GET", "/v1/store/doctor"))[1])


async def test_an_audit_finds_the_event_that_was_changed(shared_url):
    async with serving(shared_url) as ask:
        _, made = await ask("POST", "/v1/tasks", {"id": "t"}, idempotency_key="1")
        _, heads = await ask("GET", "/v1/audit/heads")
        _, job = await ask("POST", "/v1/audit/verify", {"heads": heads})
        whole = (await ended(ask, job))["result"]
        assert (whole["is_whole"], whole["heads_compared"]) == (True, 1)
        sql(shared_url, "UPDATE {events} SET at = at + 1 WHERE task_uid = ? AND number = 1", made["uid"])
        _, job = await ask("POST", "/v1/audit/verify", {"tasks": ["t"]})
        assert (await ended(ask, job))["result"]["broken"][0]["event"] == 1
        _, job = await ask("POST", "/v1/audit/verify", {"tasks": ["nothing"]})
        job = await ended(ask, job)
        assert (job["state"], job["result"]["code"]) == ("failed", "not_found")
        _, job = await ask("POST", "/v1/audit/verify", {"heads": {"format": "x"}})
        assert (await ended(ask, job))["state"] == "failed"


async def test_records_are_sealed_again_under_the_servers_key(tmp_path):
    url = f"sqlite://{tmp_path}/perdure.db"
    async with serving(url) as ask:
        await ask("POST", "/v1/tasks", {"id": "t"}, idempotency_key="1")
        assert (await ask("POST", "/v1/store/reseal"))[0] == 409
    server = make_app(url, key=generate("k1"))
    server._guard, server._identity = None, Known(ALL)
    try:
        job = (await request(server, "POST", "/v1/store/reseal")).json
        while job["state"] == "running":
            await look_again()
            job = (await request(server, "GET", f"/v1/jobs/{job['id']}")).json
        assert (job["state"], job["result"]["key"], job["result"]["stuck"]) == ("done", "k1", [])
        assert job["result"]["resealed"] > 0
    finally:
        await server.close()


async def test_a_job_stops_at_its_next_step_and_at_the_end_of_its_server(quick_url):
    server = make_app(quick_url)
    caller = Caller("default", ALL, "ada", "key", "k1")
    rounds = threading.Semaphore(0)

    async def work(progress: Any) -> Any:
        while not progress.is_to_stop:
            progress.done += 1
            rounds.release()
            await Nap(0.001)
        return "so far"

    async def begun() -> Any:
        job = (await server.desk.jobs.begin(caller, "store:admin", "count", work)).value
        while not rounds.acquire(blocking=False):
            await look_again()
        return job

    first, second = await begun(), await begun()
    await server.desk.jobs.stop(caller, first.id)
    while (job := await server.desk.jobs.get(caller, first.id)).state == "running":
        await look_again()
    assert (job.state, job.result) == ("stopped", "so far")
    await server.desk.jobs.close()
    assert (await server.desk.jobs.get(caller, second.id)).state == "stopped"
    await server.close()


async def test_a_job_whose_server_has_died_is_told_as_failed(quick_url, clock):
    server, other = make_app(quick_url), make_app(quick_url)
    caller = Caller("default", ALL, "ada", "key", "k1")
    kept = KeptJob(
        job=Job(id=new_uid(clock.now_ms()), verb="gc", state="running", done=3, total=None, say=""),
        namespace="default",
        scope="store:admin",
        seen_at=clock.now_ms(),
    )  # fmt: skip
    await server.desk.jobs._shelf.add(kept.job.id, kept)
    assert (await other.desk.jobs.get(caller, kept.job.id)).state == "running"
    clock.advance(seconds=60)
    told = await other.desk.jobs.get(caller, kept.job.id)
    assert (told.state, "server has ended" in told.say) == ("failed", True)
    await server.close()
    await other.close()


async def test_a_namespace_has_only_so_many_jobs_at_a_time(quick_url):
    server = make_app(quick_url)
    caller = Caller("default", ALL, "ada", "key", "k1")

    async def work(progress: Any) -> Any:
        while not progress.is_to_stop:
            await Nap(0.001)

    for _ in range(4):
        await server.desk.jobs.begin(caller, "store:admin", "count", work)
    with pytest.raises(Exception, match="4 jobs are running"):
        await server.desk.jobs.begin(caller, "store:admin", "count", work)
    await server.close()


async def test_a_task_travels_as_a_bundle(quick_url, tmp_path):
    other = f"sqlite://{tmp_path}/other/perdure.db"
    here, there = make_app(quick_url), make_app(other)
    for server in (here, there):
        server._guard, server._identity = None, Known(ALL)
    try:
        made = {"id": "a/b é", "state": {"n": 1}}
        uid = (await request(here, "POST", "/v1/tasks", body=made, headers={"idempotency-key": "1"})).json["uid"]
        bundle = await request(here, "POST", f"/v1/tasks/~{uid}/export", body={}, headers={"idempotency-key": "2"})
        assert (bundle.status, bundle.headers["content-type"]) == (200, "application/octet-stream")
        assert bundle.headers["content-disposition"] == "attachment; filename*=UTF-8''a%2Fb%20%C3%A9.perdure"
        sent = {"idempotency-key": "3", "content-type": "application/octet-stream"}
        came = await request(there, "POST", "/v1/import", body=bundle.body, headers=sent)
        assert (came.status, came.json["task_id"], came.json["is_copy"]) == (201, "a/b é", True)
        assert (await request(there, "GET", f"/v1/tasks/~{uid}")).json["state"] == {"n": 1}
        again = await request(there, "POST", "/v1/import", body=bundle.body, headers=sent)
        assert (again.status, again.json) == (201, came.json)
        sent["idempotency-key"] = "4"
        assert (await request(there, "POST", "/v1/import", body=bundle.body, headers=sent)).status == 409
        other = await request(there, "POST", "/v1/import", body=b"x", headers={**sent, "idempotency-key": "3"})
        assert (other.status, other.code) == (422, "key_reused")
        for number, spoiled in enumerate((b"PK\x03\x04 nonsense", bundle.body[:-40], b"x" * 1000)):
            headers = {**sent, "idempotency-key": f"spoiled {number}"}
            refused = await request(there, "POST", "/v1/import", body=spoiled, headers=headers)
            assert (refused.status, refused.code) == (422, "bundle_refused")
            assert "/tmp" not in refused.body.decode()
        assert (await request(there, "POST", "/v1/import", query="map=x", body=b"x", headers=sent)).status == 422
    finally:
        await here.close()
        await there.close()


async def test_the_keeper_is_told_or_missing(quick_url):
    async with serving(quick_url) as ask:
        assert (await ask("GET", "/v1/keeper")) == (200, {"keeper": None})
        assert (await ask("POST", "/v1/keeper/stop", {})) == (200, {"was_there": False})


async def test_what_operates_a_store_needs_its_scope(quick_url):
    async with serving(quick_url, ALL - {"store:admin"}) as ask:
        for path in ("store/gc", "store/doctor", "store/reseal", "audit/verify", "keeper/stop", "keeper/restart"):
            assert (await ask("POST", f"/v1/{path}"))[0] == 403
        assert (await ask("GET", "/v1/audit/heads"))[0] == 403
        assert json.dumps(await ask("GET", "/v1/store"))
