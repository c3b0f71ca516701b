"""Reads files as strangers may send them; ends with 1 at the first that does anything but be read or be refused.

python fuzzing_child.py FOLDER FIRST COUNT
"""

import json
import re
import resource
import shutil
import signal
import sys
import traceback
from pathlib import Path

import numpy as np

from helpers import bam_recording, full_log, write_json
from stribeck.errors import StribeckError
from stribeck.files.actuators import load_actuator, read_actuator
from stribeck.files.drives import read_drive
from stribeck.files.folders import shared_directory
from stribeck.recordings.bags.bag import read_bag, write_bag
from stribeck.recordings.bam_json import read_bam_json
from stribeck.recordings.signals.sources import load_signals

PATIENCE, MEMORY = 5.0, 1_000_000_000
"""Longest processor time for one file [s], and memory beyond what the program had at the start [bytes]."""

NUMBERS = (
    "1e308",
    "-1e308",
    "1e-320",
    "-1",
    "0",
    "99999999999999999999",
    "NaN",
    "1e999",
    "null",
    '"x"',
    "true",
    "[]",
    "{}",
)
PARTS = (
    b"\xff" * 8,
    b"\x00" * 8,
    b"\xff\xff\xff\x7f",
    b"\x80" + 7 * b"\x00",
    b"[" * 20_000,
    b"{" * 5_000,
    b"&a [*a]",
    b"\n? ",
)


def sources(folder):
    """Files by kind: where a damaged one goes, what is read, its whole content."""
    servo = load_actuator("xl330")
    law = json.dumps({**servo.published["m6"], "model": "m6", "actuator": "xl330"}, indent=1)
    recording = write_json(folder / "whole.json", bam_recording(entries=bam_recording()["entries"][:110]))
    config = shared_directory("config")
    found = {
        "parameter file": (folder / "m6.json", folder / "m6.json", read_drive, law.encode()),
        "recording": (folder / "run.json", folder / "run.json", read_bam_json, recording.read_bytes()),
        "servo": (
            folder / "s.yaml",
            folder / "s.yaml",
            read_actuator,
            (config / "actuators/ax12.yaml").read_bytes(),
        ),
        "signals": (
            folder / "t.yaml",
            folder / "t.yaml",
            load_signals,
            (config / "signals.yaml").read_bytes(),
        ),
    }
    for storage, target in (("mcap", "*.mcap"), ("sqlite3", "*.db3"), ("sqlite3", "metadata.yaml")):
        bag = folder / f"{storage}_{target.strip('*.')}"
        write_bag(bag, [full_log(duration=1.1)], storage=storage)
        (file,) = bag.glob(target)
        found[f"bag, {target}"] = file, bag, read_bag, file.read_bytes()
    return found


def mutated(content, random):
    """One to three changes."""
    found = bytearray(content)
    for _ in range(int(random.integers(1, 4))):
        place = int(random.integers(len(found) or 1))
        way = int(random.integers(8))
        if way == 0 and found:
            found[place] ^= 1 << int(random.integers(8))
        elif way == 1:
            found[place : place + 4] = random.bytes(4)
        elif way == 2:
            del found[place:]
        elif way == 3:
            del found[place : place + int(random.integers(1, 200))]
        elif way == 4:
            found[place:place] = found[place : place + int(random.integers(1, 200))]
        elif way == 5:
            part = PARTS[int(random.integers(len(PARTS)))]
            found[place : place + (len(part) if len(part) < 10 else 0)] = part
        else:  # another number
            near = re.search(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?", found[place : place + 200])
            if near:
                number = NUMBERS[int(random.integers(len(NUMBERS)))].encode()
                found[place + near.start() : place + near.end()] = number
    return bytes(found)


def limit_memory():
    """Beyond what there is now."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))


def too_long(*_):
    raise TimeoutError(f"more than {PATIENCE:g} s")


def main():
    folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    kinds = sources(folder)
    limit_memory()
    signal.signal(signal.SIGPROF, too_long)
    names, refused = [*kinds], 0
    for seed in range(first, first + count):
        name = names[seed % len(names)]
        file, place, read, content = kinds[name]
        file.write_bytes(mutated(content, np.random.default_rng(seed)))
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        try:
            read(place)
        except StribeckError:
            refused += 1
        except BaseException:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            traceback.print_exc(limit=-8)
            print(f"seed {seed}, {name}: {file}")
            return 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        for left in folder.glob("*_recovered"):
            shutil.rmtree(left)
    print(json.dumps({"read": count - refused, "refused": refused}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
