"""The barrier between nodes in simulated time, on nodes that are a few lines of this file."""

import math
import random

import pytest

from stribeck.emulator.lockstep import Lockstep
from stribeck.session.simulation import CALL, MATCH, REST, SERVE, TURN, Entities, Report
from stribeck.session.timing import SimulatedClock


class Nodes:
    """Nodes that answer orders when they are asked to, and all orders that were given to them."""

    def __init__(self, *names: str) -> None:
        self.clock = SimulatedClock(100.0)
        self.lockstep = Lockstep(names, self.clock)
        self.last: dict[str, tuple] = {}

    def give(self, orders):
        """Take orders; returns who got which kind."""
        self.last.update(orders)
        return {name: order[1] for name, order in orders}

    def join(self, *names: str):
        """Nodes join and report that they have nothing yet; what follows from the last one."""
        for name in names:
            assert self.lockstep.join(name) == []
            orders = self.lockstep.report(name, Report(0, 0.0, -math.inf))
        return self.give(orders)

    def report(self, name: str, due: float = math.inf, **content):
        """A node reports that it has done what it was ordered to do."""
        order, now = self.last[name][0], content.pop("now", 0.0)
        return self.give(self.lockstep.report(name, Report(order, now, due, **content)))

    def news(self, name: str):
        """Time and messages of a node's turn."""
        _, kind, now, news = self.last[name]
        assert kind == TURN
        return now, news


@pytest.fixture
def pair():
    """A node ``a`` that publishes on /t, and ``b`` that subscribes to it, both connected."""
    nodes = Nodes("a", "b")
    assert nodes.join("a", "b") == {"a": TURN, "b": TURN}
    assert nodes.report("a", due=100.0, entities=Entities({"/t": (1, 0)}, {}, ())) == {}
    assert nodes.report("b", entities=Entities({}, {"/t": (1, 0)}, ())) == {"a": MATCH, "b": MATCH}
    assert nodes.last["a"][2:] == ({"/t": 1}, {}, [])
    assert nodes.last["b"][2:] == ({}, {"/t": 1}, [])
    nodes.report("a", due=100.0)
    assert nodes.report("b") == {"a": TURN}
    return nodes


def test_time_does_not_begin_before_all_have_joined():
    """Both nodes begin at the same time, however late the second one is."""
    nodes = Nodes("a", "b")
    assert nodes.join("a") == {}
    assert nodes.lockstep.awaited == ["b"]
    assert nodes.join("b") == {"a": TURN, "b": TURN}
    assert nodes.news("a") == nodes.news("b") == (100.0, {})


def test_nodes_are_connected_before_their_first_turn():
    """What each has is in its first report, which all wait for; a node that was quick gets no turn before the others."""
    nodes = Nodes("a", "b")
    assert [nodes.lockstep.join(name) for name in "ab"] == [[], []]
    assert nodes.lockstep.awaited == ["a", "b"]
    first = Report(0, 0.0, -math.inf, entities=Entities({"/t": (1, 0)}, {}, ()))
    assert nodes.lockstep.report("a", first) == []
    assert nodes.lockstep.awaited == ["b"]
    assert nodes.give(nodes.lockstep.report("b", first)) == {"a": MATCH, "b": MATCH}
    assert nodes.report("a", due=-math.inf) == {}
    assert nodes.report("b", due=-math.inf) == {"a": TURN, "b": TURN}
    assert nodes.news("a") == nodes.news("b") == (100.0, {})


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_it_is_irrelevant_whose_report_comes_first(pair, order):
    """b subscribes to /u in the turn in which a publishes there: the message is from before, and not expected."""
    pair.report("a", due=100.5, sent={"/t": 1})
    pair.report("b", due=100.5)
    assert pair.news("a") == pair.news("b") == (100.5, {})
    told = {
        "a": {"due": 101.0, "sent": {"/u": 1}},
        "b": {"entities": Entities({}, {"/t": (1, 0), "/u": (1, 0)}, ())},
    }
    assert pair.report(order[0], **told[order[0]]) == {}
    assert pair.report(order[1], **told[order[1]]) == {"a": MATCH, "b": MATCH}
    pair.report("a", due=101.0)
    assert pair.report("b") == {"a": TURN}
    assert pair.report("a", sent={"/u": 1}) == {"b": TURN}
    assert pair.news("b") == (101.0, {"/u": 1})


def test_messages_are_processed_before_time_goes_on(pair):
    """b has its turn with as many messages as a sent; only then comes what is due later."""
    assert pair.report("a", due=100.5, sent={"/t": 3}) == {"b": TURN}
    assert pair.news("b") == (100.0, {"/t": 3})
    assert pair.report("b", due=100.25) == {"b": TURN}
    assert pair.news("b") == (100.25, {})
    assert pair.report("b") == {"a": TURN}
    assert pair.news("a") == (100.5, {})
    assert pair.report("a", due=101.0, sent={"/t": 1}) == {"b": TURN}
    assert pair.news("b") == (100.5, {"/t": 1})


def test_a_missing_report_stops_time(pair):
    """While b has not reported, nothing happens, whatever else is due; then exactly what would have happened before."""
    pair.report("a", due=100.5, sent={"/t": 1})
    again = Report(pair.last["a"][0], 0.0, 100.4)
    for _ in range(5):
        assert pair.lockstep.report("a", again) == []
    assert pair.clock.now() == 100.0
    assert pair.lockstep.awaited == ["b"]
    assert pair.report("b") == {"a": TURN}
    assert pair.news("a") == (100.4, {})


def test_an_answer_to_an_earlier_order_is_no_report_of_this_one(pair):
    """A report in between changes what is due, and does not end the turn."""
    number = pair.last["a"][0]
    assert pair.lockstep.report("a", Report(number - 1, 0.0, 100.0)) == []
    assert pair.lockstep.awaited == ["a"]


