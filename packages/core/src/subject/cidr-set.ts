import { SluiceError } from "../errors.ts";
import { type IpAddress, ipv4Mask, ipv6GroupMask, maskIp, parseIpAsWritten, unwrapIp } from "./ip-address.ts";

/** All addresses that begin with the same bits. */
export interface CidrRange {
  /** The first address of the range. */
  readonly first: IpAddress;
  readonly prefixBits: number;
}

/** Addresses and ranges, searched on every check: as fast with ten thousand entries as with one. */
export interface CidrSet {
  has(ip: IpAddress): boolean;
}

/**
 * `10.0.0.0/8`, `2001:db8::/32`, or one address. Bits after the prefix are cleared. Ranges inside `::ffff:0:0/96` and
 * `64:ff9b::/96` become the IPv4 ranges that they carry; wider IPv6 ranges contain IPv6 addresses only, so `::/0` does
 * not match IPv4 clients. Undefined for anything else.
 */
export function parseCidr(text: string): CidrRange | undefined {
  const slashAt = text.lastIndexOf("/");
  const written = parseIpAsWritten(slashAt === -1 ? text : text.slice(0, slashAt));
  if (written === undefined) return undefined;
  const widest = written.family === "ipv4" ? 32 : 128;
  const prefixBits = slashAt === -1 ? widest : readPrefixBits(text.slice(slashAt + 1));
  if (prefixBits === undefined || prefixBits > widest) return undefined;

  if (written.family === "ipv6" && prefixBits >= 96) {
    const inside = unwrapIp(written);
    if (inside.family === "ipv4") return { first: maskIp(inside, prefixBits - 96), prefixBits: prefixBits - 96 };
  }
  return { first: maskIp(written, prefixBits), prefixBits };
}

/** Throws `invalid_request` naming every entry that is neither an address nor a range. */
export function createCidrSet(entries: readonly string[]): CidrSet {
  const problems = [];
  /** One set of first addresses per prefix length: a lookup masks the address once for each length in use. */
  const ipv4 = new Map<number, Set<number>>();
  const ipv6 = new Map<number, Set<string>>();
  for (const [index, entry] of entries.entries()) {
    const range = parseCidr(entry);
    if (range === undefined) {
      const message = `${JSON.stringify(entry)} is not an IP address or range; write it as 10.0.0.0/8 or 2001:db8::/32`;
      problems.push({ path: [index], message });
    } else if (range.first.family === "ipv4") {
      memberSet(ipv4, range.prefixBits).add(range.first.bits);
    } else {
      memberSet(ipv6, range.prefixBits).add(ipv6Key(range.first.groups, 128));
    }
  }
  if (problems.length > 0) {
    throw new SluiceError("invalid_request", problems.map(({ message }) => message).join("; "), problems);
  }

  const ipv4Lengths = [...ipv4].map(([prefixBits, firsts]) => ({ mask: ipv4Mask(prefixBits), firsts }));
  const ipv6Lengths = [...ipv6].map(([prefixBits, firsts]) => ({ prefixBits, firsts }));
  return {
    has: (ip) =>
      ip.family === "ipv4"
        ? ipv4Lengths.some(({ mask, firsts }) => firsts.has((ip.bits & mask) >>> 0))
        : ipv6Lengths.some(({ prefixBits, firsts }) => firsts.has(ipv6Key(ip.groups, prefixBits))),
  };
}

function memberSet<Key>(byLength: Map<number, Set<Key>>, prefixBits: number): Set<Key> {
  let members = byLength.get(prefixBits);
  if (members === undefined) {
    members = new Set();
    byLength.set(prefixBits, members);
  }
  return members;
}

/** The first `prefixBits` bits, one character per group. */
function ipv6Key(groups: readonly number[], prefixBits: number): string {
  let key = "";
  for (let index = 0; index < 8; index++) {
    key += String.fromCharCode(groups[index]! & ipv6GroupMask(prefixBits, index));
  }
  return key;
}

function readPrefixBits(text: string): number | undefined {
  return /^(0|[1-9][0-9]{0,2})$/.test(text) ? Number(text) : undefined;
}
