import type { CheckRequest, Limiter, ResetCounter } from "sluice";
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
import type { Lease } from "./lease.ts";

/**
 * What every transport stands on, and all that it knows of Sluice: plain data in, plain data out, `SluiceError` for what a
 * caller got wrong. Who may do what is asked by the transports' tables (`demand`); nothing here knows of bytes.
 */
export interface Service {
  readonly decide: Decide;
  readonly limiter: Pick<Limiter, "explain" | "forced" | "peek" | "charge" | "give" | "snapshot">;
  /** Charges without asking. A cost below 0 is a credit, which needs the permission for that. */
  charge(request: CheckRequest, caller: Caller): Promise<void>;
  /** Forgets the counters of a request. Who wanted it is in the log, and in the audit where there is one. */
  reset(request: CheckRequest, actor: Actor): Promise<readonly ResetCounter[]>;
  readonly lease: Lease;
  readonly access: Access;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** False from the moment the server is told to stop. */
  readonly accepting: () => boolean;
  readonly policyStatus: () => PolicyStatus;
  /** Undefined where counters are in this process's memory. */
  readonly countersStatus: () => CountersStatus | undefined;
  /** Undefined where there is no policy store. */
  readonly storeStatus?: (() => StoreReport | undefined) | undefined;
  /** Which counters are asked for most here. */
  readonly hotKeys: OwnHotKeys;
  /** Everything that there is to say of how this server stands. */
  readonly status: () => ServerStatus;
  /** Undefined without a policy store. */
  readonly audit?: Audit | undefined;
  /** Undefined where traces go nowhere, which costs nothing then. */
  readonly tracing?: Tracing | undefined;
  readonly version: string;
}
