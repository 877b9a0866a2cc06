"""The commands, one short file each: declare flags, open files, call one function, write files."""
