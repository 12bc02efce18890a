"""Tell what a signal's handler raised from what the interrupted code did: who catches all has to let it by."""

from __future__ import annotations

import signal
import threading


def was_raised_by_a_handler(error: BaseException) -> bool:
    """Whether the way of this error leads through a handler of a signal, called in the middle of what was done here."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(getattr(handler, "__func__", handler), "__code__", None) for handler in handlers}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False
