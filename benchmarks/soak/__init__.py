"""A soak: everything at once for long, and one trouble after the other, while nothing may leak, be lost, or be said in vain.

    python -m benchmarks.soak [--minutes M] [--load N] [--picture FILE]

`setting` starts what is needed, as a user would: the embedded server with every benign fault armed, PostgreSQL as status store, and the
service with all probes on their default schedules; and beside it, on the same store, a second prober with a server of its own and
`ordering` at `--load` messages a second (5,000 unless told otherwise), which is more than one prober can do beside all the probes without
waking up late. `troubles` go wrong meanwhile, each for a while (`Timetable`). Every few seconds `samples`
reads how everything is, and `judgement` says in the end what was to hold and did not; `telling` prints and draws it. The faults of what
is promised with exactly-once delivery only are armed for all other keys. The exit code is 1 if one of these is broken:

* every planted fault is found, with a proof; nobody else is accused, and nothing but what was planted;
* every trouble is seen while it lasts, so it was really there, and the service is well again afterwards;
* every run that the schedule asked for has ended, was skipped for a reason, or is under way: `overlap` only if the run before it lasted
  so long, `misfire` only when the clock was set forward. Runs that are UNKNOWN say why, and every probe passed at least once;
* the status store has as many runs as the metrics counted, of every target and verdict;
* nothing of the prober failed or was dropped, except what a trouble excuses while it lasts and shortly after;
* the event loop of the service wakes up less than 0.1 s late in 99 of 100 cases;
* apart from troubles the memory, the descriptors and the threads of the service are flat. A soak that is too short for that says so.

Where others kept the processors busy, neither skipped runs nor the event loop are judged, nor what never came: that says nothing about the
service. What the machine does of the load is told, not judged.
"""
