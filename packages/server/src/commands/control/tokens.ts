import { roles } from "../../access/roles.ts";
import { CommandError, type ExitCode } from "../terminal.ts";
import { demandTeam } from "../token-make.ts";
import type { ChangeBody, TokenBody } from "./admin-bodies.ts";
import { type ChangeFlags, nothingDone } from "./change-flags.ts";
import { confirm } from "./confirm.ts";
import type { ControlOptions, ControlSession } from "./control-session.ts";
import { parseUntil } from "./parse-time.ts";
import { plainText } from "./plain-text.ts";
import { renderInstant, renderMoment } from "./render-moment.ts";
import { renderTable } from "./render-table.ts";
import { reachOf } from "./wait-for-nodes.ts";
import { writeJson } from "./write-json.ts";

export interface TokenWishOptions extends ControlOptions, ChangeFlags {
  readonly name: string;
  readonly role: string;
  readonly team?: string;
  /** `90d`, `12h`, or a date. Absent: as the control plane sees fit. */
  readonly expires?: string;
}

/** `sluice token make` in the policy store: the token alone goes to stdout, which is the only time that it is told. */
export async function makeStoredToken(options: TokenWishOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, nowMs } = session;
  const { name, team, expires } = options;
  const role = roles.find((one) => one === options.role);
  if (role === undefined)
    throw new CommandError(`--role: ${JSON.stringify(options.role)} should be one of ${roles.join(", ")}`);
  demandTeam(role, team);
  const wish = {
    name,
    role,
    team,
    expires_ms: expires === undefined ? undefined : parseUntil("--expires", expires, nowMs()),
  };
  const { token, ...change } = await api.makeToken(wish, { why: options.why, dryRun: options.dryRun });
  if (options.dryRun === true) {
    if (json) writeJson(session, { ...change, token });
    else terminal.stdout.write(`${plainText(name)} (${role}) could have a token. ${nothingDone}`);
    return 0;
  }
  // Told whatever becomes of the wait: it cannot be told again.
  const everywhere = await isEverywhere(change, session).catch(() => false);
  if (json) {
    writeJson(session, { ...change, token });
    return 0;
  }
  const end = token.expires_ms === undefined ? "for good" : `until ${renderInstant(token.expires_ms)}`;
  terminal.stderr.write(
    `${plainText(name)} (${role}) has a token ${end}${everywhere ? "" : ", which not every node knows yet"}. It is shown this once:\n\n`,
  );
  terminal.stdout.write(`${token.token}\n`);
  return 0;
}

const everywhereWithinMs = 5_000;
const lookEveryMs = 100;

/** Who has a token wants to use it, and who revokes one wants to be sure: both wait a moment for the nodes. */
async function isEverywhere({ generation }: ChangeBody, { api, nowMs, sleep }: ControlSession): Promise<boolean> {
  if (generation === undefined) return true;
  const untilMs = nowMs() + everywhereWithinMs;
  for (;;) {
    const { late } = reachOf(await api.nodes(), generation);
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
  const all = await api.tokens();
  const shown = options.all === true ? all : all.filter((token) => stateOf(token, nowMs()) === "in use");
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
      stateOf(token, nowMs),
      renderMoment(token.expires_ms, nowMs),
      token.last_used_ms === undefined ? "never" : renderMoment(token.last_used_ms, nowMs),
      `${renderMoment(token.created_ms, nowMs)} by ${token.created_by}`,
      token.id,
    ]),
    width,
  );
}

function stateOf({ revoked_ms, expires_ms }: TokenBody, nowMs: number): "in use" | "revoked" | "ended" {
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
  const all = await api.tokens();
  const token =
    all.find(({ id }) => id === which) ?? all.find((one) => one.name === which && stateOf(one, nowMs()) !== "revoked");
  if (token === undefined)
    throw new CommandError(`there is no token ${which}, by id or by name; sluice token list shows them`, 1);
  const question = `Revoke the token of ${plainText(token.name)} (${token.role})? Who uses it is refused from then on.`;
  const harmless = options.yes === true || options.dryRun === true;
  if (!(await confirm({ question, yes: harmless }, terminal))) return 1;
  const done = await api.revokeToken(token.id, { why: options.why, dryRun: options.dryRun });
  if (json) writeJson(session, done);
  else terminal.stdout.write(`The token of ${plainText(token.name)} is revoked.\n`);
  if (options.dryRun === true) {
    if (!json) terminal.stdout.write(nothingDone);
    return 0;
  }
  if (await isEverywhere(done, session)) return 0;
  terminal.stderr.write("Not every node knows yet; see sluice nodes.\n");
  return 6;
}
