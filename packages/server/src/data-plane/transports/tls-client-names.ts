import type { X509Certificate } from "node:crypto";
import { parseIp, renderIp } from "sluice/internal";
import { SettingError } from "../../settings/parse-settings.ts";

/** A name in a certificate. */
export interface CertificateName {
  readonly kind: "dns" | "uri" | "email" | "ip";
  readonly value: string;
}

/** Which of the valid certificates are accepted. */
export interface ClientNames {
  admits(certificate: X509Certificate): boolean;
}

/**
 * Parses client names: host names (`*.internal` stands for one label), addresses, e-mail addresses and URIs. A
 * certificate is accepted if one of its subject alternative names is one of these, of the same kind; its common name
 * does not count.
 */
export function parseClientNames(names: readonly string[]): ClientNames {
  const wanted = new Set<string>();
  const domains = new Set<string>();
  for (const name of names) {
    const parsed = parseName(name);
    if (parsed.kind === "dns" && parsed.value.startsWith("*.")) domains.add(parsed.value.slice(1));
    else wanted.add(`${parsed.kind} ${parsed.value}`);
  }
  return {
    admits(certificate): boolean {
      return namesOfCertificate(certificate.subjectAltName).some(
        ({ kind, value }) => wanted.has(`${kind} ${value}`) || (kind === "dns" && domains.has(parentDomain(value))),
      );
    },
  };
}

const hostLabel = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const hostName = new RegExp(`^(?:\\*\\.)?${hostLabel}(?:\\.${hostLabel})*$`);
const firstLabel = new RegExp(`^${hostLabel}(?=\\.)`);

function parseName(name: string): CertificateName {
  const ip = parseIp(name);
  if (ip !== undefined) return { kind: "ip", value: renderIp(ip) };
  if (/^(?:[a-z][a-z0-9+.-]*:\/\/|urn:)\S+$/i.test(name)) return { kind: "uri", value: name };
  if (/^[^@\s]+@[^@\s]+$/.test(name)) return { kind: "email", value: name };
  const host = name.toLowerCase();
  if (hostName.test(host)) return { kind: "dns", value: host };
  throw new SettingError(
    ["tlsClientNames"],
    `${JSON.stringify(name)} is not a client name; write a host name (* only as its whole first label), a URI, an e-mail ` +
      "address or an IP address",
  );
}

/** `.internal` of `gateway.internal`; empty if the first label is not one that a wildcard may stand for. */
function parentDomain(host: string): string {
  const label = firstLabel.exec(host);
  return label === null ? "" : host.slice(label[0].length);
}

const kinds: ReadonlyMap<string, CertificateName["kind"]> = new Map([
  ["DNS", "dns"],
  ["URI", "uri"],
  ["email", "email"],
  ["IP Address", "ip"],
]);

const entry = /([A-Za-z][A-Za-z0-9 ]*):([^",]*)("(?:[^"\\]|\\.)*")?(?:, |$)/y;

/**
 * The names in Node's text of a certificate's: `DNS:a.example, URI:spiffe://acme/b`. An ambiguous value is quoted
 * there, as JSON. A text that cannot be parsed to its very end yields no name at all.
 */
export function namesOfCertificate(subjectAltName: string | undefined): readonly CertificateName[] {
  const names: CertificateName[] = [];
  const text = subjectAltName ?? "";
  entry.lastIndex = 0;
  for (let at = 0; at < text.length; at = entry.lastIndex) {
    const found = entry.exec(text);
    if (found === null) return [];
    const [, label = "", plain = "", quoted] = found;
    const kind = kinds.get(label);
    if (kind === undefined) continue;
    const value = quoted === undefined ? plain : plain === "" ? unquote(quoted) : undefined;
    if (value === undefined) return [];
    names.push({ kind, value: canonical(kind, value) });
  }
  return names;
}

function unquote(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}

function canonical(kind: CertificateName["kind"], value: string): string {
  if (kind === "dns") return value.toLowerCase();
  const ip = kind === "ip" ? parseIp(value) : undefined;
  return ip === undefined ? value : renderIp(ip);
}
