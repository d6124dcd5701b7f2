import { aFunction, anObject, checkOptions, type OptionForm, type OptionForms } from "sluice/internal";
import { invalidRequest } from "./invalid-request.ts";
import { checkLeaseOptions } from "./leases/remote-leases.ts";
import type { Address } from "./parse-addresses.ts";
import type { ConnectOptions, TlsOptions } from "./remote-limiter.ts";

const modes: readonly unknown[] = ["open", "closed", "local"];

const falseOrObject: OptionForm = {
  holds: (value) => value === false || anObject.holds(value),
  wanted: "false, or an object",
};

const connectForms: OptionForms<ConnectOptions> = {
  whenUnavailable: undefined,
  local: anObject,
  deadline: undefined,
  deadlineMs: undefined,
  token: undefined,
  tls: anObject,
  maxWaiting: undefined,
  leases: falseOrObject,
  onChange: aFunction,
};

/** Names that other limiters use for options. */
const foreign = {
  onFailure: "did you mean whenUnavailable?",
  timeout: "did you mean deadlineMs?",
  timeoutMs: "did you mean deadlineMs?",
  onEvent: "did you mean onChange?",
  policies: 'policies are the server\'s; for an outage write whenUnavailable: "local", local: { policies }',
};

const tlsForms: OptionForms<TlsOptions> = { ca: undefined, cert: undefined, key: undefined, serverName: undefined };

/** Throws `invalid_request` with the first option that is wrong. */
export function checkConnectOptions(options: ConnectOptions, addresses: readonly Address[]): void {
  checkOptions(options, connectForms, { name: "connect", code: "invalid_request", foreign });
  const { whenUnavailable, token, maxWaiting } = options;
  if (whenUnavailable !== undefined && typeof whenUnavailable !== "function" && !modes.includes(whenUnavailable))
    throw invalidRequest("whenUnavailable", "must be open, closed, local or a function");
  // The message about an invalid token does not contain it.
  if (token !== undefined && (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token)))
    throw invalidRequest("token", "must be a text of visible ASCII characters");
  if (options.leases) checkLeaseOptions(options.leases);
  if (options.tls !== undefined) checkTls(options.tls, addresses);
  if (maxWaiting !== undefined && !(Number.isInteger(maxWaiting) && maxWaiting >= 1))
    throw invalidRequest("maxWaiting", "must be a whole number of at least 1");
}

function checkTls(tls: TlsOptions, addresses: readonly Address[]): void {
  checkOptions(tls, tlsForms, { name: "tls", code: "invalid_request" });
  if (!addresses.some((address) => address.tls)) throw invalidRequest("tls", "is for grpcs:// and https:// addresses");
  for (const name of ["ca", "cert", "key"] as const) {
    const pem: unknown = tls[name];
    if (pem === undefined || typeof pem === "string" || pem instanceof Uint8Array) continue;
    throw invalidRequest(`tls.${name}`, "must be PEM, as a text or as bytes");
  }
  if (tls.cert !== undefined && tls.key === undefined) throw invalidRequest("tls.key", "must be given with tls.cert");
  if (tls.key !== undefined && tls.cert === undefined) throw invalidRequest("tls.cert", "must be given with tls.key");
  const { serverName } = tls;
  if (serverName !== undefined && (typeof serverName !== "string" || serverName === ""))
    throw invalidRequest("tls.serverName", "must be the name of a host");
}
