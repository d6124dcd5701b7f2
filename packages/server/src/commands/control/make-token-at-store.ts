import { access } from "node:fs/promises";
import { hostname } from "node:os";
import { newToken } from "@sluice/protocol/admin";
import { openPolicyStore, type PolicyStore, PolicyStoreUnavailable, SchemaTooNew } from "@sluice/sql";
import { createLimiter, SluiceError } from "sluice";
import { changeView } from "../../control-plane/admin-api/answer.ts";
import { sluiceItself } from "../../control-plane/audit/audit-entry.ts";
import { renderStoreUrl } from "../../control-plane/node/render-store-url.ts";
import { createControlPlane } from "../../control-plane/use-cases/create-control-plane.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal.ts";
import { parseTokenWish, type TokenWishOptions, tellToken } from "./tokens.ts";

const made = "made at the policy store itself";

/**
 * `sluice token make --store`: for when no token is left to ask a control plane with. Whoever can write to the database may. It is
 * made by the same use case, is in the audit, and servers that run know it within a second.
 */
export async function makeTokenAtStore(
  url: string,
  options: TokenWishOptions,
  terminal: Terminal,
  nowMs: () => number = Date.now,
): Promise<ExitCode> {
  const wish = parseTokenWish(options, nowMs());
  const store = await openExisting(url);
  const limiter = createLimiter();
  const quiet = { debug() {}, info() {}, warn() {}, error() {} };
  const control = createControlPlane({ store, limiter, log: quiet, nowMs });
  try {
    const { generation } = await store.readPulse();
    if (generation === 0)
      throw new CommandError(`no server has used the policy store ${renderStoreUrl(url)} yet; is that the right one?`);
    const actor = { ...sluiceItself, from: hostname() };
    const why = options.why === undefined ? made : `${made}: ${options.why}`;
    const changed = await control.tokens.make(actor, wish, { dryRun: options.dryRun, why });
    const { token, expiresMs } = changed.value;
    const body = newToken.render({ ...changeView(changed), token: changed.value });
    tellToken({ wish, token, expiresMs, body }, options, terminal);
    return 0;
  } catch (error) {
    throw asCommandError(error);
  } finally {
    await control.close();
    await limiter.close();
    await store.close();
  }
}

/** A file that is not there would be made, and a token in it would be of no use to anybody. */
async function openExisting(url: string): Promise<PolicyStore> {
  const file = /^sqlite:(?:\/\/)?(.+)$/.exec(url)?.[1];
  if (file !== undefined)
    await access(file).catch(() => {
      throw new CommandError(`there is no policy store ${renderStoreUrl(url)}`);
    });
  try {
    return await openPolicyStore({ url, applicationName: "sluice token make" });
  } catch (error) {
    if (error instanceof TypeError) throw new CommandError(`--store: ${error.message}`);
    throw asCommandError(error);
  }
}

const exitCodes: Readonly<Record<string, ExitCode>> = { already_exists: 4, policy_store_unavailable: 5 };

function asCommandError(error: unknown): unknown {
  if (error instanceof PolicyStoreUnavailable) return new CommandError(error.message, 5);
  if (error instanceof SchemaTooNew) return new CommandError(error.message);
  return error instanceof SluiceError ? new CommandError(error.message, exitCodes[error.code] ?? 2) : error;
}
