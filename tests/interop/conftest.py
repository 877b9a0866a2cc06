"""What these tests translate with."""

from tiny_translators import experiment, talker

__all__ = ["experiment", "talker"]
