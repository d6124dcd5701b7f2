// Long because it is a table: an example of every route, over objects of every kind.
import type { AdminRoute } from "../route.ts";
import { applyStored, createRoleActor, type StartedAdmin, team, tokenForRole } from "./start-admin.ts";

/** A request that a route serves, given the objects that `prepareExamples` stored. */
export interface RouteExample {
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Parameters of the query, without those that every change has. */
  readonly query?: Readonly<Record<string, string>>;
}

/** An example for each route, by its method and path. */
export type RouteExamples = Readonly<Record<string, RouteExample>>;

export function exampleKey({ method, path }: Pick<AdminRoute, "method" | "path">): string {
  return `${method} ${path}`;
}

export function limitPolicy(id: string, perMinute: number): Readonly<Record<string, unknown>> {
  return {
    id,
    owner: team,
    match: { endpoint: `/${id}` },
    limits: [{ by: ["user"], windows: [`${perMinute}/m`], tiers: { premium: { windows: ["900/m"] } } }],
  };
}

/**
 * Stores a few objects of every kind, and returns for each route a request that it serves. A server records one thing at a time, so a
 * recording runs only for the route that ends it.
 */
export async function prepareExamples(admin: StartedAdmin, key?: string): Promise<RouteExamples> {
  const actor = createRoleActor("admin");
  const { policies, rollouts, subjects, tokens } = admin.control;
  await policies.put(actor, "orders", limitPolicy("orders", 10), { expected: 0 });
  await policies.put(actor, "orders", limitPolicy("orders", 20), { expected: 1, why: "more room" });
  const startExampleRollout = async (id: string): Promise<string> => {
    await policies.put(actor, id, limitPolicy(id, 10), { expected: 0 });
    const steps = [
      { percent: 10, holdMs: 0 },
      { percent: 100, holdMs: 0 },
    ];
    const { value } = await policies.put(actor, id, limitPolicy(id, 20), {
      expected: 1,
      rollout: { steps, observeForMs: 0 },
    });
    return value.rollout!.id;
  };
  const rule = {
    owner: team,
    match: { endpoint: "/spare", user: "*" },
    limits: [{ by: ["user"], algorithm: "token_bucket", windows: ["10/m"] }],
  };
  await policies.put(actor, "spare", rule, { expected: 0 });
  const underway = await startExampleRollout("search");
  const paused = await startExampleRollout("browse");
  await rollouts.pause(actor, paused);
  const untilMs = Date.now() + 3_600_000;
  await subjects.setTier(actor, "user", "u1", "premium");
  await subjects.setLimit(actor, "user", "u1", { policy: "orders", windows: ["77/m"] });
  const override = { policy: "search", windows: ["88/m"], untilMs };
  await subjects.setLimit(actor, "user", "u1", override);
  const { value: subject } = await subjects.block(actor, "user", "u1", { untilMs }, { why: "an example" });
  await admin.control.disabling.disable(actor, "search", { why: "an example" });
  const { value } = await admin.control.plans.put(actor, "spare", [{ policy: "orders", windows: ["6/m"] }]);
  const { plan } = value;
  await admin.control.killSwitch.on(actor, "open", { why: "an example" });
  const { value: token } = await tokens.make(actor, { name: "spare", role: "viewer" });
  const { id: recording } = await admin.control.recordings.start(actor, {});
  if (key !== "POST /api/v1/recordings/{id}/stop") await admin.control.recordings.stop(actor, recording);
  const simulated = {
    source: { log: '203.0.113.7 - - [31/Jan/2026:12:00:00 +0000] "GET /orders HTTP/1.1" 200 17 "-" "-"' },
    candidate: { file: "policies: [{ id: api, limits: [{ by: [ip], windows: [5/m] }] }]" },
  };
  // A thread, which is started only for the routes that show it.
  const needsSimulation = key === undefined || key.includes("/simulations");
  const simulation = needsSimulation
    ? (await admin.control.simulations.create(createRoleActor("editor"), simulated)).id
    : "none";
  await applyStored(admin);
  const u1 = "/api/v1/subjects/user/u1";
  const steer = { body: { why: "an example" } };
  const seen = { headers: { "if-match": `"${subject.version}"` } };
  return {
    "GET /api/v1/policies": { path: "/api/v1/policies", query: { owner: team } },
    "POST /api/v1/policies": { path: "/api/v1/policies", body: limitPolicy("fresh", 5) },
    "POST /api/v1/policies/validate": { path: "/api/v1/policies/validate", body: limitPolicy("fresh", 5) },
    "POST /api/v1/explain": {
      path: "/api/v1/explain",
      body: { dimensions: { user: "u1", endpoint: "/orders" }, cost: 2 },
    },
    "GET /api/v1/policies/{id}": { path: "/api/v1/policies/orders" },
    "PUT /api/v1/policies/{id}": {
      path: "/api/v1/policies/orders",
      headers: { "if-match": '"3"' },
      body: { document: limitPolicy("orders", 30), why: "an example" },
    },
    "DELETE /api/v1/policies/{id}": { path: "/api/v1/policies/spare", headers: { "if-match": '"1"' } },
    "GET /api/v1/policies/{id}/versions": { path: "/api/v1/policies/orders/versions" },
    "GET /api/v1/policies/{id}/versions/{version}": { path: "/api/v1/policies/orders/versions/1" },
    "GET /api/v1/policies/{id}/diff": { path: "/api/v1/policies/orders/diff", query: { from: "1", to: "2" } },
    "POST /api/v1/policies/{id}/revert": {
      path: "/api/v1/policies/orders/revert",
      body: { version: 1, expected_version: 3 },
    },
    "GET /api/v1/disabled": { path: "/api/v1/disabled" },
    "PUT /api/v1/policies/{id}/disable": {
      path: "/api/v1/policies/orders/disable",
      body: { mode: "shadow", for_ms: 60_000, why: "an example" },
    },
    "DELETE /api/v1/policies/{id}/disable": { path: "/api/v1/policies/search/disable", query: { why: "over" } },
    "GET /api/v1/plans": { path: "/api/v1/plans" },
    "GET /api/v1/plans/{name}": { path: "/api/v1/plans/premium" },
    "PUT /api/v1/plans/{name}": {
      path: "/api/v1/plans/trial",
      body: { limits: [{ policy: "orders", limit: "user", windows: ["5/m"] }], why: "an example" },
    },
    "DELETE /api/v1/plans/{name}": { path: "/api/v1/plans/spare", headers: { "if-match": `"${plan.version}"` } },
    "GET /api/v1/rollouts": { path: "/api/v1/rollouts", query: { state: "running,paused" } },
    "GET /api/v1/rollouts/{id}": { path: `/api/v1/rollouts/${underway}` },
    "GET /api/v1/rollouts/{id}/minutes": { path: `/api/v1/rollouts/${underway}/minutes` },
    "POST /api/v1/rollouts/{id}/advance": { path: `/api/v1/rollouts/${underway}/advance`, ...steer },
    "POST /api/v1/rollouts/{id}/pause": { path: `/api/v1/rollouts/${underway}/pause`, ...steer },
    "POST /api/v1/rollouts/{id}/resume": { path: `/api/v1/rollouts/${paused}/resume` },
    "POST /api/v1/rollouts/{id}/finish": { path: `/api/v1/rollouts/${underway}/finish` },
    "POST /api/v1/rollouts/{id}/roll-back": { path: `/api/v1/rollouts/${underway}/roll-back`, ...steer },
    "GET /api/v1/subjects/{kind}": { path: "/api/v1/subjects/user" },
    "GET /api/v1/subjects/{kind}/{id}": { path: u1 },
    "DELETE /api/v1/subjects/{kind}/{id}": { path: u1, ...seen },
    "PUT /api/v1/subjects/{kind}/{id}/tier": { path: `${u1}/tier`, ...seen, body: { tier: "free" } },
    "DELETE /api/v1/subjects/{kind}/{id}/tier": { path: `${u1}/tier`, headers: { "if-match": "*" } },
    "PUT /api/v1/subjects/{kind}/{id}/limits": {
      path: `${u1}/limits`,
      ...seen,
      body: { policy: "orders", windows: ["99/m"] },
    },
    "DELETE /api/v1/subjects/{kind}/{id}/limits": { path: `${u1}/limits`, ...seen, query: { policy: "orders" } },
    "PUT /api/v1/subjects/{kind}/{id}/override": {
      path: `${u1}/override`,
      body: { policy: "browse", windows: ["99/m"], for_ms: 3_600_000, why: "an example" },
    },
    "DELETE /api/v1/subjects/{kind}/{id}/override": { path: `${u1}/override`, ...seen, query: { policy: "search" } },
    "PUT /api/v1/subjects/{kind}/{id}/block": {
      path: "/api/v1/subjects/user/u2/block",
      body: { policies: ["orders"], for_ms: 3_600_000, why: "an example" },
    },
    "DELETE /api/v1/subjects/{kind}/{id}/block": { path: `${u1}/block`, ...seen },
    "GET /api/v1/subjects/{kind}/{id}/usage": { path: `${u1}/usage` },
    "POST /api/v1/subjects/{kind}/{id}/reset": { path: `${u1}/reset`, body: { policy: "orders" } },
    "GET /api/v1/kill-switch": { path: "/api/v1/kill-switch" },
    "PUT /api/v1/kill-switch": {
      path: "/api/v1/kill-switch",
      body: { mode: "closed", for_ms: 60_000, why: "an example" },
    },
    "DELETE /api/v1/kill-switch": { path: "/api/v1/kill-switch", query: { why: "over" } },
    "GET /api/v1/audit": { path: "/api/v1/audit", query: { kind: "policy", target: "orders" } },
    "GET /api/v1/usage": { path: "/api/v1/usage", query: { dimension: "tenant", group_by: "policy,subject" } },
    "GET /api/v1/usage/events": { path: "/api/v1/usage/events", query: { policy: "orders", subject: "acme" } },
    "GET /api/v1/denials": { path: "/api/v1/denials", query: { dimension: "tenant", subject: "acme" } },
    "POST /api/v1/session": {
      path: "/api/v1/session",
      headers: { "x-sluice-console": "1" },
      body: { token: tokenForRole("viewer") },
    },
    "GET /api/v1/session": { path: "/api/v1/session" },
    "DELETE /api/v1/session": { path: "/api/v1/session", headers: { "x-sluice-console": "1" } },
    "POST /api/v1/session/codes": { path: "/api/v1/session/codes" },
    "GET /api/v1/policy-summaries": { path: "/api/v1/policy-summaries", query: { search: "ORD", limit: "10" } },
    "GET /api/v1/usage/top": { path: "/api/v1/usage/top", query: { dimension: "tenant", by: "denied" } },
    "GET /api/v1/subjects": { path: "/api/v1/subjects", query: { prefix: "u", dimension: "user" } },
    "GET /api/v1/live/overview": { path: "/api/v1/live/overview" },
    "GET /api/v1/live/decisions": { path: "/api/v1/live/decisions", query: { policy: "orders", allowed: "false" } },
    "GET /api/v1/live/changes": { path: "/api/v1/live/changes", query: { with: "overview,decisions" } },
    "GET /api/v1/recordings": { path: "/api/v1/recordings" },
    "POST /api/v1/recordings": { path: "/api/v1/recordings", body: { for_ms: 60_000, why: "an example" } },
    "GET /api/v1/recordings/{id}": { path: `/api/v1/recordings/${recording}` },
    "POST /api/v1/recordings/{id}/stop": { path: `/api/v1/recordings/${recording}/stop`, body: { why: "an example" } },
    "DELETE /api/v1/recordings/{id}": { path: `/api/v1/recordings/${recording}` },
    "GET /api/v1/simulations": { path: "/api/v1/simulations" },
    "POST /api/v1/simulations": { path: "/api/v1/simulations", body: simulated },
    "GET /api/v1/simulations/{id}": { path: `/api/v1/simulations/${simulation}` },
    "DELETE /api/v1/simulations/{id}": { path: `/api/v1/simulations/${simulation}` },
    "GET /api/v1/tokens": { path: "/api/v1/tokens" },
    "POST /api/v1/tokens": { path: "/api/v1/tokens", body: { name: "ci", role: "editor", team } },
    "DELETE /api/v1/tokens/{id}": { path: `/api/v1/tokens/${token.id}` },
    "GET /api/v1/nodes": { path: "/api/v1/nodes" },
    "GET /api/v1/status": { path: "/api/v1/status" },
    "GET /api/v1/hot-keys": { path: "/api/v1/hot-keys", query: { by: "denials", count: "5" } },
    "GET /api/v1/export": { path: "/api/v1/export" },
    "POST /api/v1/import": {
      path: "/api/v1/import",
      headers: { "content-type": "application/yaml" },
      body: "policies:\n  - id: imported\n    match: { endpoint: /imported }\n    limits: [{ by: [user], windows: [5/m] }]\n",
    },
    "POST /api/v1/import/plan": {
      path: "/api/v1/import/plan",
      headers: { "content-type": "application/yaml" },
      body: "policies:\n  - id: planned\n    match: { endpoint: /planned }\n    limits: [{ by: [user], windows: [5/m] }]\n",
    },
    ...ruleExamples("/api/v1/rules", { dimension: "user", endpoint_pattern: "/rules", limit: 5, window_seconds: 60 }),
    ...ruleExamples("/rules", { scope: "user", api: "/rules", max_requests: 5, window_seconds: 60 }),
    "GET /api/v1/users/{user_id}/limits": { path: "/api/v1/users/u1/limits" },
    "PUT /api/v1/users/{user_id}/tier": { path: "/api/v1/users/u1/tier", body: { tier: "free" } },
    "POST /api/v1/users/{user_id}/override": {
      path: "/api/v1/users/u1/override",
      body: { rule_id: "search", limit: 99, window_seconds: 60, duration_seconds: 3_600, reason: "an example" },
    },
    "GET /livez": { path: "/livez" },
    "GET /readyz": { path: "/readyz" },
    "GET /openapi.json": { path: "/openapi.json" },
  };
}

/** Examples of rules in one of the two vocabularies, over the policy `spare`. */
function ruleExamples(path: string, rule: Readonly<Record<string, unknown>>): RouteExamples {
  const one = `${path}/spare`;
  const headers = { "if-match": '"1"' };
  return {
    [`GET ${path}`]: { path },
    [`POST ${path}`]: { path, body: { rule_id: "ruled", ...rule } },
    [`GET ${path}/{rule_id}`]: { path: one },
    [`PUT ${path}/{rule_id}`]: { path: one, headers, body: rule },
    [`DELETE ${path}/{rule_id}`]: { path: one, headers },
  };
}

/** Path and query of an example; with `dryRun`, as a dry run. */
export function renderExampleUrl({ path, query = {} }: RouteExample, dryRun: boolean): string {
  const parameters = new URLSearchParams({ ...query, ...(dryRun && { dry_run: "true" }) });
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}
