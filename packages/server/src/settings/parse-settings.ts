import { basename, dirname, resolve } from "node:path";
import type { Problem } from "sluice";
import { isLoopback } from "sluice/internal";
import { isPolicyFileName } from "sluice/policy-file";
import type { SettingEntry } from "./setting-entry.ts";
import { type Settings, settingsTable } from "./settings.ts";
import { findUnreadVariables } from "./unread-variables.ts";

export type SettingsReading =
  | { readonly kind: "settings"; readonly settings: Settings; readonly warnings: readonly Problem[] }
  | { readonly kind: "problems"; readonly problems: readonly Problem[] };

/** Reads settings from the environment and from flags, which win; every bad value is reported under its own name. */
export function parseSettings(env: Readonly<Record<string, string | undefined>>, flags: Flags = {}): SettingsReading {
  const problems: Problem[] = [];

  function read(name: keyof Settings): unknown {
    const entry: SettingEntry<unknown> = settingsTable[name];
    const flag = flags[name];
    const text = flag ?? env[entry.env];
    // An empty variable is how many deployment tools say "not set"; an empty flag is a mistake.
    if (text === undefined || (flag === undefined && text === "")) return entry.fallback;
    const reading = entry.read(text.trim());
    if (reading.kind === "value") return reading.value;
    problems.push({ path: [flag === undefined ? entry.env : (entry.flag ?? entry.env)], message: reading.message });
    return entry.fallback;
  }

  const names = Object.keys(settingsTable) as (keyof Settings)[];
  // The table gives each its type, but the compiler cannot follow that through a list.
  const settings = Object.fromEntries(names.map((name) => [name, read(name)])) as unknown as Settings;
  if (flags.config !== undefined && flags.config.trim() === "")
    problems.push({ path: ["--config"], message: "is empty; name a policy file or a folder of them" });
  problems.push(...problemsTogether(settings, flags));
  if (problems.length > 0) return { kind: "problems", problems };
  return { kind: "settings", settings, warnings: [...findWarnings(settings, flags), ...findUnreadVariables(env)] };
}

type Flags = Partial<Readonly<Record<keyof Settings, string | undefined>>>;

/** Problems with a combination of settings that are each valid. */
function problemsTogether(settings: Settings, flags: Flags): readonly Problem[] {
  const problems: Problem[] = [];
  const refuse = (name: keyof Settings, message: string): void => {
    problems.push({ path: [givenAs(name, flags)], message });
  };
  const { tlsCert, tlsKey, tlsClientCa, tlsClientNames, host } = settings;
  if (tlsCert !== undefined && tlsKey === undefined)
    refuse("tlsCert", "is of no use without its key; set SLUICE_TLS_KEY (--tls-key) as well");
  if (tlsKey !== undefined && tlsCert === undefined)
    refuse("tlsKey", "is of no use without its certificate; set SLUICE_TLS_CERT (--tls-cert) as well");
  if (tlsClientCa !== undefined && tlsCert === undefined)
    refuse("tlsClientCa", "asks clients for certificates, which needs TLS; set SLUICE_TLS_CERT and SLUICE_TLS_KEY");
  if (tlsClientNames.length > 0 && tlsClientCa === undefined)
    refuse(
      "tlsClientNames",
      "names clients, but there is no CA to verify their certificates with; set SLUICE_TLS_CLIENT_CA as well",
    );
  const { config, policySnapshot } = settings;
  if (config !== undefined && policySnapshot !== undefined) {
    const [policies, snapshot] = [resolve(config), resolve(policySnapshot)];
    if (snapshot === policies)
      refuse("policySnapshot", "is the policy file itself, which would be overwritten; name another file");
    else if (dirname(snapshot) === policies && isPolicyFileName(basename(snapshot)))
      refuse(
        "policySnapshot",
        "is in the folder of the policies, and would be read as one of them; name a file in another folder",
      );
  }
  if (settings.recordShare < 1 && settings.recordShareBy === undefined)
    refuse(
      "recordShare",
      "records a part of the subjects, and does not say whose; name their dimension with --record-share-by (SLUICE_RECORD_SHARE_BY), such as tenant",
    );
  if (settings.push === "kafka" && settings.store !== undefined && settings.kafka === undefined)
    refuse("push", "is kafka, and no brokers are named; name some with SLUICE_KAFKA (--kafka), or use auto or none");
  if (settings.adminTokenFile !== undefined && settings.adminTokenFrom !== undefined)
    refuse(
      "adminTokenFrom",
      `names the first admin token, so none is made for ${settingName("adminTokenFile")}; set one of the two`,
    );
  problems.push(...problemsOfPasswords(settings, flags), ...problemsOfEndpoints(settings, flags));
  if (!(settings.allowInsecure || isLoopback(host) || isProtected(settings)))
    refuse(
      "host",
      `"${host}" can be reached from other machines, and any client there could spend your limits. Set SLUICE_TLS_CERT and ` +
        "SLUICE_TLS_KEY, or SLUICE_TOKENS, or both; or listen on 127.0.0.1 behind a proxy; or say --allow-insecure " +
        "(SLUICE_ALLOW_INSECURE=true) if the network itself keeps strangers out",
    );
  return problems;
}

