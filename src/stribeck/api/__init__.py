"""The public API, which ``import stribeck`` exports by name; commands are written on top of it."""
