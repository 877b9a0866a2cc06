"""The last words of a run of the tests: what was skipped, and what to install so that it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest


def skipped(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """A line for every file and reason, with the number of tests; the reason says what is missing."""
    counts: Counter[tuple[str, str]] = Counter()
    for report in reports:
        _, _, reason = report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, str(report.longrepr))
        counts[Path(report.nodeid.partition("::")[0]).as_posix(), reason.removeprefix("Skipped: ")] += 1
    for (file, reason), count in sorted(counts.items()):
        yield f"  {count} {'test' if count == 1 else 'tests'} of {file}: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Say it below everything else, where it is not overlooked."""
    result = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and (lines := list(skipped(reporter.stats.get("skipped", ())))):
        reporter.write_line("NOT TESTED HERE:", yellow=True)
        for line in lines:
            reporter.write_line(line)
    return result
