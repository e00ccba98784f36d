"""A Pub/Sub service in one process: right by default, wrong on purpose.

`state` and what it is made of decide and do nothing else: requests and the time go in, results and effects come out. They need only
the standard library and know neither gRPC nor HTTP, so a simulator drives the very code that real clients talk to. `calls`,
`servicer`, `rest`, `protobuf`, `pump` and `server` put it on the network. Nothing here is shared with the checker: judge and accused
are independent.
"""