def test_others_go_on_without_a_dead_node(pair):
    """Its connection ends in the middle of its turn: nobody waits for it any more."""
    pair.report("a", due=100.5, sent={"/t": 1})
    assert pair.give(pair.lockstep.leave("b")) == {"a": TURN}
    assert pair.news("a") == (100.5, {})
    assert pair.lockstep.leave("b") == []


def test_a_driver_moves_time_in_its_turn(pair):
    """What a waited 1.5 ms for its servos is the time at which b processes the result."""
    pair.report("a", due=100.005, now=100.0015, sent={"/t": 1})
    assert pair.news("b") == (100.0015, {"/t": 1})


def test_new_subscriptions_wait_for_messages_sent_from_then_on():
    """Of nine messages sent before, a latched topic keeps two; those on the other topic are not expected any more."""
    nodes = Nodes("a")
    nodes.join("a")
    nodes.report("a", entities=Entities({"/t": (1, 0), "/l": (1, 2)}, {}, ()))
    nodes.report("a", sent={"/t": 4, "/l": 5})
    assert nodes.join("c") == {"c": TURN}
    assert nodes.report("c", entities=Entities({}, {"/t": (1, 0), "/l": (1, 1)}, ())) == {
        "a": MATCH,
        "c": MATCH,
    }
    nodes.report("a")
    assert nodes.report("c") == {"c": TURN}
    assert nodes.news("c") == (100.0, {"/l": 2})
    assert nodes.report("c") == {}
    assert nodes.report("a", sent={"/t": 1, "/l": 1}) == {"c": TURN}
    assert nodes.news("c") == (100.0, {"/t": 1, "/l": 1})


def test_services_are_called_by_one_node_while_the_others_only_serve():
    """Two callers come one after the other; between them everybody reports what the calls have changed."""
    nodes = Nodes("a", "b", "c")
    nodes.join("a", "b", "c")
    nodes.report("a", calls=1)
    nodes.report("b", calls=2)
    assert nodes.report("c", due=100.5) == {"b": SERVE, "c": SERVE, "a": CALL}
    assert nodes.report("a") == {"b": REST, "c": REST}
    nodes.report("c", due=100.5)
    assert nodes.report("b", calls=2) == {"a": SERVE, "c": SERVE, "b": CALL}
    assert nodes.report("b") == {"a": REST, "c": REST}
    nodes.report("a")
    assert nodes.report("c", due=100.2) == {"c": TURN}
    assert nodes.news("c") == (100.2, {})


def test_a_caller_gives_up_when_a_node_dies():
    """The answer may never come: the caller is ordered to go on, and reports."""
    nodes = Nodes("a", "b")
    nodes.join("a", "b")
    nodes.report("a", due=101.0, calls=1)
    assert nodes.report("b") == {"b": SERVE, "a": CALL}
    assert nodes.give(nodes.lockstep.leave("b")) == {"a": REST}
    assert nodes.report("a", due=101.0) == {"a": TURN}


def test_time_stands_still_while_nobody_wants_anything():
    """Until somebody reports that something is due after all."""
    nodes = Nodes("a")
    nodes.join("a")
    assert nodes.report("a") == {}
    assert nodes.clock.now() == 100.0
    assert nodes.report("a", due=107.0) == {"a": TURN}
    assert nodes.news("a") == (107.0, {})


def course(seed: int) -> dict[str, list]:
    """Turns of three nodes that publish, subscribe anew, call services and move time, processed in an order that is drawn."""
    drawn, nodes = random.Random(seed), Nodes("a", "b", "c")  # noqa: S311
    turns, due = {name: [] for name in "abc"}, dict.fromkeys("abc", -math.inf)
    has = {
        "a": Entities({"/t": (1, 0)}, {}, ()),
        "b": Entities({"/u": (1, 2)}, {"/t": (1, 0)}, ()),
        "c": Entities({}, {}, ()),
    }
    waiting = [(name, None) for name in drawn.sample("abc", 3)]
    while waiting and nodes.clock.now() < 101.0:
        name, order = waiting.pop(drawn.randrange(len(waiting)))
        number, kind = order[:2] if order else (0, None)
        report = {"entities": has[name]} if order is None else {}
        if order is None:
            assert nodes.lockstep.join(name) == []
        elif kind == SERVE:
            continue
        elif kind == TURN:
            now, news = order[2:]
            turns[name].append((now, news))
            due[name] = now + {"a": 0.005, "b": 0.02, "c": 0.011}[name]
            count = len(turns[name])
            report |= {"now": now + 0.0013 * (name == "a")}
            report |= {"sent": {"a": {"/t": 2}, "b": {"/u": 1}, "c": {}}[name]}
            report |= {"calls": int(name == "c" and count % 7 == 3)}
            if name == "c" and count % 5 == 2:
                topics = [topic for topic, bit in (("/t", 1), ("/u", 2)) if count & bit]
                has[name] = Entities({}, {topic: (1, int(topic == "/u")) for topic in topics}, ())
                report |= {"entities": has[name]}
        told = Report(number, report.pop("now", 0.0), due[name], **report)
        orders = nodes.lockstep.report(name, told)
        if drawn.random() < 0.3:  # it tells the same again, between two turns
            orders += nodes.lockstep.report(name, told._replace(sent={}, entities=None))
        waiting += orders
    return turns


def test_the_course_does_not_depend_on_who_is_quick():
    """Whoever gets the processor first, all turns have the same times and the same messages."""
    turns = course(0)
    assert all(len(one) > 40 for one in turns.values())
    for seed in range(1, 40):
        assert course(seed) == turns
