"""Lets benchmarks import what they share with tests and examples; import it first."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("test/support", "examples/two_links", "examples/arm_demo")]
