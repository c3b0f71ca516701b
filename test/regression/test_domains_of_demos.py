"""Demos that run at the same time have domains of their own: the last one took a domain in use when there was no other.

Messages of two demos in one domain reach nodes of both. The lock of another user, whose file cannot be written, ended in a
traceback.
"""

import os
import tempfile

import pytest

from stribeck.cli.demo import stage
from stribeck.cli.demo.stage import DOMAINS, join_private_domain
from stribeck.errors import StribeckError


@pytest.fixture
def locks(tmp_path, monkeypatch):
    """A folder of locks of its own; the environment is as before in the end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(stage, "stay_on_this_machine", lambda: None)
    return tmp_path


def test_each_demo_has_a_domain_until_there_is_none(locks):
    """Twenty demos get twenty domains; the twenty-first is refused in one line."""
    taken = []
    for _ in DOMAINS:
        join_private_domain()
        taken.append(int(os.environ["ROS_DOMAIN_ID"]))
    assert sorted(taken) == list(DOMAINS)
    with pytest.raises(StribeckError, match="all 20 ROS domains for demos are in use"):
        join_private_domain()


def test_a_lock_that_cannot_be_opened_is_left_alone(locks):
    """The only domain whose file can be opened is taken."""
    for domain in DOMAINS[:-1]:
        (locks / f"stribeck_domain_{domain}").symlink_to(locks / "missing" / "file")
    join_private_domain()
    assert os.environ["ROS_DOMAIN_ID"] == str(DOMAINS[-1])
