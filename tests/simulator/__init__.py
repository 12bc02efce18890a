"""Processes that are simulated: the real worker, replay and durable code on virtual time, all in this process.

A seed decides everything: which process runs next, how long a read or a commit takes and whether it fails, who is
killed or stopped and when. The same seed gives the same run, so a failure can be looked at again and again.
"""
