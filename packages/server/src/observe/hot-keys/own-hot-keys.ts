import { mostHotKeys } from "@sluice/protocol/http";
import type { HotKeys } from "sluice";
import { shareWork } from "../share-work.ts";
import type { WorkerLink } from "../worker-link.ts";
import { decodeReport, encodeReport, reportHotKeys } from "./hot-key-report.ts";
import type { NodeHotKeys } from "./merge-hot-keys.ts";

/** The current hot keys of this process and its fellow workers. Those that do not answer in time are missing. */
export type OwnHotKeys = () => Promise<readonly NodeHotKeys[]>;

export interface OwnHotKeysOptions {
  readonly hotKeys: HotKeys;
  /** The name of this process among the nodes. */
  readonly node: NodeHotKeys["node"];
  readonly worker: WorkerLink | undefined;
}

export function createOwnHotKeys({ hotKeys, node, worker }: OwnHotKeysOptions): OwnHotKeys {
  const read = (): NodeHotKeys => ({ node, ageMs: 0, report: reportHotKeys(hotKeys, mostHotKeys) });
  worker?.answer("hot keys", async () => JSON.stringify({ node, report: encodeReport(read().report) }));
  return shareWork(async () => {
    const others = (await worker?.askOthers("hot keys")) ?? [];
    return [read(), ...others.flatMap(decodeHotKeys)];
  });
}

/** Fellow workers have the same version: an unreadable text was cut off. */
function decodeHotKeys(text: string): readonly NodeHotKeys[] {
  try {
    const { node, report } = JSON.parse(text) as { readonly node: NodeHotKeys["node"]; readonly report: unknown };
    const decoded = decodeReport(report);
    return decoded === undefined ? [] : [{ node, ageMs: 0, report: decoded }];
  } catch {
    return [];
  }
}
