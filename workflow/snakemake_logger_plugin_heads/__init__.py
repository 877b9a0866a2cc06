"""`snakemake --logger heads`: a line that shows how far Snakemake is, beside Snakemake's own output.

Snakemake finds this package by its name. The text of the line comes from `heads.base.progress`.
"""

import threading
from logging import LogRecord

from snakemake_interface_logger_plugins.base import LogHandlerBase

from heads.base.progress import RESULTS, Progress, tick


class LogHandler(LogHandlerBase):
    """Passes on Snakemake's events, and keeps the line up to date until Snakemake ends."""

    writes_to_stream = False  # otherwise Snakemake would print nothing itself
    writes_to_file = False
    has_filter = True  # it filters nothing, so that --quiet leaves the line as it is
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Start showing the line."""
        self.progress, self.ended = Progress(RESULTS), threading.Event()
        self.ticker = threading.Thread(target=tick, args=(self.progress, self.ended), daemon=True)
        self.ticker.start()

    def emit(self, record: LogRecord) -> None:
        """Process one event."""
        self.progress.read(record)

    def close(self) -> None:
        """Stop showing the line."""
        self.ended.set()
        self.ticker.join()
        super().close()
