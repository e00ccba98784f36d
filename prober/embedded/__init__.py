"""A Pub/Sub server in one process: correct by default, with faults to inject.

`state` and what it is made of decide and do nothing else: requests and the time go in, results and effects come out. They need only
the standard library and know neither gRPC nor HTTP, so a simulator drives the very code that real clients talk to. `calls`,
`servicer`, `rest`, `protobuf`, `pump` and `server` put it on the network. The embedded server shares no code with the checker, so a
misunderstanding in one is not repeated in the other.
"""
