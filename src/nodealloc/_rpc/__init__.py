"""Calls over Unix sockets, made and served; whoever talks to plugins, drivers or runtimes stands on this.

| module       | what it is                                                          | loads gRPC |
|--------------|---------------------------------------------------------------------|------------|
| `errors`     | the two ways in which a call may bring no answer                    | no         |
| `turns`      | a bounded number of conversations; who waits longest gives way      | no         |
| `places`     | who of those who wait for a call is next, and who gives way         | no         |
| `conversations` | unary calls side by side on one thread, each on a connection of its own | yes     |
| `single`     | one such call on an event loop, and that loop                       | yes        |
| `channels`   | how a socket is dialled, which status means what, the types of gRPC | yes        |
| `streams`    | a call with many answers, on that loop                              | yes        |
| `caller`     | a client of one service on one socket                               | yes        |
| `server`     | a service on a Unix socket, and keeping it served                   | yes        |
"""
