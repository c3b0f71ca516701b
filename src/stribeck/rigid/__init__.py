"""Rigid bodies of robots: trees, dynamics, payloads and URDF files; numpy only."""