/** The flag or variable that a setting was given by. */
function givenAs(name: keyof Settings, flags: Flags): string {
  const { env, flag } = settingsTable[name];
  return flags[name] === undefined ? env : (flag ?? env);
}

/** Two places for one password: after a rotation one of them would be wrong. */
function problemsOfPasswords(settings: Settings, flags: Flags): readonly Problem[] {
  const problems: Problem[] = [];
  for (const [file, given] of [
    ["redisPasswordFile", "redisPassword"],
    ["redisSentinelPasswordFile", "redisSentinelPassword"],
  ] as const)
    if (settings[file] !== undefined && settings[given] !== undefined)
      problems.push({
        path: [givenAs(file, flags)],
        message: `names a file with a password, and ${settingName(given)} is one; set one of the two`,
      });
  const { store, storePasswordFile } = settings;
  if (storePasswordFile !== undefined && store !== undefined) {
    const message = store.startsWith("sqlite:")
      ? "is of no use, because the policy store is a file; leave it out"
      : hasPassword(store)
        ? `names a file with a password, and the address in ${settingName("store")} has one; leave one of them out`
        : undefined;
    if (message !== undefined) problems.push({ path: [givenAs("storePasswordFile", flags)], message });
  }
  return problems;
}

function hasPassword(url: string | undefined): boolean {
  return /^[a-z]+:\/\/[^/@]*:[^/@]+@/.test(url ?? "");
}

const ports = ["httpPort", "grpcPort", "respPort"] as const;
const sockets = ["httpSocket", "grpcSocket", "respSocket"] as const;

/** Each protocol needs a separate place, and there must be at least one. */
function problemsOfEndpoints(settings: Settings, flags: Flags): readonly Problem[] {
  const problems: Problem[] = [];
  const taken = new Map<number | string, keyof Settings>();
  const control = settings.store === undefined ? [] : (["adminPort"] as const);
  for (const name of [...ports, ...control, ...sockets]) {
    const place = settings[name];
    // 0 is another port each time.
    if (place === undefined || place === 0) continue;
    const other = taken.get(place);
    if (other === undefined) taken.set(place, name);
    else
      problems.push({
        path: [givenAs(name, flags)],
        message: `is ${place}, as ${settingName(other)}; each protocol needs its own`,
      });
  }
  if ([...ports, ...sockets].every((name) => settings[name] === undefined))
    problems.push({
      path: [givenAs("httpPort", flags)],
      message: "is off, as is every other port, and no unix socket is named, so that there is nothing to listen on",
    });
  return problems;
}

function usesKafka({ push, store, usageEvents }: Settings): boolean {
  return (push === "kafka" && store !== undefined) || usageEvents.some((url) => url.startsWith("kafka:"));
}

function isProtected({ tlsCert, tokens }: Settings): boolean {
  return tlsCert !== undefined || tokens !== undefined;
}

const storeSettings = ["storePasswordFile", "seed", "adminTokenFile", "adminTokenFrom", "nodeName"] as const;

/** Settings that always have a value. As variables they may be set for a whole fleet; a flag is given on purpose. */
const storeFlags = ["adminPort", "precedence", "push", "storeGraceMs", "auditRetentionMs"] as const;

const redisFlags = [
  "redisPasswordFile",
  "redisSentinelPasswordFile",
  "redisCa",
  "redisCert",
  "redisKey",
  "redisServerName",
  "redisPrefix",
  "redisLanes",
  "redisCells",
  "deadlineMs",
] as const;

const kafkaFlags = [
  "kafkaPolicyTopic",
  "kafkaClientId",
  "kafkaTls",
  "kafkaCa",
  "kafkaCert",
  "kafkaKey",
  "kafkaSasl",
  "kafkaUser",
  "kafkaPasswordFile",
] as const;

const leaseSettings = ["leaseMs", "leaseStaleMs", "leaseHotPerSecond"] as const;

