"""A program that records in real time until it is killed, and says after each sample how far it is.

python recording_child.py BAG
"""

import sys
import threading
import time
from pathlib import Path

from recordings_made import BENCH, PERIOD, TOPICS, begin, samples
from stribeck.recordings.bags.recorder import BagRecorder


def main() -> None:
    """One run at 200 Hz without an end."""
    with BagRecorder(Path(sys.argv[1]), TOPICS) as recorder:
        recorder.write(*begin(0))
        started, pause, k = time.monotonic(), threading.Event(), 0
        while True:
            pause.wait(max(0.0, started + k * PERIOD * 1e-9 - time.monotonic()))
            for topic, data, log_time in samples(k, 1):
                assert topic != BENCH.name
                recorder.write(topic, data, log_time)
            print(k, flush=True)
            k += 1


if __name__ == "__main__":
    main()
