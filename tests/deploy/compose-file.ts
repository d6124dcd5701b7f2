import { readFileSync } from "node:fs";
import path from "node:path";
import { boolean, choice, integer, listOf, mapOf, objectOf, parseShape, type ReadOf, text } from "sluice/shape";
import { parse } from "yaml";
import { repositoryRoot } from "../repository/source-tree.ts";

export const composeFolder: string = path.join(repositoryRoot, "deploy/compose");

/*
 * What we use of the Compose specification, and nothing else of it: a key that is misspelt or in the wrong place is
 * an unknown one.
 */
const anything = text({ max: 4096 });
/** `10s`, `1m30s`. */
const time = text({ max: 16, pattern: /^(\d+(us|ms|s|m|h))+$/, form: "a time such as 10s" });
const name = text({ max: 64, pattern: /^[a-z0-9][a-z0-9_.-]*$/, form: "a name" });

const key = text({ max: 128 });

const service = objectOf(
  { image: text({ max: 256, pattern: /^[a-z0-9./-]+(:[\w.-]+)?$/, form: "an image" }) },
  {
    build: objectOf({ context: anything, dockerfile: anything }),
    command: listOf(text({ min: 0, max: 4096 })),
    environment: mapOf(key, anything),
    volumes: listOf(text({ max: 1024, pattern: /^[^:]+:\/[^:]+(:ro)?$/, form: "SOURCE:/TARGET or SOURCE:/TARGET:ro" })),
    tmpfs: listOf(anything),
    ports: listOf(text({ max: 64, pattern: /^127\.0\.0\.1:\d+:\d+$/, form: "a port on loopback" })),
    networks: listOf(name),
    secrets: listOf(name),
    depends_on: mapOf(
      key,
      objectOf(
        { condition: choice(["service_started", "service_healthy", "service_completed_successfully"]) },
        { restart: boolean },
      ),
    ),
    healthcheck: objectOf({ test: listOf(anything), interval: time, timeout: time, retries: integer({ min: 1 }) }),
    restart: choice(["no", "always", "on-failure", "unless-stopped"]),
    stop_grace_period: time,
    read_only: boolean,
    cap_drop: listOf(choice(["ALL"])),
    security_opt: listOf(choice(["no-new-privileges:true"])),
    mem_limit: text({ max: 16, pattern: /^\d+[kmg]$/, form: "a size such as 512m" }),
  },
);

const compose = objectOf({
  name,
  services: mapOf(key, service),
  networks: mapOf(key, objectOf({}, { internal: boolean })),
  volumes: mapOf(key, objectOf({})),
  secrets: mapOf(
    key,
    objectOf({ file: text({ max: 256, pattern: /^\.\/secrets\/[\w-]+$/, form: "a file in ./secrets" }) }),
  ),
});

export type ComposeService = ReadOf<typeof service>;
export type ComposeFile = ReadOf<typeof compose>;

/** Throws with every problem, by its path. */
export function parseCompose(source: string): ComposeFile {
  // An extension is there for its anchors, and is read where they are merged.
  const { "x-sluice": _, ...document } = parse(source, { merge: true }) as Record<string, unknown>;
  return parseShape(compose, document, "invalid_request", "compose.yaml");
}

export function readCompose(): ComposeFile {
  return parseCompose(readDeployed("compose.yaml"));
}

/** The text of a file next to compose.yaml. */
export function readDeployed(file: string): string {
  return readFileSync(path.join(composeFolder, file), "utf8");
}

/** Where a file in a container is outside of it, in this folder next to compose.yaml. */
export function findOutside(folder: string, { volumes = [], secrets = [] }: ComposeService, inside: string): string {
  if (inside.startsWith("/run/secrets/")) {
    const secret = inside.slice("/run/secrets/".length);
    if (!secrets.includes(secret)) throw new Error(`${inside} is not among the service's secrets`);
    return path.join(folder, "secrets", secret);
  }
  for (const [source = "", target = ""] of volumes.map((one) => one.split(":")))
    if (inside === target || inside.startsWith(`${target}/`))
      return path.join(path.resolve(composeFolder, source), inside.slice(target.length));
  throw new Error(`${inside} is in no volume of the service`);
}