/** What is legal but probably not meant. */
function findWarnings(settings: Settings, flags: Flags): readonly Problem[] {
  const { redis, redisNodes } = settings;
  const warnings: Problem[] = [];
  if (flags.redis !== undefined && redis?.password !== undefined)
    warnings.push({
      path: ["--redis"],
      message:
        "holds a password, which every user of this machine can read in the list of processes; put the address into " +
        "SLUICE_REDIS_URL, or the password into a file that SLUICE_REDIS_PASSWORD_FILE names",
    });
  if (hasPassword(flags.store))
    warnings.push({
      path: ["--store"],
      message:
        "holds a password, which every user of this machine can read in the list of processes; put the address into " +
        `${settingsTable.store.env}, or the password into a file that ${settingsTable.storePasswordFile.env} names`,
    });
  if (settings.store === undefined)
    for (const name of [...storeSettings, ...storeFlags.filter((one) => flags[one] !== undefined)])
      if (settings[name] !== undefined)
        warnings.push({
          path: [givenAs(name, flags)],
          message: "is of no use, because there is no policy store; name one with --store (SLUICE_STORE_URL)",
        });
  // A policy file may name servers as well.
  if (redis === undefined && redisNodes === undefined && settings.config === undefined)
    // If leases are off, their own warning covers their settings.
    for (const name of settings.leases === "off" ? redisFlags : [...redisFlags, ...leaseSettings])
      if (flags[name] !== undefined)
        warnings.push({
          path: [givenAs(name, flags)],
          message:
            "is of no use, because counters are in memory; name servers for them with --redis (SLUICE_REDIS_URL)",
        });
  if (settings.kafka === undefined)
    for (const name of kafkaFlags)
      if (flags[name] !== undefined)
        warnings.push({
          path: [givenAs(name, flags)],
          message: "is of no use, because no Kafka brokers are named; name some with --kafka (SLUICE_KAFKA)",
        });
  if (settings.kafka !== undefined && !usesKafka(settings))
    warnings.push({
      path: [givenAs("kafka", flags)],
      message:
        "is of no use, because nothing is sent to Kafka; send policies with --push kafka (SLUICE_PUSH), or usage " +
        "events with --usage-events kafka: (SLUICE_USAGE_EVENTS)",
    });
  const { maxConnections, maxConnectionsPerAddress = 0 } = settings;
  if (maxConnectionsPerAddress > maxConnections)
    warnings.push({
      path: [givenAs("maxConnectionsPerAddress", flags)],
      message: `is of no use, because it is more than ${settingName("maxConnections")}, which is ${maxConnections}`,
    });
  if (redis !== undefined && redisNodes !== undefined)
    warnings.push({
      path: [settingsTable.redisNodes.env],
      message: "is not used, because SLUICE_REDIS_URL or --redis names the servers as well",
    });
  if (settings.policySnapshot !== undefined && settings.config === undefined && settings.store === undefined)
    warnings.push({
      path: [givenAs("policySnapshot", flags)],
      message: "has nothing to keep, because there are no policy files; name them with --config (RATE_LIMIT_CONFIG)",
    });
  if (settings.leases === "off")
    for (const name of leaseSettings)
      if (settings[name] !== settingsTable[name].fallback)
        warnings.push({
          path: [givenAs(name, flags)],
          message: "is of no use, because leases are off (SLUICE_LEASES, --leases)",
        });
  const inTheClear = settings.tokens !== undefined && settings.tlsCert === undefined && !isLoopback(settings.host);
  if (inTheClear)
    warnings.push({
      path: [settingsTable.tokens.env],
      message: "travel in the clear, because there is no TLS; set SLUICE_TLS_CERT and SLUICE_TLS_KEY",
    });
  return warnings;
}

/** A setting that cannot be used once its value is examined: a missing file, half of a pair. */
export class SettingError extends Error {
  override readonly name = "SettingError";

  constructor(names: readonly (keyof Settings)[], message: string) {
    super(`${names.map(settingName).join(", ")}: ${message}`);
  }
}

/** The name of a setting: `SLUICE_REDIS_CA (--redis-ca)`. */
function settingName(name: keyof Settings): string {
  const { env, flag }: SettingEntry<unknown> = settingsTable[name];
  return flag === undefined ? env : `${env} (${flag})`;
}

/** `--port: is "x"; it should be …`, a line each. */
export function renderSettingProblems(problems: readonly Problem[]): string {
  return problems.map(({ path, message }) => `${path.join(".")}: ${message}`).join("\n");
}
