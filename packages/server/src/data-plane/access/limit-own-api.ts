import { type Clock, createLimiter, type Decision, type Limiter, renderHeaders } from "sluice";
import type { Caller } from "./access.ts";
import { RateLimited } from "./rate-limited.ts";

/** Sluice's limits on its own API, counted by its own engine in this process. */
export interface OwnLimits {
  /**
   * Counts a log-in that failed. Throws `rate_limited` where there were too many from its address. Who has a good token is
   * let in all the same: locking out a whole address would let one bad client lock out everybody behind the same proxy.
   */
  countFailedLogin(from: string): void;
  /** Counts a read or a write of a token; the headers that tell how it stands. Throws `rate_limited` where it has no more. */
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
      const decision = limiter.checkSync({ domain: "admin.login", dimensions: dimensionsOf(from) });
      if (!decision.allowed) throw refusal(decision, "too many log-ins failed from this address; come back later");
    },
    take(caller, access): Readonly<Record<string, string>> {
      const token = caller.tokenId ?? `name ${caller.name}`;
      const decision = limiter.checkSync({ domain: `admin.${access}`, dimensions: { token } });
      if (decision.allowed) return renderHeaders(decision, { lowerCase: true });
      throw refusal(decision, `${caller.name} has no more ${access}s now; there are ${decision.limit} a minute`);
    },
  };
}

/** Whoever has no address shares one limit. */
function dimensionsOf(from: string): Readonly<Record<string, string>> {
  return { ip: from === "" ? "0.0.0.0" : from };
}

function refusal(decision: Decision, message: string): RateLimited {
  return new RateLimited(message, renderHeaders(decision, { lowerCase: true }), decision.retryAfterMs);
}
