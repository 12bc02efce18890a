"""Charge a card, fail to ship, and refund: an effect with a probe and an undo. Kill it anywhere and run it again.

python examples/agents/payment.py        # provider.txt stands for the payment provider
"""

import asyncio
from pathlib import Path

from perdure import Perdure, durable, effect, step
from perdure.effects import DID_NOT_HAPPEN, Happened

PROVIDER = Path("provider.txt")


def book(line: str) -> None:
    with PROVIDER.open("a") as provider:
        provider.write(f"{line}\n")


def booked(line: str) -> bool:
    return PROVIDER.exists() and line in PROVIDER.read_text().splitlines()


async def find_refund(receipt: str, order: str, cents: int) -> object:
    return Happened(None) if booked(f"refund {order}") else DID_NOT_HAPPEN


@effect(verify=find_refund)
async def refund(receipt: str, order: str, cents: int) -> None:
    book(f"refund {order}")
    print("refunded", flush=True)


async def find_charge(order: str, cents: int) -> object:
    return Happened(f"receipt {order}") if booked(f"charge {order} {cents}") else DID_NOT_HAPPEN


@effect(verify=find_charge, undo=refund)
async def charge(order: str, cents: int) -> str:
    book(f"charge {order} {cents}")
    print("charged", flush=True)
    await asyncio.sleep(0.05)  # the answer is on its way
    return f"receipt {order}"


@step
async def price(order: str) -> int:
    await asyncio.sleep(0.05)
    print("price found", flush=True)
    return 500


class SoldOut(Exception):
    """The shelf is empty."""


@step(raises=[SoldOut])
async def ship(order: str) -> None:
    await asyncio.sleep(0.05)
    print("shipping", flush=True)
    raise SoldOut(order)


@durable(compensate=True)  # when it fails, what it did is undone, the newest first
async def checkout(order: str) -> None:
    await charge(order, await price(order))
    await ship(order)


async def main() -> None:
    async with Perdure() as app:
        try:
            await app.run("payment-1", checkout, "tea")
        except SoldOut:
            print("done: sold out, refunded", flush=True)


asyncio.run(main())
