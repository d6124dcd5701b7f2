import { type Clock, createLimiter, type Decision, type Limiter, renderHeaders } from "sluice";
import type { Caller } from "./access.ts";
import { RateLimited } from "./rate-limited.ts";

/** Sluice's limits on its own API, counted by its own engine in this process. */
export interface OwnLimits {
  /**
   * Counts a failed log-in. Throws `rate_limited` if there were too many from its address. A good token is accepted all
   * the same: blocking a whole address would let one bad client block every caller behind the same proxy.
   */
  countFailedLogin(from: string): void;
  /**
   * Counts a read or a write of a token, and returns the headers that show how it stands. Throws `rate_limited` if it
   * has none left.
   */
  take(caller: Caller, access: "read" | "write"): Readonly<Record<string, string>>;
}

const policies = {
  policies: [
    { id: "admin-reads", match: { domain: "admin.read" }, limits: [{ by: ["token"], windows: ["1000/m"] }] },
    { id: "admin-writes", match: { domain: "admin.write" }, limits: [{ by: ["token"], windows: ["100/m"] }] },
    { id: "admin-failed-logins", match: { domain: "admin.login" }, limits: [{ by: ["ip"], windows: ["10/m"] }] },
  ],
  default: "none",
};

export function limitOwnApi({ clock }: { readonly clock?: Clock | undefined } = {}): OwnLimits {
  const limiter: Limiter = createLimiter({ policies, ...(clock !== undefined && { clock }) });
  return {
    countFailedLogin(from): void {
      const decision = limiter.checkSync({ domain: "admin.login", dimensions: addressDimensions(from) });
      if (!decision.allowed) throw refusal(decision, "too many log-ins failed from this address; try again later");
    },
    take(caller, access): Readonly<Record<string, string>> {
      const token = caller.tokenId ?? `name ${caller.name}`;
      const decision = limiter.checkSync({ domain: `admin.${access}`, dimensions: { token } });
      if (decision.allowed) return renderHeaders(decision, { lowerCase: true });
      throw refusal(decision, `${caller.name} has no ${access}s left; there are ${decision.limit} a minute`);
    },
  };
}

/** Callers without an address share one limit. */
function addressDimensions(from: string): Readonly<Record<string, string>> {
  return { ip: from === "" ? "0.0.0.0" : from };
}

function refusal(decision: Decision, message: string): RateLimited {
  return new RateLimited(message, renderHeaders(decision, { lowerCase: true }), decision.retryAfterMs);
}
