"""Stribeck: find out how much friction a robot's joints have, and cancel it.

The packages follow the data: ``io`` reads recordings into ``core`` logs, ``fit`` identifies a
friction law from them, ``io`` writes the parameter file, ``report`` draws it.
"""

__version__ = "0.1.0"
