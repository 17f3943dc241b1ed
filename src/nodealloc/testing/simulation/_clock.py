"""A machine's clocks, which jump."""

from __future__ import annotations

from nodealloc.dsw_asw import Moment

__all__ = ["SimulatedClock"]


class SimulatedClock:
    """Both clocks of a machine and its boot id: a `Clock` that moves when it is told to.

    Args:
        unix_s: The wall clock at the first boot.

    Attributes:
        passed_s: Seconds since the first boot, asleep and switched off included.
        awake_s: The same without those asleep and switched off.

    Example:
        >>> clock = SimulatedClock()
        >>> clock.advance(5.0)
        >>> before = clock.moment()
        >>> clock.sleep(3600.0)
        >>> clock.monotonic_s(), clock.moment().unix_s - before.unix_s
        (5.0, 3600.0)
        >>> clock.reboot(down_s=30.0)
        >>> clock.monotonic_s(), clock.moment().boot_id, clock.moment().unix_s - before.unix_s
        (0.0, 'boot 2', 3630.0)
    """

    def __init__(self, unix_s: float = 1_700_000_000.0) -> None:
        self._monotonic_s = 0.0
        self._unix_s = unix_s
        self._boot = 1
        self.passed_s: float = 0.0
        self.awake_s: float = 0.0

    def monotonic_s(self) -> float:
        """Seconds since the boot, without those that the machine slept."""
        return self._monotonic_s

    @property
    def unix_s(self) -> float:
        """The wall clock."""
        return self._unix_s

    def moment(self) -> Moment:
        """This moment as it is stored."""
        return Moment(boot_id=f"boot {self._boot}", monotonic_s=self._monotonic_s, unix_s=self._unix_s)

    def advance(self, seconds: float, /) -> None:
        """Let time pass while the machine is awake; raises `ValueError` for going back."""
        if seconds < 0:
            raise ValueError(f"a monotonic clock does not go back by {-seconds:g} s; advance by 0 or more")
        self._monotonic_s += seconds
        self._unix_s += seconds
        self.passed_s += seconds
        self.awake_s += seconds

    def sleep(self, seconds: float, /) -> None:
        """Let the machine sleep: the wall clock goes on, the monotonic clock stands still."""
        self._unix_s += seconds
        self.passed_s += seconds

    def set_wall(self, by_s: float, /) -> None:
        """Somebody sets the wall clock, forward or back."""
        self._unix_s += by_s

    def reboot(self, *, down_s: float = 0.0) -> None:
        """Another boot: the monotonic clock begins again."""
        self._boot += 1
        self._monotonic_s = 0.0
        self._unix_s += down_s
        self.passed_s += down_s
