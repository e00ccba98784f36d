"""Soak test of the service under load, with one fault after the other.

No resource may leak, no run may be lost, and no false alarm may be raised.

    python -m benchmarks.soak [--minutes M] [--load N] [--picture FILE]

`setting` starts what is needed, as a user would: the embedded server with every benign fault armed, PostgreSQL as status store, and the
service with all probes on their default schedules; and beside it, on the same store, a second prober with a server of its own and
`ordering` at `--load` messages a second (5,000 by default), which is more than one prober can do beside all the probes without waking up
late. `troubles` go wrong meanwhile, each for a while (`Timetable`). Every few seconds `samples` reads the state of all parts, and
`violations` lists the rules that were violated in the end; `telling` prints and draws the results. The faults of guarantees that hold only
with exactly-once delivery are armed for all other keys. The exit code is 1 if one of these is broken:

* every planted fault is found, with a proof; no other violation is reported;
* every trouble is seen while it lasts, so it was really there, and the service is well again afterwards;
* every run that the schedule asked for has ended, was skipped for a reason, or is under way: `overlap` only if the run before it lasted
  so long, `misfire` only when the clock was set forward. Runs that are UNKNOWN say why, and every probe passed at least once;
* the status store has as many runs as the metrics counted, of every target and verdict;
* nothing of the prober failed or was dropped, except what a trouble excuses while it lasts and shortly after;
* the event loop of the service wakes up less than 0.1 s late in 99 of 100 cases;
* apart from troubles the memory, the descriptors and the threads of the service are flat. A soak that is too short for that says so.

Where others kept the processors busy, skipped runs, the event loop and missing runs are not evaluated: they say nothing about the service.
The load that the machine carried is reported, not evaluated.
"""
