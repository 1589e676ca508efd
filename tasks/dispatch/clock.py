"""How long each step took."""

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Clock:
    """Entering a step ends the one before; a step entered twice adds up."""

    spent: dict[str, float] = field(default_factory=dict)
    _stage: str = ""
    _since: float = 0.0

    def enter(self, stage: str) -> None:
        """Begin a step."""
        now = time.monotonic()
        if self._stage:
            self.spent[self._stage] = self.spent.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now

    def milliseconds(self) -> dict[str, int]:
        """Milliseconds by step, of those that were entered; the present one is ended."""
        self.enter("")
        return {stage: round(seconds * 1000) for stage, seconds in self.spent.items()}
