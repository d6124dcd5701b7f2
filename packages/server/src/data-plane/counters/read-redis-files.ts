import { createSecureContext } from "node:tls";
import { type Cell, parseRedisUrl, type RedisServers, type TlsOptions } from "@sluice/redis";
import { renderProblem, SluiceError } from "sluice";
import { listOf, mapOf, objectOf, oneOrMany, readShape, refine, type Shape, text } from "sluice/shape";
import { parse } from "yaml";
import { SettingError } from "../../settings/parse-settings.ts";
import { readSettingFile } from "../../settings/read-setting-file.ts";
import type { Settings } from "../../settings/settings.ts";
import { withAccess } from "./plan-counters.ts";

/**
 * The same servers, with the certificates and the key from the files that settings name. Reads the files anew each
 * time.
 */
export async function withTlsFiles(servers: RedisServers, settings: Settings): Promise<RedisServers> {
  const { redisServerName: serverName } = settings;
  const given = (["redisCa", "redisCert", "redisKey", "redisServerName"] as const).filter(
    (name) => settings[name] !== undefined,
  );
  if (given.length === 0 || servers.addresses.every(({ kind }) => kind === "unix")) return servers;
  if (servers.tls === undefined)
    throw new SettingError(given, "is for TLS, which is off for these servers; write rediss:// or REDIS_USE_TLS=true");
  if ((settings.redisCert === undefined) !== (settings.redisKey === undefined))
    throw new SettingError(
      ["redisCert", "redisKey"],
      "a certificate needs its key, and a key its certificate; name both",
    );
  const [ca, cert, key] = await Promise.all([
    readSettingFile("redisCa", settings),
    readSettingFile("redisCert", settings),
    readSettingFile("redisKey", settings),
  ]);
  const files = {
    ...(ca === undefined ? undefined : { ca }),
    ...(cert === undefined ? undefined : { cert }),
    ...(key === undefined ? undefined : { key }),
  };
  if (ca !== undefined) checkPem(["redisCa"], { ca });
  if (cert !== undefined && key !== undefined) checkPem(["redisCert", "redisKey"], { cert, key });
  const tls: TlsOptions = { ...files, ...(serverName === undefined ? undefined : { serverName }) };
  return { ...servers, tls };
}

export type ServedCell = Cell & { readonly servers: RedisServers };

/** The cells, from the file that settings name. */
export async function readCells(settings: Settings): Promise<readonly ServedCell[]> {
  const content = await readSettingFile("redisCells", settings);
  if (content === undefined) return [];
  const read = readShape(cellsShape, parseYaml(content));
  if (!read.ok)
    throw new SettingError(
      ["redisCells"],
      ["the file cannot be used", ...read.problems.map(renderProblem)].join("\n  "),
    );
  return Promise.all(
    read.value.cells.map(async ({ redis, ...cell }) => ({
      ...cell,
      servers: await withTlsFiles(withAccess(redis, settings), settings),
    })),
  );
}

const address: Shape<RedisServers> = refine(text({ max: 4096 }), (url, reading) => {
  try {
    return parseRedisUrl(url);
  } catch (error) {
    // The address stays out of the message: it may contain a password.
    return reading.problem(
      error instanceof SluiceError ? (error.problems[0]?.message ?? error.message) : "is not an address",
    );
  }
});

const cellShape = refine(
  objectOf(
    { name: text({ max: 64, pattern: /^[\w.-]+$/, form: "letters, digits or . _ -" }), redis: address },
    {
      values: mapOf(text({ max: 128 }), oneOrMany(text({ max: 1024 }), { max: 10_000 })),
      tiers: oneOrMany(text({ max: 128 }), { max: 1_000 }),
    },
  ),
  (cell, reading) =>
    cell.values === undefined && cell.tiers === undefined
      ? reading.problem("has neither values nor tiers, so it would hold no counters")
      : cell,
);

const cellsShape = refine(objectOf({ cells: listOf(cellShape, { max: 1_000 }) }), ({ cells }, reading) => {
  const names = new Set<string>();
  for (const [index, { name }] of cells.entries()) {
    if (names.has(name)) reading.problem(`is ${name}, as another cell; give each its own`, "cells", index, "name");
    names.add(name);
  }
  return { cells };
});

function parseYaml(content: string): unknown {
  try {
    return parse(content);
  } catch (error) {
    const [what] = String(error instanceof Error ? error.message : error).split("\n");
    throw new SettingError(["redisCells"], `the file is neither YAML nor JSON: ${what}`);
  }
}

function checkPem(
  names: readonly (keyof Settings)[],
  pem: { readonly ca?: string; readonly cert?: string; readonly key?: string },
): void {
  try {
    createSecureContext(pem);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new SettingError(names, `the file's contents cannot be used (${said}); it should be in PEM`);
  }
}
