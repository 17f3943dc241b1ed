"""Asking over gRPC: the health service of a container, in plain text or over TLS.

This part of `nodealloc.probes` loads gRPC; whoever probes nothing by it need not.
"""

from nodealloc.probes.health._grpc import GrpcProber, Tls

__all__ = ["GrpcProber", "Tls"]
