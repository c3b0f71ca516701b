"""Plants that are not Stribeck's own friction law, their sensors, controllers and rival compensations.

``friction`` and ``joints`` are the plants, ``sensing`` and ``control`` what stands around them, ``baselines`` the
methods, ``loop`` and ``arm`` the simulations, ``conditions`` which runs are made, ``measure`` and ``table`` figures.
``python bench/closed_loop.py`` runs them.
"""
