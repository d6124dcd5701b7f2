import { invalidRequest } from "./invalid-request.ts";

export type Scheme = "grpc" | "http";

/** The address of a server. */
export interface Address {
  readonly scheme: Scheme;
  readonly tls: boolean;
  /** Its name in stats, errors and logs: `10.0.0.5:8081`, or the path of a socket. */
  readonly name: string;
  readonly place:
    | { readonly kind: "port"; readonly host: string; readonly port: number }
    | { readonly kind: "socket"; readonly path: string };
  /** The prefix of HTTP paths, without a slash at the end; empty for gRPC. */
  readonly basePath: string;
}

interface SchemeForm {
  readonly scheme: Scheme;
  readonly tls: boolean;
  readonly port: number;
}

const forms: Readonly<Record<string, SchemeForm>> = {
  grpc: { scheme: "grpc", tls: false, port: 8081 },
  grpcs: { scheme: "grpc", tls: true, port: 8081 },
  http: { scheme: "http", tls: false, port: 80 },
  https: { scheme: "http", tls: true, port: 443 },
};

const maxAddresses = 64;

/**
 * `grpc://10.0.0.5:8081,10.0.0.6:8081`, or a list of such texts. An address without a scheme has that of the previous
 * one. Local sockets are `grpc+unix:/run/sluice.sock` and `http+unix:/run/sluice.sock`.
 */
export function parseAddresses(written: string | readonly string[], schemes: readonly Scheme[]): readonly Address[] {
  const isList = Array.isArray(written) && written.every((one) => typeof one === "string");
  if (typeof written !== "string" && !isList) throw wrong(`must be ${wanted(schemes)}, or a list of such texts`);
  const texts = (typeof written === "string" ? [written] : written)
    .flatMap((one) => one.split(","))
    .map((one) => one.trim());
  if (texts.length > maxAddresses) throw wrong(`are ${texts.length}; at most ${maxAddresses} are supported`);
  const found: Address[] = [];
  let scheme: string | undefined;
  for (const text of texts) {
    const own = /^([a-z]+(?:\+unix)?):/i.exec(text)?.[1]?.toLowerCase();
    const known = own !== undefined && (own in forms || own.endsWith("+unix")) ? own : undefined;
    // What looks like a scheme may be a host name before its port.
    if (known === undefined && (own === undefined || /^[^/]+:\d+$/.test(text)) && scheme !== undefined) {
      found.push(parsePort(scheme, `${scheme}://${text}`, schemes));
      continue;
    }
    if (known === undefined) throw wrong(`must be ${wanted(schemes)}, but one is ${show(text)}`);
    scheme = known;
    found.push(known.endsWith("+unix") ? parseSocket(known, text, schemes) : parsePort(known, text, schemes));
  }
  const names = found.map(({ scheme: spoken, name, basePath }) => `${spoken} ${name}${basePath}`);
  const twice = names.findIndex((name, i) => names.indexOf(name) !== i);
  if (twice !== -1) throw wrong(`name ${found[twice]!.name} twice`);
  return found;
}

function parsePort(word: string, text: string, schemes: readonly Scheme[]): Address {
  const form = forms[word];
  if (form === undefined || !schemes.includes(form.scheme)) throw wrong(unspoken(word, schemes));
  // For an unknown scheme, the URL keeps the host as written, and omits no port.
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.hostname === "") throw wrong(`must be ${wanted(schemes)}, but one is ${show(text)}`);
  if (url.username !== "" || url.password !== "")
    throw wrong("must not contain a user or a password; use the option `token`");
  if (url.search !== "" || url.hash !== "") throw wrong(`must have nothing after the port, but one is ${show(text)}`);
  const basePath = url.pathname.replace(/(?<!\/)\/+$/, "");
  if (basePath !== "" && form.scheme === "grpc")
    throw wrong(`must have nothing after the port, but one is ${show(text)}`);
  const port = url.port === "" ? form.port : Number(url.port);
  const name = `${url.hostname}:${port}`;
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { scheme: form.scheme, tls: form.tls, name, place: { kind: "port", host, port }, basePath };
}

function parseSocket(word: string, text: string, schemes: readonly Scheme[]): Address {
  const form = forms[word.slice(0, -"+unix".length)];
  if (form === undefined || form.tls || !schemes.includes(form.scheme)) throw wrong(unspoken(word, schemes));
  const path = text.slice(word.length + 1).replace(/^\/\/(?=\/)/, "");
  if (!path.startsWith("/")) throw wrong(`must have the whole path of a socket, but one is ${show(text)}`);
  return { scheme: form.scheme, tls: false, name: path, place: { kind: "socket", path }, basePath: "" };
}

function wanted(schemes: readonly Scheme[]): string {
  const examples = { grpc: "grpc://10.0.0.5:8081", http: "http://10.0.0.5:8080" };
  return schemes.map((scheme) => examples[scheme]).join(" or ");
}

function unspoken(word: string, schemes: readonly Scheme[]): string {
  if (word in forms && !schemes.includes(forms[word]!.scheme))
    return `must be ${wanted(schemes)}; for ${word}:// import connect from "@sluice/client"`;
  return `must be ${wanted(schemes)}; ${word} is not supported`;
}

function wrong(message: string): Error {
  return invalidRequest("addresses", message);
}

/** Without a possible password. */
function show(text: string): string {
  return JSON.stringify(text.replace(/\/\/[^/]*@/, "//…@").slice(0, 100));
}
