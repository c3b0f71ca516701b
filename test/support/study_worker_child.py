"""A worker of a shared study, for tests that kill it: URL and number of trials on the command line."""

import sys

from recovery import truth_of, virtual_logs
from small_studies import TINY, tiny_task
from stribeck.identify.servo.identify import identify
from virtual import Encoder

if __name__ == "__main__":
    logs = virtual_logs(TINY, truth_of(TINY, "m1"), "m1", Encoder(0.0))
    url, trials = sys.argv[1:]
    identify(tiny_task(logs, method="cmaes", trials=int(trials), study=url, join=True))
