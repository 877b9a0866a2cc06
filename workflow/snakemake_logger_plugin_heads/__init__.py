"""`snakemake --logger heads`: one line says how far Snakemake is, beside all that it says itself.

Snakemake finds this package by its name. What the line says is in `heads.base.progress`.
"""

from __future__ import annotations

import threading
from logging import LogRecord

from snakemake_interface_logger_plugins.base import LogHandlerBase

from heads.base.progress import RESULTS, Progress, tick


class LogHandler(LogHandlerBase):
    """Hands Snakemake's events on, and keeps the line up to date until Snakemake ends."""

    writes_to_stream = False  # or Snakemake would say nothing itself
    writes_to_file = False
    has_filter = True  # none, so that --quiet leaves the line as it is
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Start the line."""
        self.progress, self.ended = Progress(RESULTS), threading.Event()
        self.ticker = threading.Thread(target=tick, args=(self.progress, self.ended), daemon=True)
        self.ticker.start()

    def emit(self, record: LogRecord) -> None:
        """Take in one event."""
        self.progress.read(record)

    def close(self) -> None:
        """End the line."""
        self.ended.set()
        self.ticker.join()
        super().close()
