"""Calls over Unix sockets, made and served; whoever talks to plugins, drivers or runtimes stands on this.

| module       | what it is                                                          | loads gRPC |
|--------------|---------------------------------------------------------------------|------------|
| `errors`     | the two ways in which a call may bring no answer                    | no         |
| `turns`      | a bounded number of conversations; who waits longest gives way      | no         |
| `conversations` | unary calls side by side on one thread, each on a connection of its own | no      |
| `places`     | who of those who wait for such a call is next, and who gives way    | no         |
| `unary`, `hpack` | one such call as bytes: gRPC over HTTP/2 (RFC 9113, RFC 7541)   | no         |
| `channels`   | how a socket is dialled, which status means what, the types of gRPC | yes        |
| `caller`     | a client of one service on one socket                               | yes        |
| `server`     | a service on a Unix socket, and keeping it served                   | yes        |
"""
