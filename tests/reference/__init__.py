"""A second opinion: a plain checker written from the specification alone, to be held against the real one."""
