import type { AuditQuery, AuditRecord } from "@sluice/sql";
import { SluiceError } from "sluice";
import type { Role } from "../../../data-plane/access/roles.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { hotKeysBody } from "../../../data-plane/transports/http/hot-keys-body.ts";
import type { HotKeysWish } from "../../../observe/hot-keys/merge-hot-keys.ts";
import { answerPage, changeBody } from "../answer.ts";
import { auditBody, killSwitchBody, nodeBody, tokenBody } from "../operation-bodies.ts";
import type { AdminContext, AdminRequest } from "../route.ts";

export async function getKillSwitch({ actor }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return { status: 200, body: killSwitchBody(await control.killSwitch.get(actor)) };
}

export async function putKillSwitch(
  { actor, body, change }: AdminRequest<{ readonly mode: "open" | "closed"; readonly for_ms?: number }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { dryRun, why } = change;
  const changed = await control.killSwitch.on(actor, body.mode, { dryRun, why, forMs: body.for_ms });
  return { status: 200, body: { ...changeBody(changed), kill_switch: killSwitchBody(changed.value) } };
}

export async function deleteKillSwitch(
  { actor, change: { dryRun, why } }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const changed = await control.killSwitch.off(actor, { dryRun, why });
  return { status: 200, body: { ...changeBody(changed), kill_switch: killSwitchBody(changed.value) } };
}

interface AuditParameters extends Omit<AuditQuery, "sinceMs" | "untilMs"> {
  readonly since_ms?: number;
  readonly until_ms?: number;
}

export async function listAudit(
  { actor, query: { since_ms: sinceMs, until_ms: untilMs, ...query }, url }: AdminRequest<undefined, AuditParameters>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return answerPage<AuditRecord>(await control.audit.list(actor, { ...query, sinceMs, untilMs }), auditBody, url);
}

export async function listTokens({ actor }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return { status: 200, body: { items: (await control.tokens.list(actor)).map(tokenBody) } };
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
    body: {
      ...changeBody(changed),
      token: { ...tokenBody(value), token: value.token === "" ? undefined : value.token },
    },
  };
}

export async function deleteToken(
  { actor, params, change: { dryRun, why } }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const changed = await control.tokens.revoke(actor, params.id!, { dryRun, why });
  return { status: 200, body: { ...changeBody(changed), token: tokenBody(changed.value) } };
}

export async function listNodes({ actor }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  const { generation, nodes } = await control.nodes.list(actor);
  return { status: 200, body: { generation, nodes: nodes.map(nodeBody) } };
}

export async function listHotKeys(
  { actor, query }: AdminRequest<undefined, HotKeysWish & { readonly node?: string }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return { status: 200, body: hotKeysBody(await control.nodes.hotKeys(actor, query)) };
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
  if (text === undefined || text === "")
    throw new SluiceError("invalid_request", "the body is empty; it should be a policy file, in YAML or JSON");
  const changed = await control.configuration.import(actor, text, {
    ...change,
    ...(anyVersion && { expected: "any" }),
    mode: query.mode,
  });
  const { generationBefore, ...report } = changed.value;
  return {
    status: 200,
    body: { ...changeBody(changed), import: { ...report, generation_before: generationBefore } },
  };
}
