"""The actual world as its engine writes it: at once, or after it was remembered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar, cast

from nodealloc.dsw_asw._ports import Journal
from nodealloc.dsw_asw._remembering import Remember, Rows
from nodealloc.dsw_asw._world import World

__all__ = ["Records"]

K = TypeVar("K", bound=Hashable)
H = TypeVar("H")
Row = TypeVar("Row")


class Records(Generic[K, H]):
    """Records of one reconciler; used by one thread at a time.

    Without a journal a result is written when it is known. With one it waits
    here until it is committed: nobody reads it in the world, or is woken by it,
    before a crash could not take it back.

    Args:
        actual: The world.
        remember: How it is remembered, or None.
        name: Of the engine, for messages.
    """

    def __init__(self, actual: World[K, H], remember: Remember[K, H, Row] | None, name: str) -> None:
        self._actual = actual
        self._waiting: dict[K, tuple[H | None, str]] = {}
        self._write: Callable[[K, H | None, str], object] | None = None
        if remember is not None:
            self._write = actual.remembered_by(name)
            self._journal = cast("Journal[object]", remember.journal)
            self._rows = cast("Callable[[K, H | None], Mapping[str, object | None]]", remember.rows)

    @property
    def waiting(self) -> Mapping[K, tuple[object, str]]:
        """Keys with results that are not committed yet, and whose they are."""
        return self._waiting

    def have(self, key: K, /) -> H | None:
        """A key's record, with results that are not committed yet."""
        waiting = self._waiting.get(key) if self._waiting else None
        return self._actual.get(key) if waiting is None else waiting[0]

    def generation(self, key: K, /) -> int:
        """Of the key's record; 0 for none."""
        record = self._actual.record(key)
        return 0 if record is None else record.generation

    def has_moved(self, key: K, generation: int, /) -> bool:
        """Whether the key's record is another than the one of that generation."""
        return key in self._waiting or self.generation(key) != generation

    def settle(self, key: K, settled: Callable[[H | None], H | None], by: str, /) -> None:
        """Replace a key's record by a pure function of it."""
        if self._write is None:
            self._actual.alter(key, settled, by=by)
            return
        before = self.have(key)
        after = settled(before)
        if after is not before and after != before:
            self._waiting[key] = (after, by)

    def rows(
        self, intents: Mapping[K, tuple[H | None, H | None]], fault: Callable[[K, Exception], None], /
    ) -> Rows | None:
        """What has to be committed before this pass goes on; None where nothing of it is stored.

        Args:
            intents: Key to its record before and after.
            fault: Is told of a key that cannot be put into rows.
        """
        if self._write is None:
            return None
        changes: dict[K, H | None] = {key: value for key, (value, _) in self._waiting.items()}
        changes.update((key, after) for key, (_, after) in intents.items())
        rows: dict[str, object | None] = {}
        for key, value in changes.items():
            try:
                rows.update(self._rows(key, value))
            except Exception as error:  # noqa: BLE001 - one key's fault must not stop the others
                fault(key, error)
        return Rows(self._journal, rows) if rows else None

    def publish(self, intents: Mapping[K, tuple[H | None, H | None]], held: set[K], /) -> set[K]:
        """Let everybody see what is committed; `held` keys keep waiting.

        Returns:
            Keys whose record was another than the plan had seen: their intent is dropped.
        """
        if self._write is None:
            return {key for key, change in intents.items() if not self._intend(key, *change)}
        for key in [key for key in self._waiting if key not in held]:
            value, by = self._waiting.pop(key)
            if key not in intents:
                self._write(key, value, by)
        for key, (_, after) in intents.items():
            if key not in held:
                self._write(key, after, "plan")
        return set()

    def _intend(self, key: K, before: H | None, after: H | None) -> bool:
        found = before

        def intended(now: H | None) -> H | None:
            nonlocal found
            found = now
            return after if now is before else now

        self._actual.alter(key, intended, by="plan")
        return found is before
