"""A Pub/Sub server in one process: correct by default, with faults to inject.

`state` and its parts are pure logic: they take requests and the time, and return results and effects. They need only the standard library
and import neither gRPC nor HTTP, so a simulator drives the same code as real clients. `calls`, `servicer`, `rest`, `protobuf`, `pump` and
`server` put it on the network. The embedded server shares no code with the checker, so a misunderstanding in one is not repeated in the
other.
"""
