"""A service that says who it is: each start is a line in `boots`, and its socket tells the uuid made at that start.

Two at a time cannot hide: the second one does not get the lock, and says so in its line.
"""

import fcntl
import os
import socket
import sys
import uuid

os.chdir(sys.argv[1])
me = uuid.uuid4().hex
with open("/proc/self/stat") as stat:
    start = stat.read().rpartition(")")[2].split()[19]
lock = os.open("service.lock", os.O_WRONLY | os.O_CREAT)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    alone = "alone"
except BlockingIOError:
    alone = "second"
boots = os.open("boots", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(boots, f"{os.getpid()} {start} {me} {alone}\n".encode())
if os.path.exists("service.sock"):
    os.unlink("service.sock")
door = socket.socket(socket.AF_UNIX)
door.bind("service.sock")
door.listen(8)
print("up", flush=True)
while True:
    guest, _ = door.accept()
    with guest:
        guest.sendall(me.encode())
