"""``stribeck identify``: one folder or module for each command of the group."""
