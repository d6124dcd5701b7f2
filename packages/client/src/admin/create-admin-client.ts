import { type AdminClientOptions, AdminRequests } from "./admin-requests.ts";
import { AdminAudit } from "./audit.ts";
import { AdminConfiguration } from "./configuration.ts";
import { AdminDenials } from "./denials.ts";
import { AdminKillSwitch } from "./kill-switch.ts";
import { AdminNodes } from "./nodes.ts";
import { AdminPlans } from "./plans.ts";
import { AdminPolicies } from "./policies.ts";
import { AdminRecordings } from "./recordings.ts";
import { AdminRollouts } from "./rollouts.ts";
import { AdminSession } from "./session.ts";
import { AdminSimulations } from "./simulations.ts";
import { AdminSubjects } from "./subjects.ts";
import { AdminTokens } from "./tokens.ts";
import { AdminUsage } from "./usage.ts";

/** Everything that a control plane does, one method per operation of its REST API. */
export interface AdminClient {
  /** Scheme, host and port of the control plane. */
  readonly server: string;
  readonly policies: AdminPolicies;
  readonly plans: AdminPlans;
  readonly rollouts: AdminRollouts;
  readonly subjects: AdminSubjects;
  readonly killSwitch: AdminKillSwitch;
  readonly audit: AdminAudit;
  readonly usage: AdminUsage;
  readonly denials: AdminDenials;
  readonly tokens: AdminTokens;
  readonly nodes: AdminNodes;
  readonly configuration: AdminConfiguration;
  readonly session: AdminSession;
  readonly recordings: AdminRecordings;
  readonly simulations: AdminSimulations;
}

/**
 * A client of a control plane: `createAdminClient({ server: "https://sluice.example:8090", token })`. Opens no connection before
 * the first call, and keeps none after it, so there is nothing to close. Throws a `TypeError` for a URL or a token that cannot be
 * used. Calls reject with an `AdminError` if they are refused, and with an `AdminUnavailable` if there is no answer.
 */
export function createAdminClient(options: AdminClientOptions): AdminClient {
  const requests = new AdminRequests(options);
  return {
    server: requests.server.origin,
    policies: new AdminPolicies(requests),
    plans: new AdminPlans(requests),
    rollouts: new AdminRollouts(requests),
    subjects: new AdminSubjects(requests),
    killSwitch: new AdminKillSwitch(requests),
    audit: new AdminAudit(requests),
    usage: new AdminUsage(requests),
    denials: new AdminDenials(requests),
    tokens: new AdminTokens(requests),
    nodes: new AdminNodes(requests),
    configuration: new AdminConfiguration(requests),
    session: new AdminSession(requests),
    recordings: new AdminRecordings(requests),
    simulations: new AdminSimulations(requests),
  };
}
