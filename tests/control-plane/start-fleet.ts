import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitUntil } from "@sluice/test-servers";
import { type Sluice, startSluice } from "../restart/start-sluice.ts";

/** Two cores that others use as well: a start may take long. */
const readyWithinMs = 60_000;

/** Several servers in separate processes that share a policy store. */
export interface Fleet {
  readonly folder: string;
  readonly nodes: readonly Sluice[];
  /** Starts another one; resolves when it is ready. */
  start(name: string, ...args: readonly string[]): Promise<Sluice>;
  close(): Promise<void>;
}

export async function createFleet(
  env: Readonly<Record<string, string>>,
  startOne: typeof startSluice = startSluice,
): Promise<Fleet> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-fleet-"));
  const nodes: Sluice[] = [];
  return {
    folder,
    nodes,
    async start(name, ...args): Promise<Sluice> {
      const own = {
        SLUICE_NODE_NAME: name,
        SLUICE_POLICY_SNAPSHOT: join(folder, `${name}.snapshot`),
        SLUICE_ADMIN_TOKEN_FILE: join(folder, "admin-token"),
        // Most of a start is compiling, which one process can do for the others.
        NODE_COMPILE_CACHE: join(folder, "compiled"),
      };
      const node = await startOne({ ...own, ...env }, ...args);
      nodes.push(node);
      // It listens before it has reached its counters.
      await waitUntil(`${name} is ready`, readyWithinMs, async () => ((await node.isReady()) ? true : undefined));
      return node;
    },
    async close(): Promise<void> {
      await Promise.all(nodes.map((node) => node.kill()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** Sends a request to the control plane of one node, as the first admin. Imports accept any generation. */
export async function steer(
  { admin }: Sluice,
  { folder }: Pick<Fleet, "folder">,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const token = (await readFile(join(folder, "admin-token"), "utf8")).trim();
  const isText = typeof body === "string";
  const response = await fetch(`${admin}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(path === "/import" && { "if-match": "*" }),
      ...(body === undefined ? {} : { "content-type": isText ? "application/yaml" : "application/json" }),
    },
    ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text.startsWith("{") ? (JSON.parse(text) as Answer["body"]) : { text } };
}

/** Makes a change, and expects success. */
export async function steerWell(...args: Parameters<typeof steer>): Promise<Answer["body"]> {
  const { status, body } = await steer(...args);
  if (status >= 300) throw new Error(`${args[2]} ${args[3]} was answered with ${status}: ${JSON.stringify(body)}`);
  return body;
}

export const createPolicyDocument = (id: string, limit: number): Record<string, unknown> => ({
  id,
  match: { endpoint: `/${id}` },
  limits: [{ by: ["user"], algorithm: "fixed_window", windows: [`${limit}/h`] }],
  on_failure: "open",
});

/** Two policies in one change, with the same limit. */
export const twoPolicies = (limit: number): string =>
  JSON.stringify({ policies: [createPolicyDocument("p", limit), createPolicyDocument("q", limit)] });

/** A node's decision about a request, without taking anything. */
export async function decide({ http }: Sluice, policy = "p", user = "u"): Promise<Record<string, unknown>> {
  const response = await fetch(`${http}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ dimensions: { user, endpoint: `/${policy}` }, preview: true }),
  });
  return (await response.json()) as Record<string, unknown>;
}

export async function readStatus({ http }: Sluice): Promise<{
  readonly status: string;
  readonly detail?: string;
  readonly store: Record<string, unknown>;
}> {
  return (await (await fetch(`${http}/v1/status`)).json()) as Awaited<ReturnType<typeof readStatus>>;
}

/** The limits in force on a node, all at one moment. */
export async function limitsOn({ http }: Sluice): Promise<Record<string, number>> {
  const response = await fetch(`${http}/v1/policies`);
  const { policies } = (await response.json()) as {
    policies: { id: string; limits: { windows: { limit: number }[] }[] }[];
  };
  return Object.fromEntries(policies.map(({ id, limits: [limit] }) => [id, limit?.windows[0]?.limit ?? 0]));
}
