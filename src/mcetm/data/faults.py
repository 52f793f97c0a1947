"""What makes data unusable, said by field and row."""

from __future__ import annotations

from dataclasses import dataclass

from mcetm.errors import UserError


@dataclass(frozen=True)
class Fault:
    """One thing that makes data unusable: which field, which row, what is wrong."""

    field: str
    message: str
    row: int | None = None

    def __str__(self) -> str:
        place = self.field if self.row is None else f"{self.field}, row {self.row}"
        return f"{place}: {self.message}"


class DataError(UserError):
    """Unusable data, with every fault that was found."""

    def __init__(self, source: str, faults: list[Fault]) -> None:
        self.source, self.faults = source, tuple(faults)
        lead = f"{source} cannot be used: "
        if len(faults) == 1:
            super().__init__(f"{lead}{faults[0]}.")
        else:
            listed = "".join(f"\n  {fault}" for fault in faults)
            super().__init__(f"{lead}{len(faults)} faults.{listed}")
