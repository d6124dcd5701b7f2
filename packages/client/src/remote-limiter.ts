import type { CheckRequest, Limiter } from "sluice";
import type { StoreUnavailableReason } from "sluice/store";
import type { AddressState, AddressStats } from "./guarded-address.ts";
import type { LeaseOptions, RemoteLeasesStats } from "./leases/remote-leases.ts";
import type { LineStats } from "./question-line.ts";
import type { LocalLimits, WhenUnavailable } from "./when-unavailable.ts";

/** Certificates and keys in PEM, as text or as the bytes of a file. */
export interface TlsOptions {
  /** Authorities that issue the servers' certificates. Absent: those that Node trusts. */
  readonly ca?: string | Uint8Array | undefined;
  /** This client's certificate and key, if servers require one. */
  readonly cert?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
  /** The name in the servers' certificates, if it is not the host connected to. */
  readonly serverName?: string | undefined;
}

export interface AddressChange {
  /** `10.0.0.5:8081` */
  readonly address: string;
  readonly state: AddressState;
  readonly why: string;
}

export interface ConnectOptions {
  /** How a check is answered while no server answers. Absent: `open`. */
  readonly whenUnavailable?: WhenUnavailable | undefined;
  /** The local decision, for `local`. */
  readonly local?: LocalLimits | undefined;
  /** How long a check waits at most, 1 ms … 60 s, as policies write it: `25ms`. Absent: 100 ms. */
  readonly deadline?: string | undefined;
  /** The same in milliseconds. */
  readonly deadlineMs?: number | undefined;
  /** A bearer token. Sent to every address, so use TLS or a trusted network. */
  readonly token?: string | undefined;
  /** For `grpcs://` and `https://`. */
  readonly tls?: TlsOptions | undefined;
  /** How many checks may wait to be sent; any beyond that are answered by `whenUnavailable`. Absent: 10 000. */
  readonly maxWaiting?: number | undefined;
  /** When checks of busy subjects are decided locally, by units taken in advance; `false`: never. */
  readonly leases?: false | LeaseOptions | undefined;
  /** Called when an address becomes ready, unavailable, or ready again: for logs. */
  readonly onChange?: ((change: AddressChange) => void) | undefined;
}

export interface RemoteStats extends LineStats {
  /** Checks answered by `whenUnavailable`, by reason. */
  readonly degraded: Readonly<Record<StoreUnavailableReason, number>>;
  readonly addresses: readonly AddressStats[];
  /** Local decisions by leases. */
  readonly leases: RemoteLeasesStats;
}

/**
 * A remote limiter: servers of Sluice decide, by their policies. A check never waits longer than its deadline, and is
 * answered by `whenUnavailable` if no server answered; its `degraded` then says why. It rejects with a `SluiceError`
 * only for mistakes of the caller. `charge`, `give` and `reset`, which no request of the app waits for, have at least a
 * second, and reject with `StoreUnavailable` if no server answered; `reset` needs a token of the role operator.
 */
export interface RemoteLimiter extends Pick<Limiter, "check" | "peek" | "charge" | "give"> {
  /**
   * Resets the counters that this request would use, lifts their blocks, and returns how many those are. 0: nothing was
   * reset, because no policy counts such a request.
   */
  reset(request: CheckRequest): Promise<number>;
  readonly stats: RemoteStats;
  /**
   * Gives back the rest of leases, for which it waits at most a second, then ends every connection. Open questions are
   * answered as if no server could be reached.
   */
  close(): Promise<void>;
}
