import { access } from "node:fs/promises";
import { hostname } from "node:os";
import { type NewTokenBody, newToken, type Role } from "@sluice/protocol/admin";
import { openPolicyStore, type PolicyStore, PolicyStoreUnavailable, SchemaTooNew } from "@sluice/sql";
import { createLimiter, SluiceError } from "sluice";
import { changeView } from "../control-plane/admin-api/answer.ts";
import { sluiceItself } from "../control-plane/audit/audit-entry.ts";
import { renderStoreUrl } from "../control-plane/node/render-store-url.ts";
import { createControlPlane } from "../control-plane/use-cases/create-control-plane.ts";
import { parseSettings, SettingError } from "../settings/parse-settings.ts";
import { findPasswordFile } from "../settings/password-files.ts";
import { CommandFailure } from "./command-failure.ts";
import { demandSettings } from "./serve-command.ts";

/** Whom a token is for. */
export interface TokenAtStoreRequest {
  readonly name: string;
  readonly role: Role;
  readonly team: string | undefined;
  readonly expiresMs: number | undefined;
  readonly dryRun?: boolean | undefined;
  readonly why?: string | undefined;
}

const made = "made at the policy store itself";

/** Where the policy store is. */
export interface StorePlace {
  readonly url: string;
  /** File with its password. Absent: it is in the URL, or there is none. */
  readonly passwordFile?: string | undefined;
}

/**
 * `sluice token make --store`: for when no token is left to ask a control plane with. Everyone who can write to the database may. It
 * is made by the same use case, is in the audit, and running servers know it within a second. Resolves with what the API answers.
 */
export async function makeTokenAtStore(
  place: StorePlace,
  { name, role, team, expiresMs, dryRun, why }: TokenAtStoreRequest,
  nowMs: () => number = Date.now,
): Promise<NewTokenBody> {
  const store = await openExisting(place);
  const limiter = createLimiter();
  const quiet = { debug() {}, info() {}, warn() {}, error() {} };
  const control = createControlPlane({ store, limiter, log: quiet, nowMs });
  try {
    const { generation } = await store.readPulse();
    if (generation === 0)
      throw new CommandFailure(
        `no server has used the policy store ${renderStoreUrl(place.url)} yet; is that the right one?`,
      );
    const actor = { ...sluiceItself, from: hostname() };
    const options = { dryRun, why: why === undefined ? made : `${made}: ${why}` };
    const changed = await control.tokens.make(actor, { name, role, team, expiresMs }, options);
    return newToken.render({ ...changeView(changed), token: changed.value });
  } catch (error) {
    throw asFailure(error);
  } finally {
    await control.close();
    await limiter.close();
    await store.close();
  }
}

/** A missing file would be created, and a token in it would be of no use. */
async function openExisting({ url, passwordFile }: StorePlace): Promise<PolicyStore> {
  const file = /^sqlite:(?:\/\/)?(.+)$/.exec(url)?.[1];
  if (file !== undefined)
    await access(file).catch(() => {
      throw new CommandFailure(`there is no policy store ${renderStoreUrl(url)}`);
    });
  try {
    const readPassword = passwordFile === undefined ? undefined : await createPasswordReader(url, passwordFile);
    return await openPolicyStore({ url, readPassword, applicationName: "sluice token make" });
  } catch (error) {
    if (error instanceof SettingError) throw new CommandFailure(error.message);
    if (error instanceof TypeError) throw new CommandFailure(`--store: ${error.message}`);
    throw asFailure(error);
  }
}

async function createPasswordReader(store: string, storePasswordFile: string): Promise<() => Promise<string>> {
  const { settings } = demandSettings(parseSettings({}, { store, storePasswordFile }));
  const file = findPasswordFile("storePasswordFile", settings)!;
  await file.read();
  return file.read;
}

const exitCodes: Readonly<Record<string, 4 | 5>> = { already_exists: 4, policy_store_unavailable: 5 };

function asFailure(error: unknown): unknown {
  if (error instanceof PolicyStoreUnavailable) return new CommandFailure(error.message, 5);
  if (error instanceof SchemaTooNew) return new CommandFailure(error.message);
  return error instanceof SluiceError ? new CommandFailure(error.message, exitCodes[error.code] ?? 2) : error;
}
