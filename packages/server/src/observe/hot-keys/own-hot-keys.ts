import type { HotKeys } from "sluice";
import { shareWork } from "../share-work.ts";
import type { WorkerLink } from "../worker-link.ts";
import { decodeReport, encodeReport, reportHotKeys } from "./hot-key-report.ts";
import { mostHotKeys, type ToldHotKeys } from "./merge-hot-keys.ts";

/** The hot keys of this process and of its fellow workers, as they are when this is called, or a moment later. Those that do not answer in time are missing. */
export type OwnHotKeys = () => Promise<readonly ToldHotKeys[]>;

export interface OwnHotKeysOptions {
  readonly hotKeys: HotKeys;
  /** What this process is called among nodes. */
  readonly node: ToldHotKeys["node"];
  readonly worker: WorkerLink | undefined;
}

export function createOwnHotKeys({ hotKeys, node, worker }: OwnHotKeysOptions): OwnHotKeys {
  const read = (): ToldHotKeys => ({ node, ageMs: 0, report: reportHotKeys(hotKeys, mostHotKeys) });
  worker?.answer("hot keys", async () => JSON.stringify({ node, report: encodeReport(read().report) }));
  return shareWork(async () => {
    const others = (await worker?.askOthers("hot keys")) ?? [];
    return [read(), ...others.flatMap(decodeTold)];
  });
}

/** Fellow workers are of the same version: what cannot be read was cut off. */
function decodeTold(text: string): readonly ToldHotKeys[] {
  try {
    const { node, report } = JSON.parse(text) as { readonly node: ToldHotKeys["node"]; readonly report: unknown };
    const decoded = decodeReport(report);
    return decoded === undefined ? [] : [{ node, ageMs: 0, report: decoded }];
  } catch {
    return [];
  }
}
