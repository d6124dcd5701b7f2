import {
  auditEntry,
  hotKeys,
  importChange,
  importPlan,
  killSwitch,
  killSwitchChange,
  newToken,
  nodes,
  tokenChange,
  tokenList,
} from "@sluice/protocol/admin";
import type { AuditQuery } from "@sluice/sql";
import { SluiceError } from "sluice";
import type { Role } from "../../../data-plane/access/roles.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { statusBody } from "../../../data-plane/transports/http/status-body.ts";
import type { HotKeysRequest } from "../../../observe/hot-keys/merge-hot-keys.ts";
import { answerPage, changeView, problemBodies } from "../answer.ts";
import type { AdminContext, AdminRequest } from "../route.ts";

export async function getKillSwitch({ actor }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return { status: 200, body: killSwitch.render(await control.killSwitch.get(actor)) };
}

export async function putKillSwitch(
  { actor, body, change }: AdminRequest<{ readonly mode: "open" | "closed"; readonly for_ms?: number }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { dryRun, why } = change;
  const changed = await control.killSwitch.on(actor, body.mode, { dryRun, why, forMs: body.for_ms });
  return { status: 200, body: killSwitchChange.render({ ...changeView(changed), killSwitch: changed.value }) };
}

export async function deleteKillSwitch(
  { actor, change: { dryRun, why } }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const changed = await control.killSwitch.off(actor, { dryRun, why });
  return { status: 200, body: killSwitchChange.render({ ...changeView(changed), killSwitch: changed.value }) };
}

interface AuditParameters extends Omit<AuditQuery, "sinceMs" | "untilMs"> {
  readonly since_ms?: number;
  readonly until_ms?: number;
}

export async function listAudit(
  { actor, query: { since_ms: sinceMs, until_ms: untilMs, ...query }, url }: AdminRequest<undefined, AuditParameters>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return answerPage(await control.audit.list(actor, { ...query, sinceMs, untilMs }), auditEntry.render, url);
}

export async function listTokens({ actor }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return { status: 200, body: tokenList.render({ items: await control.tokens.list(actor) }) };
}

export async function createToken(
  {
    actor,
    body,
    change: { dryRun, why },
  }: AdminRequest<{ readonly name: string; readonly role: Role; readonly team?: string; readonly expires_ms?: number }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { name, role, team, expires_ms: expiresMs } = body;
  const changed = await control.tokens.make(actor, { name, role, team, expiresMs }, { dryRun, why });
  const { value } = changed;
  return {
    status: 201,
    headers: { location: `/api/v1/tokens/${encodeURIComponent(value.id)}` },
    body: newToken.render({ ...changeView(changed), token: value }),
  };
}

export async function deleteToken(
  { actor, params, change: { dryRun, why } }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const changed = await control.tokens.revoke(actor, params.id!, { dryRun, why });
  return { status: 200, body: tokenChange.render({ ...changeView(changed), token: changed.value }) };
}

export async function listNodes({ actor }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return { status: 200, body: nodes.render(await control.nodes.list(actor)) };
}

/** The state of this process, whatever the policy store's is. */
export function getStatus(_request: AdminRequest, { status }: AdminContext): HttpResponse {
  return { status: 200, body: statusBody(status()) };
}

export async function listHotKeys(
  { actor, query }: AdminRequest<undefined, HotKeysRequest & { readonly node?: string }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return { status: 200, body: hotKeys.render(await control.nodes.hotKeys(actor, query)) };
}

export async function exportAll({ actor }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return {
    status: 200,
    headers: { "content-type": "application/yaml; charset=utf-8" },
    body: await control.configuration.export(actor),
  };
}

export async function importAll(
  { actor, yaml: text, query, change, anyVersion }: AdminRequest<unknown, { readonly mode?: "merge" | "replace" }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const changed = await control.configuration.import(actor, demandFile(text), {
    ...change,
    ...(anyVersion && { expected: "any" }),
    mode: query.mode,
  });
  return { status: 200, body: importChange.render({ ...changeView(changed), import: changed.value }) };
}

export async function planImport(
  { actor, yaml: text, query }: AdminRequest<unknown, { readonly mode?: "merge" | "replace" }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { warnings, ...plan } = await control.configuration.plan(actor, demandFile(text), query);
  return { status: 200, body: importPlan.render({ ...plan, warnings: problemBodies(warnings) }) };
}

function demandFile(text: string | undefined): string {
  if (text !== undefined && text !== "") return text;
  throw new SluiceError("invalid_request", "the body is empty; it should be a policy file, in YAML or JSON");
}
