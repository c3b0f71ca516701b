"""``python -m stribeck.emulator FD``: the process of an emulated bus, with its pipe at a file descriptor."""

import contextlib
import signal
import sys
from multiprocessing.connection import Connection

from stribeck.emulator.host import serve

if __name__ == "__main__":
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is for the program at the other end, which closes the pipe
    with contextlib.suppress(EOFError, ConnectionError):
        serve(Connection(int(sys.argv[1])))
