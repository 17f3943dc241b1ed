"""What those beside a container runtime are held to: who keeps images, runs commands, and tells of events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nodealloc.dsw_asw import Cancel
from nodealloc.runtime import CommandResult, CommandRunner, Images, Looks, NoSuchRecordError
from nodealloc.testing._wording import in_words

__all__ = ["check_command_runner", "check_event_feed", "check_images"]

_LONG_S: Final = 10.0
"""How long a check waits for what should come at once."""


@in_words
def check_images(images: Images, name: str, /) -> None:
    """Hold whoever keeps images to its promises; the image is there, unless it was before, and goes.

    Args:
        images: To check.
        name: Of an image that can be pulled and that nothing uses.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    others = {one.id for one in images.images() if name not in one.names}
    image = images.pull_image(name)
    assert images.pull_image(name) == image, "the same image pulled again has another id"
    held = {one.id: one for one in images.images()}
    assert others <= held.keys(), f"{name} was pulled, and {sorted(others - held.keys())} went"
    assert image in held, f"{name} was pulled as {image}, and is not listed by that id"
    assert held[image].names, f"{name} was pulled by its name, and is listed without any"
    assert any(_words(name) in one for one in held[image].names), (
        f"{name} was pulled, and {image} is listed as {', '.join(held[image].names)}"
    )
    assert held[image].size_bytes > 0, f"{name} has no size"
    for _ in range(2):
        images.remove_image(image)
    left = {one.id for one in images.images()}
    assert image not in left, f"{name} was removed and is listed"
    assert others - {image} <= left, f"{name} was removed, and {sorted(others - left)} as well"


def _words(name: str) -> str:
    """What a name has in every spelling of it: no registry that goes without saying, no tag or digest."""
    return name.rpartition("/")[2].partition("@")[0].partition(":")[0]


@in_words
def check_command_runner(
    runner: CommandRunner,
    container_id: str,
    commands: Mapping[Sequence[str], CommandResult],
    /,
) -> None:
    """Hold whoever runs commands to its promises.

    Args:
        runner: To check.
        container_id: A container that runs.
        commands: Commands to what they leave; at least two with different exit codes.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    assert len({one.code for one in commands.values()}) > 1, "give commands that end differently"
    for command, expected in commands.items():
        got = runner.run_command(container_id, command, 30.0)
        assert got == expected, f"{' '.join(command)}: expected {expected}, got {got}"
    try:
        runner.run_command("no-such-container", next(iter(commands)), 30.0)
    except NoSuchRecordError:
        pass
    else:
        raise AssertionError("a command was run in a container that is not there")


@in_words
def check_event_feed(
    feed: Looks, change: Callable[[], object], cancel: Cancel, stop: Callable[[], object], /
) -> None:
    """Hold a feed of events to its promises.

    Args:
        feed: To check.
        change: Changes something that it tells of; called twice.
        cancel: What `stop` sets.
        stop: Asks the feed to end.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    told = threading.Event()
    thread = threading.Thread(target=feed.follow, args=(told.set, cancel), daemon=True)
    thread.start()
    assert told.wait(_LONG_S), "the feed is up, and nobody was told"
    for which in ("something", "something else"):
        time.sleep(0.1)
        told.clear()
        change()
        assert told.wait(_LONG_S), f"{which} changed, and nobody was told"
    stop()
    thread.join(_LONG_S)
    assert not thread.is_alive(), "the feed was asked to stop, and goes on"
