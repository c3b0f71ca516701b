"""Lock-step of nodes in simulated time: the barrier, without I/O.

Time stands still while any node computes. Nodes compute in turns. Each node processes the messages of a turn in its next turn,
after it has received all of them: the number to expect follows from what all nodes report that they sent. When no messages are
on their way and all nodes have reported, the clock moves to the earliest time at which a node wants to act. So neither the
speed of the machine nor the order in which messages arrive has an influence.

Nodes report their publishers, subscriptions and services when they join, and again when these have changed; then all wait until
middleware has connected them before their first turn, or before time goes on. Services are called between turns, by one node at
a time, while the others do nothing else.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from stribeck.session.simulation import CALL, MATCH, REST, SERVE, TURN, Entities, Report
from stribeck.session.timing import SimulatedClock

Order = tuple[Any, ...]
"""Number and kind of an order, and its content; see :mod:`stribeck.nodes.lockstep`."""


@dataclass
class _Member:
    """A node in lock-step: its last report, the number of its last order, messages announced to it by topic.

    It is busy from the beginning: its first report says what it has. ``changed`` are entities reported since all reported last.
    """

    order: int = 0
    busy: bool = True
    calling: bool = False
    due: float = -math.inf
    entities: Entities = field(default_factory=Entities)
    changed: Entities | None = None
    announced: Counter[str] = field(default_factory=Counter)


class Lockstep:
    """Decides which node acts next, and when time goes on.

    :param names: nodes without which time does not begin.
    :param clock: the simulated clock.

    Every method returns the orders to send, each to the node with the given name.
    """

    def __init__(self, names: Iterable[str], clock: SimulatedClock) -> None:
        self.clock = clock
        self._missing = set(names)
        self._members: dict[str, _Member] = {}
        self._sent: Counter[str] = Counter()
        self._unmatched = False
        self._serving: list[str] = []
        self._caller = ""

    @property
    def awaited(self) -> list[str]:
        """Nodes that time waits for: those that have not joined yet, or have not reported."""
        return sorted(self._missing) or [name for name, member in self._members.items() if member.busy]

    def join(self, name: str) -> list[tuple[str, Order]]:
        """A node joins; the others wait for its first report, which says what it has. Its first turn is at the present time."""
        self._missing.discard(name)
        self._members[name] = _Member()
        return []

    def leave(self, name: str) -> list[tuple[str, Order]]:
        """A node has ended; the others go on without it, as they would with a real robot."""
        if self._members.pop(name, None) is None:
            return []
        self._serving = [one for one in self._serving if one != name]
        orders = [(self._caller, self._order(self._caller, REST))] if self._caller in self._members else []
        return orders + self._proceed()

    def report(self, name: str, report: Report) -> list[tuple[str, Order]]:
        """A node has done what it was ordered to do, or reports a change in between."""
        member = self._members.get(name)
        if member is None:
            return []
        if report.order == member.order:
            member.busy = False
        self.clock.move_to(report.now)
        member.due, member.calling = report.due, report.calls > 0
        member.changed = report.entities or member.changed
        for topic, count in report.sent.items():
            self._sent[topic] += count
        return self._proceed()

    def _connect(self) -> None:
        """Note what nodes have now; a new subscription receives what is sent from now on, and kept messages if latched.

        This waits until all have reported: which messages were sent before must not depend on whose report came first.
        """
        changed = [(member, member.changed) for member in self._members.values() if member.changed]
        new = [
            (member, topic, latched)
            for member, entities in changed
            for topic, (_, latched) in entities.subscribes.items()
            if topic not in member.entities.subscribes
        ]
        for member, entities in changed:
            member.entities, member.changed, self._unmatched = entities, None, True
        for member, topic, latched in new:
            kept = min(self._sent[topic], self._kept(topic)) if latched else 0
            member.announced[topic] = self._sent[topic] - kept

    def _kept(self, topic: str) -> int:
        return sum(one.entities.publishes.get(topic, (0, 0))[1] for one in self._members.values())

    def _proceed(self) -> list[tuple[str, Order]]:
        """Orders that follow once all nodes have reported."""
        members = self._members
        if self._missing or not members or any(member.busy for member in members.values()):
            return []
        self._connect()
        self._caller = ""
        if self._serving:
            served, self._serving = self._serving, []
            return [(name, self._order(name, REST)) for name in served]
        if self._unmatched:
            self._unmatched = False
            return [(name, self._order(name, MATCH, *self._peers(name))) for name in members]
        caller = next((name for name, member in members.items() if member.calling), None)
        if caller is not None:
            self._caller = caller
            self._serving = [name for name in members if name != caller]
            orders = [(name, self._order(name, SERVE, busy=False)) for name in self._serving]
            return [*orders, (caller, self._order(caller, CALL))]
        return self._turns()

    def _turns(self) -> list[tuple[str, Order]]:
        """The next turn of all nodes with messages or something due; time goes on if there are none."""
        news = {name: self._news(member) for name, member in self._members.items()}
        if not any(news.values()):
            earliest = min(member.due for member in self._members.values())
            if earliest == math.inf:
                return []
            self.clock.move_to(earliest)
        now = self.clock.now()
        orders = []
        for name, member in self._members.items():
            if news[name] or member.due <= now:
                for topic, count in news[name].items():
                    member.announced[topic] += count
                orders.append((name, self._order(name, TURN, now, news[name])))
        return orders

    def _news(self, member: _Member) -> dict[str, int]:
        """Number of messages sent on each subscribed topic and not announced yet."""
        behind = {topic: self._sent[topic] - member.announced[topic] for topic in member.entities.subscribes}
        return {topic: count for topic, count in behind.items() if count > 0}

    def _peers(self, name: str) -> tuple[dict[str, int], dict[str, int], list[str]]:
        """What a node is to be connected to: subscriptions and publishers by topic, and the services."""
        entities = [member.entities for member in self._members.values()]
        subscriptions: Counter[str] = Counter()
        publishers: Counter[str] = Counter()
        for one in entities:
            subscriptions.update({topic: count for topic, (count, _) in one.subscribes.items()})
            publishers.update({topic: count for topic, (count, _) in one.publishes.items()})
        own = self._members[name].entities
        return (
            {topic: subscriptions[topic] for topic in own.publishes},
            {topic: publishers[topic] for topic in own.subscribes},
            sorted(service for one in entities for service in one.serves),
        )

    def _order(self, name: str, kind: int, *content: Any, busy: bool = True) -> Order:
        member = self._members[name]
        member.order += 1
        member.busy = busy
        return (member.order, kind, *content)
