"""Words that arguments and options may be, known without the engines that they are for."""

from __future__ import annotations

from stribeck.model.law import LAWS, optional_parts
from stribeck.model.terms import TERMS

AUTO = "auto"
"""In place of a law: the one that predicts best what is left out."""

LAWS_OR_AUTO = (AUTO, *LAWS)

JOINT_TERMS = ("presliding", "asymmetric", "temperature", *optional_parts())
"""Terms that can be asked for in a joint."""

ROBOT_TERMS = tuple(name for name in optional_parts() if any(one.robot for one in TERMS[name].parameters))
"""Terms that can be asked for in a whole robot."""

ARM_FITS = ("ols", "asymmetric", "weighted", "generalised", "robust", "consistent", "log-cholesky", "full")
"""Fits of an arm, in the order of computation."""
