import type { CheckRequest, Limiter } from "sluice";
import type { ResetCounter } from "sluice/internal";
import type { Decide } from "../../decide.ts";
import type { OwnHotKeys } from "../../observe/hot-keys/own-hot-keys.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { Metrics } from "../../observe/telemetry/metrics.ts";
import type { Tracing } from "../../observe/telemetry/tracing.ts";
import type { Access, Caller } from "../access/access.ts";
import type { Actor } from "../access/actor.ts";
import type { CountersStatus } from "../counters/running-counters.ts";
import type { PolicyStatus } from "../policy-files/policy-reloader.ts";
import type { ServerStatus } from "../status/server-status.ts";
import type { StoreReport } from "../status/store-report.ts";
import type { Audit } from "./audit.ts";
import type { ServedHolds } from "./create-holds.ts";
import type { GrantLease } from "./lease.ts";

/**
 * What every transport is built on, and all that it knows of Sluice: plain data in, plain data out, `SluiceError` for
 * the caller's mistakes. The transports' tables check permissions (`demand`); nothing here knows about bytes.
 */
export interface Service {
  readonly decide: Decide;
  readonly limiter: Pick<Limiter, "explain" | "forced" | "peek" | "charge" | "give" | "snapshot" | "findBlocks">;
  /** Charges unconditionally. A cost below 0 is a credit, which needs that permission. */
  charge(request: CheckRequest, caller: Caller): Promise<void>;
  /** Forgets the counters of a request. The log says who asked for it, and so does the audit if there is one. */
  reset(request: CheckRequest, actor: Actor): Promise<readonly ResetCounter[]>;
  readonly lease: GrantLease;
  readonly holds: ServedHolds;
  readonly access: Access;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** False as soon as the server is asked to stop. */
  readonly accepting: () => boolean;
  readonly policyStatus: () => PolicyStatus;
  /** Undefined if counters are in this process's memory. */
  readonly countersStatus: () => CountersStatus | undefined;
  /** Undefined without a policy store. */
  readonly storeStatus?: (() => StoreReport | undefined) | undefined;
  /** Which counters are asked for most here. */
  readonly hotKeys: OwnHotKeys;
  /** The whole state of this server. */
  readonly status: () => ServerStatus;
  /** Undefined without a policy store. */
  readonly audit?: Audit | undefined;
  /** Undefined if traces go nowhere, which costs nothing then. */
  readonly tracing?: Tracing | undefined;
  readonly version: string;
}
