import { makeToken, tokenDigest, tokenName } from "@sluice/protocol/tokens";
import type { PolicyStore, StoreChange, StoreView, TokenRecord } from "@sluice/sql";
import { type Problem, SluiceError } from "sluice";
import { demand, unasked } from "../../data-plane/access/access.ts";
import type { Actor } from "../../data-plane/access/actor.ts";
import { type Role, roles } from "../../data-plane/access/roles.ts";
import { auditEntry, sluiceItself } from "../audit/audit-entry.ts";
import { makeRandomId } from "../audit/make-id.ts";
import type { Changed, ChangeOptions } from "../change.ts";
import { invalidRequest, notFound } from "../control-errors.ts";
import type { NewTokenRequest, TokenControl, TokenView } from "../control-plane.ts";
import { auditRefusals, commit } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";

const kind = "token";
const dayMs = 86_400_000;
const defaultLifeMs = 90 * dayMs;
const maxLifeMs = 731 * dayMs;

/** Tokens that a server makes for a session of the console have names that begin like this, and others may not. */
export const consolePrefix = "console/";
const consoleLifeMs = dayMs / 2;

/** Whether a token of this name was made for a session of the console. */
export function isConsoleToken(name: string): boolean {
  return name.startsWith(consolePrefix);
}

export function createTokenControl(context: ControlContext): TokenControl {
  /** Stores a token with a new secret, which is shown only in the answer. */
  function makeToStore(
    actor: Actor,
    request: NewTokenRequest,
    options: ChangeOptions,
    findWrong: (nowMs: number) => readonly Problem[],
  ): Promise<Changed<TokenView & { readonly token: string }>> {
    const action = { action: "token.make", kind, target: String(request.name), policies: false };
    // Created once, even if the store retries the change.
    const token = makeToken();
    const id = makeRandomId();
    return commit(context, actor, { ...action, permission: "administer" }, options, async (change) => {
      const nowMs = context.nowMs();
      const problems = findWrong(nowMs);
      if (problems.length > 0) throw invalidRequest(problems);
      const record: TokenRecord = {
        id,
        name: request.name,
        role: request.role,
        team: request.team,
        sha256: tokenDigest(token),
        createdMs: nowMs,
        createdBy: actor.caller.name,
        expiresMs: request.expiresMs ?? nowMs + defaultLifeMs,
        revokedMs: undefined,
        lastUsedMs: undefined,
      };
      await change.putToken(record);
      const value = { ...tokenView(record), token: options.dryRun === true ? "" : token };
      return { value, changed: true, audit: [{ after: audited(record) }] };
    });
  }

  return {
    list: (actor) =>
      auditRefusals(context, actor, { action: "token.list", kind, target: "" }, async () => {
        demand(actor.caller, "administer");
        return (await context.store.read((view) => view.tokens())).map(tokenView);
      }),

    make: (actor, request, options = {}) =>
      makeToStore(actor, request, options, (nowMs) => findProblems(request, nowMs)),

    makeForConsole(actor) {
      const name = `${consolePrefix}${makeRandomId().slice(0, 8)}`;
      const request = { name, role: "admin", expiresMs: context.nowMs() + consoleLifeMs } as const;
      return makeToStore(actor, request, { why: "signed in by the link that the server printed" }, () => []);
    },

    revoke(actor, id, options = {}) {
      const request = { permission: "administer" as const, action: "token.revoke", kind, target: id, policies: false };
      return commit(context, actor, request, options, async (change) => {
        const before = await change.token(id);
        if (before === undefined) throw notFound(`token ${id}`);
        if (before.revokedMs !== undefined) return { value: tokenView(before), changed: false };
        const nowMs = context.nowMs();
        const isLast = isUsableAdmin(before, nowMs) && (await usableAdmins(change, nowMs)).length === 1;
        if (isLast)
          throw new SluiceError(
            "permission_denied",
            `${before.name} is the last token of role admin that can be used; make another one first`,
          );
        const after: TokenRecord = { ...before, revokedMs: nowMs };
        await change.putToken(after);
        // By name, so that the whole history of a token is found together.
        const audit = { target: before.name, before: audited(before), after: audited(after) };
        return { value: tokenView(after), changed: true, audit: [audit] };
      });
    },
  };
}

/** The token itself is returned only here. */
export interface FirstToken extends TokenView {
  readonly token: string;
}

