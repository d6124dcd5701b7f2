/** gRPC writes `address:port`, also for IPv6 and then without brackets, and `unknown` for a Unix socket. */
export function addressFromPeer(peer: string): string | undefined {
  const portAt = peer.lastIndexOf(":");
  return portAt === -1 ? undefined : peer.slice(0, portAt);
}
