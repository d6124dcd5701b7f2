/** An address as it is compared and counted. An IPv4 address is IPv4 however it was written. */
export type IpAddress =
  | {
      readonly family: "ipv4";
      /** The 32 bits as an unsigned number. */
      readonly bits: number;
    }
  | {
      readonly family: "ipv6";
      /** Eight groups of 16 bits, the first one first. */
      readonly groups: readonly number[];
    };

/** Longer than any address with a zone id: anything longer is junk, and is not parsed. */
const maxTextLength = 100;

/**
 * Reads an IPv4 or IPv6 address, the latter also in brackets and with a zone id, which is dropped. Addresses that carry
 * an IPv4 one inside (mapped `::ffff:0:0/96`, NAT64 `64:ff9b::/96`) become that one. Undefined for anything else: ports,
 * leading zeros, surrounding spaces.
 */
export function parseIp(text: string): IpAddress | undefined {
  const written = parseIpAsWritten(text);
  return written === undefined ? undefined : unwrapIp(written);
}

/** `parseIp` without looking for an IPv4 address inside an IPv6 one. */
export function parseIpAsWritten(text: string): IpAddress | undefined {
  if (text.length === 0 || text.length > maxTextLength) return undefined;
  const bits = readIpv4(text, 0, text.length);
  if (bits !== undefined) return { family: "ipv4", bits };

  let start = 0;
  let end = text.length;
  if (text.charCodeAt(0) === bracketOpen) {
    if (text.charCodeAt(end - 1) !== bracketClose) return undefined;
    start = 1;
    end -= 1;
  }
  const zoneAt = text.indexOf("%", start);
  if (zoneAt !== -1) {
    if (!isZoneId(text, zoneAt + 1, end)) return undefined;
    end = zoneAt;
  }
  const groups = readIpv6(text, start, end);
  return groups === undefined ? undefined : { family: "ipv6", groups };
}

/** The IPv4 address inside a mapped or NAT64 one; any other address as it is. */
export function unwrapIp(ip: IpAddress): IpAddress {
  if (ip.family === "ipv4" || !carriesIpv4(ip.groups)) return ip;
  return { family: "ipv4", bits: ((ip.groups[6]! << 16) | ip.groups[7]!) >>> 0 };
}

/** The one canonical way to write an address (RFC 5952 for IPv6). */
export function renderIp(ip: IpAddress): string {
  if (ip.family === "ipv6") return renderGroups(ip.groups);
  const { bits } = ip;
  return `${bits >>> 24}.${(bits >>> 16) & 0xff}.${(bits >>> 8) & 0xff}.${bits & 0xff}`;
}

/** The address with all but its first `prefixBits` bits cleared: 0 … 32 for IPv4, 0 … 128 for IPv6. */
export function maskIp(ip: IpAddress, prefixBits: number): IpAddress {
  if (ip.family === "ipv4") return { family: "ipv4", bits: (ip.bits & ipv4Mask(prefixBits)) >>> 0 };
  return { family: "ipv6", groups: ip.groups.map((group, index) => group & ipv6GroupMask(prefixBits, index)) };
}

/** A network of this size belongs to one customer, who may take any address in it. */
export const defaultIpv6PrefixBits = 64;

/**
 * The subject that an address is counted as: an IPv4 address itself, an IPv6 address's network, because a client may
 * take any address inside it. Undefined if it is not an address. Canonical IPv4 text comes back as the same string.
 */
export function ipSubject(text: string, ipv6PrefixBits: number = defaultIpv6PrefixBits): string | undefined {
  if (!(Number.isInteger(ipv6PrefixBits) && ipv6PrefixBits >= 0 && ipv6PrefixBits <= 128)) {
    throw new RangeError(`ipv6PrefixBits is ${ipv6PrefixBits}; it must be a whole number from 0 to 128`);
  }
  if (text.length <= 15 && readIpv4(text, 0, text.length) !== undefined) return text;
  const ip = parseIp(text);
  if (ip === undefined) return undefined;
  return ip.family === "ipv4" ? renderIp(ip) : `${renderIp(maskIp(ip, ipv6PrefixBits))}/${ipv6PrefixBits}`;
}

