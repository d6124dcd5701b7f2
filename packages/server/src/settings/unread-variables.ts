import type { Problem } from "sluice";
import { suggest } from "sluice/internal";
import type { SettingEntry } from "./setting-entry.ts";
import { settingsTable } from "./settings.ts";

const prefix = "SLUICE_";

/** Variables of the commands that ask a server, and of this repository's tests. */
const othersVariables: ReadonlySet<string> = new Set([
  "SLUICE_SERVER",
  "SLUICE_TOKEN",
  "SLUICE_CA",
  "SLUICE_ADMIN_URL",
  "SLUICE_TEST_SEED",
]);

/** What Kubernetes sets for a service called sluice, or sluice-something, in every container of the namespace. */
const serviceLink = /^SLUICE_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;
const serviceAddress = /^(tcp|udp|sctp):\/\//;

/**
 * Variables that look like a setting and are not read: a misspelt one, or one named after an option whose setting has another
 * variable, such as `SLUICE_PORT` for `SLUICE_HTTP_PORT`.
 */
export function findUnreadVariables(env: Readonly<Record<string, string | undefined>>): readonly Problem[] {
  const entries: readonly SettingEntry<unknown>[] = Object.values(settingsTable);
  const known = new Set(entries.map((entry) => entry.env));
  const ownNames = [...known].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  const byFlagName = new Map(entries.flatMap((entry) => (entry.flag === undefined ? [] : [[flagName(entry), entry]])));
  return Object.entries(env).flatMap(([name, text = ""]) => {
    if (!name.startsWith(prefix) || text === "" || known.has(name) || othersVariables.has(name)) return [];
    if (serviceLink.test(name) || serviceAddress.test(text)) return [];
    const named = byFlagName.get(name);
    if (named !== undefined)
      return [{ path: [name], message: `is not read; the variable of ${named.flag} is ${named.env}` }];
    // Without what all of them begin with, which would make any two look alike.
    const meant = suggest(name.slice(prefix.length), ownNames);
    const advice = meant === undefined ? "sluice serve --help lists the variables" : `did you mean ${prefix}${meant}?`;
    return [{ path: [name], message: `is not read, because no setting has this name; ${advice}` }];
  });
}

function flagName({ flag = "" }: SettingEntry<unknown>): string {
  return `SLUICE_${flag.slice(2).replaceAll("-", "_").toUpperCase()}`;
}
