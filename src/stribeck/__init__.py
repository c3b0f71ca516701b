"""Stribeck identifies and compensates friction in robot joints.

Data flow through the packages: ``io`` reads recordings into ``core`` logs, ``fit`` identifies a friction law from them,
``io`` writes the parameter file, and ``report`` draws it.
"""

__version__ = "0.1.0"