export function ipv4Mask(prefixBits: number): number {
  // A shift by 32 is a shift by 0 in JavaScript.
  return prefixBits === 0 ? 0 : (0xffffffff << (32 - prefixBits)) >>> 0;
}

/** The mask of one of the eight groups of an IPv6 address. */
export function ipv6GroupMask(prefixBits: number, group: number): number {
  const kept = Math.min(16, Math.max(0, prefixBits - group * 16));
  return (0xffff << (16 - kept)) & 0xffff;
}

const dot = 0x2e;
const colon = 0x3a;
const slash = 0x2f;
const bracketOpen = 0x5b;
const bracketClose = 0x5d;

function readIpv4(text: string, start: number, end: number): number | undefined {
  const length = end - start;
  if (length < 7 || length > 15) return undefined;
  let bits = 0;
  let parts = 0;
  let digits = 0;
  let part = 0;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === dot) {
      if (digits === 0 || parts === 3) return undefined;
      bits = (bits << 8) | part;
      parts += 1;
      digits = 0;
      part = 0;
    } else if (code >= 0x30 && code <= 0x39) {
      // Some parsers treat a leading zero as octal: `010.0.0.1` is two addresses, so it is none.
      if (digits > 0 && part === 0) return undefined;
      part = part * 10 + code - 0x30;
      if (part > 255) return undefined;
      digits += 1;
    } else return undefined;
  }
  return parts === 3 && digits > 0 ? ((bits << 8) | part) >>> 0 : undefined;
}

function readIpv6(text: string, start: number, end: number): number[] | undefined {
  const groups = [0, 0, 0, 0, 0, 0, 0, 0];
  let count = 0;
  /** How many groups come before `::`. */
  let gapAt = -1;
  let at = start;
  if (text.charCodeAt(at) === colon) {
    if (text.charCodeAt(at + 1) !== colon) return undefined;
    gapAt = 0;
    at += 2;
  }
  while (at < end) {
    if (count === 8) return undefined;
    const groupStart = at;
    let group = 0;
    while (at < end) {
      const digit = hexDigit(text.charCodeAt(at));
      if (digit === -1) break;
      if (at - groupStart === 4) return undefined;
      group = (group << 4) | digit;
      at += 1;
    }
    if (at < end && text.charCodeAt(at) === dot) {
      const bits = readIpv4(text, groupStart, end);
      if (bits === undefined || count > 6) return undefined;
      groups[count++] = bits >>> 16;
      groups[count++] = bits & 0xffff;
      break;
    }
    if (at === groupStart) return undefined;
    groups[count++] = group;
    if (at === end) break;
    if (text.charCodeAt(at) !== colon) return undefined;
    at += 1;
    if (at === end) return undefined;
    if (text.charCodeAt(at) === colon) {
      if (gapAt !== -1) return undefined;
      gapAt = count;
      at += 1;
    }
  }
  if (gapAt === -1) return count === 8 ? groups : undefined;
  if (count === 8) return undefined;
  groups.copyWithin(8 - (count - gapAt), gapAt, count);
  groups.fill(0, gapAt, 8 - (count - gapAt));
  return groups;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

function isZoneId(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code <= 0x20 || code >= 0x7f || code === slash || code === bracketOpen || code === bracketClose) return false;
  }
  return start < end;
}

function carriesIpv4(groups: readonly number[]): boolean {
  if (groups[2] !== 0 || groups[3] !== 0 || groups[4] !== 0) return false;
  const mapped = groups[0] === 0 && groups[1] === 0 && groups[5] === 0xffff;
  const nat64 = groups[0] === 0x64 && groups[1] === 0xff9b && groups[5] === 0;
  return mapped || nat64;
}

function renderGroups(groups: readonly number[]): string {
  let gapStart = -1;
  // One zero group alone is written out.
  let gapLength = 1;
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (start + length < 8 && groups[start + length] === 0) length += 1;
    if (length > gapLength) {
      gapStart = start;
      gapLength = length;
    }
    start += length;
  }
  let text = "";
  for (let index = 0; index < 8; index++) {
    if (index === gapStart) {
      text += "::";
      index += gapLength - 1;
    } else {
      text += index === 0 || text.endsWith("::") ? groups[index]!.toString(16) : `:${groups[index]!.toString(16)}`;
    }
  }
  return text;
}
