import type { CidrSet } from "./cidr-set.ts";
import { type IpAddress, parseIp, renderIp } from "./ip-address.ts";

export interface ClientIpQuestion {
  /**
   * The address at the other end of the connection. Undefined for a Unix socket, but also for a connection that was
   * closed meanwhile: it is trusted only by `hops` or `peerIsUnixSocket`, or hanging up would be a way to be believed.
   */
  readonly peer: string | undefined;
  /** The server listens on a Unix socket, so a peer without an address is one of our own proxies. */
  readonly peerIsUnixSocket?: boolean | undefined;
  /** `X-Forwarded-For`, one text or one per header line. */
  readonly forwardedFor?: string | readonly string[] | undefined;
  /** `Forwarded` (RFC 7239). Pass only the header that your proxies write; it is ignored if `forwardedFor` is given. */
  readonly forwarded?: string | readonly string[] | undefined;
  readonly trustedProxies?: TrustedProxies | undefined;
}

/** Which addresses are our proxies, or how many proxies are in front of us whatever their addresses. Absent: none. */
export type TrustedProxies = CidrSet | { readonly hops: number };

const maxHops = 64;
const maxHopLength = 128;

/**
 * The client's address, in canonical form. A proxy appends its own peer on the right, so the headers are walked from
 * the right for as long as the last address is a trusted proxy's; the first that is not is the client's, and everything
 * left of it is the client's own claim. An unreadable entry ends the walk at the last good address.
 */
export function findClientIp(question: ClientIpQuestion): string | undefined {
  const { trustedProxies, forwardedFor, forwarded } = question;
  const peerKnown = question.peer !== undefined && question.peer !== "";
  let client = peerKnown ? parseHop(question.peer!) : undefined;
  if (peerKnown && client === undefined) return undefined;

  const trusts = createTrust(trustedProxies, question.peerIsUnixSocket === true);
  const hops = forwardedFor !== undefined ? listHops(forwardedFor) : listForwardedHops(forwarded ?? []);
  let walked = 0;
  while (walked < maxHops && trusts(client, walked)) {
    const { value: hop } = hops.next();
    if (hop === undefined) break;
    const ip = parseHop(hop);
    if (ip === undefined) break;
    client = ip;
    walked += 1;
  }
  return client === undefined ? undefined : renderIp(client);
}

/** Whether to believe a hop's report of the one before it. The peer is hop 0, and undefined if it has no address. */
type Trust = (ip: IpAddress | undefined, hop: number) => boolean;

function createTrust(trustedProxies: TrustedProxies | undefined, trustsUnixPeer: boolean): Trust {
  if (trustedProxies === undefined) return () => false;
  if ("hops" in trustedProxies) return (_ip, hop) => hop < trustedProxies.hops;
  return (ip) => (ip === undefined ? trustsUnixPeer : trustedProxies.has(ip));
}

/** Elements of `X-Forwarded-For`, from the right. */
function* listHops(header: string | readonly string[]): Generator<string, undefined> {
  const lines = typeof header === "string" ? [header] : header;
  for (const line of lines.toReversed()) {
    let end = line.length;
    while (end >= 0) {
      const commaAt = end === 0 ? -1 : line.lastIndexOf(",", end - 1);
      yield line.slice(commaAt + 1, end);
      end = commaAt;
    }
  }
}

/**
 * The `for` of each element of `Forwarded`, from the right; an empty text, which is junk, unless there is exactly one.
 */
function* listForwardedHops(header: string | readonly string[]): Generator<string, undefined> {
  const lines = typeof header === "string" ? [header] : header;
  for (const line of lines.toReversed()) {
    for (const element of splitOutsideQuotes(line, ",")) {
      let node: string | undefined;
      let found = 0;
      for (const pair of splitOutsideQuotes(element, ";")) {
        const value = /^[ \t]*for=(.*)$/is.exec(pair)?.[1];
        if (value === undefined) continue;
        node = value;
        found += 1;
      }
      yield found === 1 ? unquote(node!.trim()) : "";
    }
  }
}

/**
 * Pieces between separators outside of quotes, from the right. The right end was written by a proxy and has balanced
 * quotes: a quote left open further left cannot swallow it.
 */
function* splitOutsideQuotes(text: string, separator: string): Generator<string, undefined> {
  let end = text.length;
  let quoted = false;
  for (let at = text.length - 1; at >= 0; at--) {
    const char = text[at];
    if (char === '"' && !isEscaped(text, at)) quoted = !quoted;
    else if (char === separator && !quoted) {
      yield text.slice(at + 1, end);
      end = at;
    }
  }
  yield text.slice(0, end);
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === "\\") backslashes += 1;
  return backslashes % 2 === 1;
}

function unquote(text: string): string {
  return text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}

/** An address, with or without brackets and port: a proxy may write `1.2.3.4:80` and `[2001:db8::1]:80`. */
function parseHop(text: string): IpAddress | undefined {
  const node = text.trim();
  if (node.length > maxHopLength) return undefined;
  const port = /:([0-9]{1,5}|_[A-Za-z0-9._-]+)$/.exec(node);
  if (port === null) return parseIp(node);
  const host = node.slice(0, port.index);
  return host.endsWith("]") || !host.includes(":") ? parseIp(host) : parseIp(node);
}
