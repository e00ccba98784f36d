"""Soak test of the service under load, with one fault after the other.

No resource may leak, no run may be lost, and no false alarm may be raised.

    python -m benchmarks.soak [--minutes M] [--picture FILE]

`setting` starts the parts as a user would: the embedded server with every benign fault armed, PostgreSQL as status store, and the
service with all probes on their default schedules; and beside it, on the same store, a second prober with a server of its own and
`ordering` at 5,000 messages a second, which is more than one prober can handle beside all the probes without a late
event loop. `troubles` disturb the service meanwhile, each for a while (`Timetable`). Every few seconds `samples` reads the state of all
parts, and `violations` lists the rules that were violated in the end; `telling` prints and draws the results. The faults of guarantees that
hold only with exactly-once delivery are armed for all other keys. The exit code is 1 if one of these is broken:

* every planted fault is found, with a proof; no other violation is reported;
* every trouble is visible while it lasts, which proves that it took effect, and the service is healthy afterwards;
* every run that the schedule asked for has ended, was skipped for a reason, or is under way: `overlap` only if the run before it lasted so
  long, `misfire` only when the clock was set forward. UNKNOWN runs have a reason, and every probe passed at least once;
* the status store contains as many runs as the metrics counted, of every target and verdict;
* the prober has no failures and drops no data, except those that a trouble excuses while it lasts and shortly after;
* the event loop lag of the service has a p99 below 0.1 s;
* apart from troubles the memory, the descriptors and the threads of the service are flat. A soak that is too short for this check reports
  it.

If other processes kept the processors busy, skipped runs, the event loop and missing runs are not evaluated: they prove nothing about the
service. The load that the machine carried is reported, not evaluated.
"""
