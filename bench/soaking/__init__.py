"""Parts of ``bench/soak.py``: the robot and its accounts, the processes beside it, and the faults with their documented ends."""
