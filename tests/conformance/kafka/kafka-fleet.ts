import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Sluice, startSluice } from "../../restart/start-sluice.ts";
import { until } from "./until.ts";

/** Servers in separate processes that share a policy store and a topic. */
export interface KafkaFleet {
  readonly nodes: readonly Sluice[];
  /** Starts another one; resolves when it is ready. */
  start(name: string): Promise<Sluice>;
  /** Gives the policy this limit, through one node. */
  putLimit(node: Sluice, limit: number): Promise<void>;
  close(): Promise<void>;
}

export async function createKafkaFleet(env: Readonly<Record<string, string>>): Promise<KafkaFleet> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-kafka-fleet-"));
  const tokenFile = path.join(folder, "token");
  const nodes: Sluice[] = [];
  return {
    nodes,
    async start(name): Promise<Sluice> {
      const own = { SLUICE_NODE_NAME: name, SLUICE_ADMIN_TOKEN_FILE: tokenFile };
      const node = await startSluice({ ...own, NODE_COMPILE_CACHE: path.join(folder, "compiled"), ...env });
      nodes.push(node);
      await until("the node is ready", () => node.isReady());
      return node;
    },
    async putLimit({ admin }, limit): Promise<void> {
      const policy = {
        ...{ id: "p", match: { endpoint: "/p" }, on_failure: "open" },
        limits: [{ by: ["user"], algorithm: "fixed_window", windows: [`${limit}/h`] }],
      };
      const response = await fetch(`${admin}/api/v1/import`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${(await readFile(tokenFile, "utf8")).trim()}`,
          "content-type": "application/json",
          "if-match": "*",
        },
        body: JSON.stringify({ policies: [policy] }),
      });
      if (!response.ok) throw new Error(`a change was answered with ${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
    },
    async close(): Promise<void> {
      await Promise.all(nodes.map((node) => node.kill()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export interface StoreState {
  readonly state: string;
  readonly source: string;
  readonly generation: number;
  readonly push: { readonly connected: boolean; readonly topic_generation?: number };
}

export async function readStore({ http }: Sluice): Promise<StoreState> {
  return ((await (await fetch(`${http}/v1/status`)).json()) as { store: StoreState }).store;
}

export async function readLimit({ http }: Sluice): Promise<number | undefined> {
  const { policies } = (await (await fetch(`${http}/v1/policies`)).json()) as {
    policies: { id: string; limits: { windows: { limit: number }[] }[] }[];
  };
  return policies.find(({ id }) => id === "p")?.limits[0]?.windows[0]?.limit;
}

/** The sum of a counter without labels. */
export async function readMetric({ http }: Sluice, name: string): Promise<number> {
  const text = await (await fetch(`${http}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN);
}
