import { IdentityRun, Simulation } from "@sluice/simulate";
import {
  fileSource,
  findSampledBy,
  type LogFormat,
  type LogSource,
  LogUnreadable,
  logFormats,
  parseFieldMap,
  type ReadLogs,
  readLogs,
} from "@sluice/simulate/logs";
import { type PolicySet, parsePolicies, SluiceError } from "sluice";
import { parsePolicyText } from "sluice/policy-text";
import { readYaml } from "../documents/read-yaml.ts";
import type { SimulationInput, SimulationMessage, SimulationOrder } from "./simulation-order.ts";

/** Of a log that is sent along: a few megabytes can be compressed from gigabytes. */
const mostTextBytes = 1024 ** 3;
const progressMs = 200;

/** Runs a simulation. Never rejects for what the caller sent: that is an answer. */
export async function runSimulation(
  order: SimulationInput,
  onProgress: (share: number, requests: number) => void,
): Promise<Exclude<SimulationMessage, { kind: "progress" }>> {
  try {
    return { kind: "done", document: await simulate(order, onProgress) };
  } catch (error) {
    if (error instanceof SluiceError || error instanceof RangeError || error instanceof LogUnreadable)
      return { kind: "refused", message: error.message };
    throw error;
  }
}

async function simulate(
  order: SimulationInput,
  onProgress: (share: number, requests: number) => void,
): Promise<unknown> {
  const inForce = JSON.parse(order.inForce) as Readonly<Record<string, unknown>>;
  const candidate = readCandidate(order, inForce);
  const now = order.now === "policies" ? parsePolicies(inForce) : undefined;
  const source = await openSource(order);
  const { maxCounterBytes } = order;
  const findLimit = order.findLimit === undefined ? undefined : { policy: order.findLimit };
  const begin = (carried: readonly string[], sampledBy?: string): Simulation =>
    new Simulation({ candidate, now, carried, sampledBy, findLimit, maxCounterBytes });
  // A policy that is not there is found out before the first line.
  let simulation = begin([]);
  let identity: IdentityRun | undefined;
  let [requests, shownMs] = [0, 0];
  const read = await readLogs(
    [source],
    (request) => {
      requests += 1;
      identity?.add(request);
      simulation.add(request);
    },
    {
      ...{ format: readFormat(order.format), map: parseFieldMap(order.map) },
      maxTextBytes: order.path === undefined ? mostTextBytes : undefined,
      onCarried(carried, recordings) {
        const sampledBy = findSampledBy(recordings);
        simulation = begin(carried, sampledBy);
        if (recordings.length > 0) identity = new IdentityRun({ recordings, sampledBy, maxCounterBytes });
      },
      onProgress({ readBytes }) {
        const nowMs = Date.now();
        if (nowMs - shownMs < progressMs) return;
        shownMs = nowMs;
        onProgress(source.bytes === undefined ? 0 : Math.min(1, readBytes / source.bytes), requests);
      },
    },
  );
  const result = simulation.finish();
  if (result.requests === 0) throw new RangeError(renderNothing(read));
  const { lines, unreadable, late, formats, examples } = read;
  return { logs: { lines, unreadable, late, formats, examples }, identity: identity?.finish(), result, fail_if: [] };
}

function readCandidate({ file, policies }: SimulationOrder, inForce: Readonly<Record<string, unknown>>): PolicySet {
  if (file !== undefined) return parsePolicyText(file, { file: "candidate" }).policySet;
  const merged = new Map<unknown, unknown>();
  for (const policy of inForce.policies as readonly { readonly id: unknown }[]) merged.set(policy.id, policy);
  let fallback = inForce.default;
  for (const text of policies) {
    const document = readYaml({ text }) as { readonly id?: unknown } | null;
    if (typeof document !== "object" || typeof document?.id !== "string")
      throw new RangeError("a policy of the candidate has no id, so it is not known which one it replaces");
    if (document.id === "default") {
      const { id: _, ...rest } = document;
      fallback = rest;
    } else merged.set(document.id, document);
  }
  return parsePolicies({ ...inForce, policies: [...merged.values()], default: fallback });
}

async function openSource({ path, bytes }: SimulationOrder): Promise<LogSource> {
  if (path !== undefined) return fileSource(path);
  const all = Buffer.from(bytes ?? []);
  return {
    name: "log",
    bytes: all.length,
    async *open() {
      yield all;
    },
  };
}

function readFormat(format: string | undefined): LogFormat | undefined {
  const found = logFormats.find((one) => one === format);
  if (format !== undefined && found === undefined)
    throw new RangeError(`format is ${JSON.stringify(format)}; it should be one of ${logFormats.join(", ")}`);
  return found;
}

function renderNothing({ lines, examples, formats }: ReadLogs): string {
  if (lines === 0) return "the log is empty";
  const [first] = examples;
  const example = first === undefined ? "" : `; the first line is ${JSON.stringify(first.text)}`;
  return `none of ${lines} lines could be read as ${formats.find((one) => one !== undefined) ?? "a log"}${example}`;
}
