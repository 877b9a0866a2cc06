"""The commands, one short file a stage: flags, files opened, one function called, files written."""