export interface FirstTokenOptions {
  readonly nowMs?: () => number;
  readonly name?: string;
  /** The token, which must be new to the store. Absent: one is made. */
  readonly token?: string;
}

/**
 * Creates a token of role admin if none is usable: at the very first start, or when the last one has expired. Of
 * several nodes that start at once, one gets it; the others get undefined, and so does every later call.
 */
export async function ensureFirstToken(
  store: Pick<PolicyStore, "read" | "change">,
  { nowMs = Date.now, name = "admin", token = makeToken() }: FirstTokenOptions = {},
): Promise<FirstToken | undefined> {
  // Most starts only read.
  if (await store.read(async (view) => (await usableAdmins(view, nowMs())).length > 0)) return undefined;
  const id = makeRandomId();
  return store.change(async (change) => {
    const atMs = nowMs();
    if ((await usableAdmins(change, atMs)).length > 0) return undefined;
    const record: TokenRecord = {
      id,
      name: (await isNameTaken(change, name)) ? `${name}-${id.slice(0, 8)}` : name,
      role: "admin",
      team: undefined,
      sha256: tokenDigest(token),
      createdMs: atMs,
      createdBy: sluiceItself.caller.name,
      expiresMs: atMs + defaultLifeMs,
      revokedMs: undefined,
      lastUsedMs: undefined,
    };
    await change.putToken(record);
    const generation = await change.nextGeneration();
    const action = { action: "token.make", kind, target: record.name };
    const why = "no token of role admin could be used";
    const details = { outcome: "done" as const, why, after: audited(record), generation };
    await change.addAudit(auditEntry(sluiceItself, action, details, atMs));
    return { ...tokenView(record), token };
  });
}

async function isNameTaken(change: StoreChange, name: string): Promise<boolean> {
  return (await change.tokens()).some((token) => token.name === name && token.revokedMs === undefined);
}

async function usableAdmins(view: Pick<StoreView, "tokens">, nowMs: number): Promise<readonly TokenRecord[]> {
  return (await view.tokens()).filter((token) => isUsableAdmin(token, nowMs));
}

/** Whether it has the role admin and is usable. A session of the console does not count, because it ends within hours. */
export function isUsableAdmin({ name, role, revokedMs, expiresMs }: TokenRecord, nowMs: number): boolean {
  return (
    role === "admin" &&
    !isConsoleToken(name) &&
    revokedMs === undefined &&
    (expiresMs === undefined || expiresMs > nowMs)
  );
}

/** The audit uses these names for automatic actions, and for requests without a token. */
const notNames: ReadonlySet<string> = new Set([sluiceItself.caller.name, unasked.name]);

function findProblems({ name, role, team, expiresMs }: NewTokenRequest, nowMs: number): readonly Problem[] {
  const problems: Problem[] = [];
  const note = (field: string, message: string): unknown => problems.push({ path: [field], message });
  const form = "1 to 64 letters, digits or . _ @ : / -";
  if (typeof name !== "string" || !tokenName.test(name)) note("name", `must be ${form}`);
  else if (isConsoleToken(name)) note("name", `must not begin with ${consolePrefix}, which is for sessions`);
  else if (notNames.has(name)) note("name", "is reserved by the audit for actors without a token; choose another");
  if (!roles.includes(role)) note("role", `must be one of ${roles.join(", ")}`);
  if (role === "editor" && team === undefined) note("team", "is missing: an editor changes the policies of one team");
  if (role !== "editor" && team !== undefined)
    note("team", "is for editors alone; every other role is for all policies");
  if (team !== undefined && (typeof team !== "string" || !tokenName.test(team))) note("team", `must be ${form}`);
  if (expiresMs !== undefined && !(Number.isSafeInteger(expiresMs) && expiresMs > nowMs))
    note("expires_ms", "must be in the future, in whole milliseconds since 1970");
  else if (expiresMs !== undefined && expiresMs > nowMs + maxLifeMs)
    note("expires_ms", "must be within two years from now");
  return problems;
}

/** A token, without its secret and digest. */
export function tokenView({ sha256: _, ...record }: TokenRecord): TokenView {
  return { ...record, role: record.role as Role };
}

function audited({ id, name, role, team, expiresMs, revokedMs }: TokenRecord): unknown {
  return { id, name, role, team, expires_ms: expiresMs, revoked_ms: revokedMs };
}
