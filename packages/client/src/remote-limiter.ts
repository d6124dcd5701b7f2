import type { CheckRequest, Limiter, StoreUnavailableReason } from "sluice";
import type { AddressState, AddressStats } from "./guarded-address.ts";
import type { LeaseOptions, RemoteLeasesStats } from "./leases/remote-leases.ts";
import type { LineStats } from "./question-line.ts";
import type { LocalLimits, WhenUnavailable } from "./when-unavailable.ts";

/** Certificates and keys in PEM, as text or as the bytes of a file. */
export interface TlsOptions {
  /** Authorities that vouch for the servers. Absent: those that Node knows. */
  readonly ca?: string | Uint8Array | undefined;
  /** Who we are, where servers want to know: a certificate and its key. */
  readonly cert?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
  /** The name that the servers' certificates must have, where that is not the host connected to. */
  readonly serverName?: string | undefined;
}

export interface AddressChange {
  /** `10.0.0.5:8081` */
  readonly address: string;
  readonly state: AddressState;
  readonly why: string;
}

export interface ConnectOptions {
  /** What answers a check while no server does. Absent: `open`. */
  readonly whenUnavailable?: WhenUnavailable | undefined;
  /** What decides where that is `local`. */
  readonly local?: LocalLimits | undefined;
  /** How long a check waits at most, 1 ms … 60 s, as policies write it: `25ms`. Absent: 100 ms. */
  readonly deadline?: string | undefined;
  /** The same in milliseconds. */
  readonly deadlineMs?: number | undefined;
  /** Says who we are, as a bearer token. Sent to every address, so send it by TLS or where nobody listens. */
  readonly token?: string | undefined;
  /** For `grpcs://` and `https://`. */
  readonly tls?: TlsOptions | undefined;
  /** How many checks may wait to be sent; what comes beyond that is answered by `whenUnavailable`. Absent: 10 000. */
  readonly maxWaiting?: number | undefined;
  /** From when on checks of busy subjects are decided here, by units that were taken in advance; `false`: never. */
  readonly leases?: false | LeaseOptions | undefined;
  /** Told when an address can be asked, cannot, or can again: for logs. */
  readonly onChange?: ((change: AddressChange) => void) | undefined;
}

export interface RemoteStats extends LineStats {
  /** Checks that were answered by `whenUnavailable`, by why. */
  readonly degraded: Readonly<Record<StoreUnavailableReason, number>>;
  readonly addresses: readonly AddressStats[];
  /** What was decided here by leases. */
  readonly leases: RemoteLeasesStats;
}

/**
 * A limiter that is elsewhere: servers of Sluice decide, by their policies. A check never waits longer than its deadline, and is
 * answered by `whenUnavailable` where no server did; its `degraded` then says why. It rejects with a `SluiceError` only for what
 * the caller got wrong. `charge`, `give` and `reset`, which nobody's request waits for, have a second at least, and reject with
 * `StoreUnavailable` where no server answered; `reset` needs a token of the role operator.
 */
export interface RemoteLimiter extends Pick<Limiter, "check" | "peek" | "charge" | "give"> {
  /**
   * Resets the counters that this request would be counted in, lifts their blocks, and answers how many those are. 0: nothing was
   * reset, because no policy counts such a request.
   */
  reset(request: CheckRequest): Promise<number>;
  readonly stats: RemoteStats;
  /**
   * Gives back what is left of leases, for which it waits a second at most, then ends every connection. What is still open is
   * answered as if no server could be reached.
   */
  close(): Promise<void>;
}
