import type { ChangeBody, Role, TokenBody } from "@sluice/protocol/admin";
import { printable } from "sluice/internal";
import { parseUntil } from "../arguments/parse-time.ts";
import { type ChangeFlags, nothingDone } from "../control/change-flags.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { RefusedRequest } from "../control/refused-request.ts";
import { findReach } from "../control/wait-for-nodes.ts";
import { confirm } from "../terminal/confirm.ts";
import { renderTable } from "../terminal/render-table.ts";
import { renderInstant, renderMoment } from "../terminal/render-time.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";
import { parseHolder } from "./token-make.ts";

export interface NewTokenOptions extends ControlOptions, ChangeFlags {
  readonly name: string;
  readonly role: string;
  readonly team?: string | undefined;
  /** `90d`, `12h`, or a date. Absent: as the control plane sees fit. */
  readonly expires?: string;
}

export interface NewToken {
  readonly name: string;
  readonly role: Role;
  readonly team: string | undefined;
  readonly expiresMs: number | undefined;
}

export function parseNewToken({ name, role, team, expires }: NewTokenOptions, nowMs: number): NewToken {
  const expiresMs = expires === undefined ? undefined : parseUntil("--expires", expires, nowMs);
  return { ...parseHolder({ name, role, team }), expiresMs };
}

/** `sluice token make` in the policy store, by a control plane. */
export async function makeStoredToken(options: NewTokenOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, nowMs } = session;
  const request = parseNewToken(options, nowMs());
  const body = await api.tokens.make(request, { why: options.why, dryRun: options.dryRun });
  const { token = "", expires_ms: expiresMs } = body.token;
  // Printed even if the wait fails: it cannot be printed again.
  const late = !(await isEverywhere(body, session).catch(() => false));
  writeToken({ request, token, expiresMs, body, late }, options, terminal);
  return 0;
}

export interface MadeToken {
  readonly request: NewToken;
  readonly token: string;
  readonly expiresMs: number | undefined;
  /** As the API answers. */
  readonly body: unknown;
  /** Whether some node does not know it yet. */
  readonly late?: boolean;
}

/** The token alone goes to stdout, which is the only time that it is printed. */
export function writeToken(
  { request: { name, role }, token, expiresMs, body, late = false }: MadeToken,
  { json, dryRun }: NewTokenOptions,
  terminal: Terminal,
): void {
  if (json === true) writeJson({ terminal }, body);
  else if (dryRun === true) terminal.stdout.write(`${name} (${role}) could have a token. ${nothingDone}`);
  else {
    const end = expiresMs === undefined ? "for good" : `until ${renderInstant(expiresMs)}`;
    const unknown = late ? ", which not every node knows yet" : "";
    terminal.stderr.write(`${name} (${role}) has a token ${end}${unknown}. It is shown this once:\n\n`);
    terminal.stdout.write(`${token}\n`);
  }
}

const everywhereWithinMs = 5_000;
const lookEveryMs = 100;

/** Who has a token wants to use it, and who revokes one wants to be sure: both wait a moment for the nodes. */
async function isEverywhere({ generation }: ChangeBody, { api, nowMs, sleep }: ControlSession): Promise<boolean> {
  if (generation === undefined) return true;
  const untilMs = nowMs() + everywhereWithinMs;
  for (;;) {
    const { late } = findReach(await api.nodes.list(), generation);
    if (late.length === 0) return true;
    if (nowMs() >= untilMs) return false;
    await sleep(lookEveryMs);
  }
}

export interface TokenListOptions extends ControlOptions {
  /** Also those that were revoked or have ended. */
  readonly all?: boolean;
}

/** `sluice token list` */
export async function listTokens(options: TokenListOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width } = session;
  const all = await api.tokens.list();
  const shown = options.all === true ? all : all.filter((token) => findState(token, nowMs()) === "in use");
  if (json) writeJson(session, { tokens: shown });
  else terminal.stdout.write(renderTokens(shown, nowMs(), width));
  return 0;
}

export function renderTokens(tokens: readonly TokenBody[], nowMs: number, width: number | undefined): string {
  if (tokens.length === 0) return "There is no token in use. --all shows those that were.\n";
  return renderTable(
    [
      { title: "name", flexible: true },
      { title: "role" },
      { title: "team", flexible: true },
      { title: "state" },
      { title: "ends" },
      { title: "last used" },
      { title: "made" },
      { title: "id" },
    ],
    tokens.map((token) => [
      token.name,
      token.role,
      token.team ?? "-",
      findState(token, nowMs),
      renderMoment(token.expires_ms, nowMs),
      token.last_used_ms === undefined ? "never" : renderMoment(token.last_used_ms, nowMs),
      `${renderMoment(token.created_ms, nowMs)} by ${token.created_by}`,
      token.id,
    ]),
    width,
  );
}

function findState({ revoked_ms, expires_ms }: TokenBody, nowMs: number): "in use" | "revoked" | "ended" {
  if (revoked_ms !== undefined) return "revoked";
  return expires_ms !== undefined && expires_ms <= nowMs ? "ended" : "in use";
}

export interface TokenRevokeOptions extends ControlOptions, ChangeFlags {}

/** `sluice token revoke`, by the token's id or by the name of one that is in use. */
export async function revokeToken(
  which: string,
  options: TokenRevokeOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, nowMs } = session;
  const all = await api.tokens.list();
  const token =
    all.find(({ id }) => id === which) ??
    all.find((one) => one.name === which && findState(one, nowMs()) !== "revoked");
  if (token === undefined)
    throw new CommandError(`there is no token ${printable(which)}, by id or by name; sluice token list shows them`, 1);
  const question = `Revoke the token of ${printable(token.name)} (${token.role})? Its callers are refused afterwards.`;
  const harmless = options.yes === true || options.dryRun === true;
  if (!(await confirm({ question, yes: harmless }, terminal))) return 1;
  const done = await api.tokens.revoke(token.id, { why: options.why, dryRun: options.dryRun });
  if (json) writeJson(session, done);
  else terminal.stdout.write(`The token of ${printable(token.name)} is revoked.\n`);
  if (options.dryRun === true) {
    if (!json) terminal.stdout.write(nothingDone);
    return 0;
  }
  const everywhere = await isEverywhere(done, session).catch((error: unknown) => {
    if (!(error instanceof CommandError)) throw error;
    // What is done is done. To a caller that revoked its own token, this says that it is done.
    return error instanceof RefusedRequest && error.body.code === "unauthenticated";
  });
  if (everywhere) return 0;
  terminal.stderr.write("Not every node knows yet; see sluice nodes.\n");
  return 6;
}
