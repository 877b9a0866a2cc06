"""The summary of a test run: which files took longest, what was skipped, and what to install for it."""

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest

MOST = 10
"""Number of files in the list of times."""
WORTH_TELLING = 60
"""Seconds; times of shorter runs are not reported."""


def skipped(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """A line for every file and reason, with the number of tests; the reason says what is missing."""
    counts: Counter[tuple[str, str]] = Counter()
    for report in reports:
        _, _, reason = report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, str(report.longrepr))
        counts[Path(report.nodeid.partition("::")[0]).as_posix(), reason.removeprefix("Skipped: ")] += 1
    for (file, reason), count in sorted(counts.items()):
        yield f"  {count} {'test' if count == 1 else 'tests'} of {file}: {reason}"


def costs(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """A line for each of the files that took longest, with its seconds and their share of all."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        seconds[Path(report.nodeid.partition("::")[0]).as_posix()] += report.duration
    for file, own in sorted(seconds.items(), key=lambda item: -item[1])[:MOST]:
        yield f"  {own:4.0f} s, {own / sum(seconds.values()):3.0%}: {file}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Print the summary below everything else, where it is not overlooked."""
    result = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return result
    timed = [report for some in reporter.stats.values() for report in some if isinstance(report, pytest.TestReport)]
    if sum(report.duration for report in timed) > WORTH_TELLING:
        reporter.write_line("WHAT TOOK LONGEST:")
        for line in costs(timed):
            reporter.write_line(line)
    if lines := list(skipped(reporter.stats.get("skipped", ()))):
        reporter.write_line("NOT TESTED HERE:", yellow=True)
        for line in lines:
            reporter.write_line(line)
    return result
