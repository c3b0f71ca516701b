"""Time of a call of the exported C header: friction torque of each law, in double and float, compiled with ``-O2``."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from stribeck.exports.registry import FORMATS
from stribeck.exports.task import ExportTask, JointServo
from stribeck.files.actuators import load_actuator
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import LAWS, law_named

PROGRAM = """
#include <stdio.h>
#include <time.h>
#include "laws.h"
static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
int main(void) {
  static STRIBECK_REAL s[4096][3];
  unsigned long long x = 88172645463325252ULL;
  double best = 1e9, sum = 0.0;
  for (int i = 0; i < 4096 * 3; ++i) {
    x ^= x << 13; x ^= x >> 7; x ^= x << 17;
    s[i / 3][i % 3] = (STRIBECK_REAL)((double)(x >> 11) / 9007199254740992.0 - 0.5);
  }
  for (int block = 0; block < 20; ++block) {
    double begin = seconds();
    for (int n = 0; n < 409600; ++n) sum += (double)LAW(s[n % 4096][0], s[n % 4096][1], s[n % 4096][2], 0.01, 0.001);
    double spent = (seconds() - begin) / 409600.0;
    if (spent < best) best = spent;
  }
  printf("%.17g %g\\n", 1e9 * best, sum);
  return 0;
}
"""


def measure() -> dict[str, dict[str, float]]:
    """All laws; best of 20 blocks [ns], by law and type."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        print("no C compiler is here")
        return {}
    actuator = load_actuator("xl330")
    print(f"{'law':>6} {'double [ns]':>12} {'float [ns]':>12}")
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        servos = [
            JointServo(law, Servo(Drive(actuator, law_named(law), actuator.published[law]), 400.0))
            for law in LAWS
        ]
        for path, text in FORMATS["c"].write(ExportTask(tuple(servos), folder / "laws.h")).files.items():
            path.write_text(str(text), encoding="utf-8")
        (folder / "main.c").write_text(PROGRAM, encoding="utf-8")
        for law in LAWS:
            found[law] = {real: nanoseconds(compiler, folder, law, real) for real in ("double", "float")}
            print(f"{law:>6} {found[law]['double']:12.1f} {found[law]['float']:12.1f}")
    return found


def nanoseconds(compiler: str, folder: Path, law: str, real: str) -> float:
    """Processor time of one call [ns]."""
    given = ["-DSTRIBECK_FLOAT"] if real == "float" else []
    command = [
        compiler,
        "-std=gnu99",
        "-O2",
        *given,
        f"-DLAW={law}_friction_torque",
        "main.c",
        "-o",
        "main",
        "-lm",
    ]
    subprocess.run(command, check=True, cwd=folder)
    done = subprocess.run([folder / "main"], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[0])


if __name__ == "__main__":
    measure()
