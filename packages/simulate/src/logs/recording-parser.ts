import { type PolicySet, SluiceError } from "sluice";
import { parsePolicyText } from "sluice/policy-text";
import { everyDimension } from "../replay/prepare-policies.ts";
import {
  type PoliciesLine,
  type RecordingFacts,
  type RecordingHead,
  type RecordingLine,
  type RequestLine,
  recordingCounts,
  recordingFormat,
} from "../replay/recording-lines.ts";
import type { RecordedDecision, SimulatedRequest } from "../replay/simulated-request.ts";
import { type LineParser, noRequest, type ParsedLine } from "./line-parser.ts";

/** Instants on a server are whole microseconds; counters count 2²⁰ steps in a millisecond. */
const stepsPerMs = 2 ** 20;
const stepsPerUs = stepsPerMs / 1000;
/** Below this, sums of instants are exact. Instants are counted from a multiple of it, the same for all recordings. */
const spanMs = 2 ** 33;

/** Reads recordings of Sluice itself. The first line is the head. */
export class RecordingParser implements LineParser {
  readonly carried: readonly string[] = [everyDimension];
  readonly recording: RecordingFacts;
  readonly #generations: number[] = [];
  readonly #isOnly: boolean;
  #originMs: number | undefined;
  #texts: string[] = [];
  #policies: PolicySet | undefined;

  /** `isOnly`: whether no other log is read along, whose requests would have other clocks. */
  constructor(head: RecordingHead, isOnly: boolean) {
    this.#isOnly = isOnly;
    const counts = Object.fromEntries(recordingCounts.map((name) => [name, 0])) as RecordingFacts["counts"];
    this.recording = { head, counts, generations: this.#generations, end: undefined };
  }

  parse(bytes: Buffer, start: number, end: number): ParsedLine {
    let line: RecordingLine | RecordingHead;
    try {
      line = JSON.parse(bytes.toString("utf8", start, end));
    } catch {
      return undefined;
    }
    if (typeof line !== "object" || line === null) return undefined;
    if ("d" in line || "g" in line) return this.#readRequest(line as RequestLine);
    if ("e" in line) return this.#readNote(line as Exclude<RecordingLine, RequestLine>);
    return "sluice_recording" in line ? noRequest : undefined;
  }

  #readRequest(line: RequestLine): SimulatedRequest | undefined {
    const moment = this.#readMoment(line);
    if (moment === undefined || !isRequest(line)) return undefined;
    const { g } = line;
    if (g !== undefined && !(Array.isArray(g) && g.length > 0 && g.every(isRequest))) return undefined;
    const parts = g ?? [line];
    const decision = parts.find(({ a }) => a === 0) ?? parts[0]!;
    const { timeMs, steadyMs, originMs } = moment;
    const first = requestFrom(parts[0]!, timeMs);
    return {
      ...first,
      wasDenied: decision.a === 0,
      ...(g !== undefined && { together: g.map((part) => requestFrom(part, timeMs)) }),
      recorded: { steadyMs, originMs, order: line.q ?? 0, decision: decisionFrom(decision), policies: this.#policies },
    };
  }

  #readMoment({ u, t }: RequestLine): { timeMs: number; originMs: number; steadyMs: number | undefined } | undefined {
    if (typeof u === "number" && Number.isSafeInteger(u) && u >= 0) {
      const wholeMs = Math.floor(u / 1000);
      const originMs = Math.floor(wholeMs / spanMs) * spanMs;
      // As the scripts do: the part of a millisecond, rounded down to a step.
      const steadyMs = wholeMs - originMs + Math.floor((u % 1000) * stepsPerUs) / stepsPerMs;
      return { timeMs: u / 1000, originMs, steadyMs };
    }
    const originMs = this.#originMs;
    if (typeof t !== "number" || !Number.isFinite(t) || originMs === undefined) return undefined;
    return { timeMs: originMs + t, originMs, steadyMs: this.#isOnly ? t : undefined };
  }

  #readNote(line: Exclude<RecordingLine, RequestLine>): ParsedLine {
    switch (line.e) {
      case "policies":
        return this.#readPolicies(line);
      case "clock":
        if (!Number.isFinite(line.origin_ms)) return undefined;
        this.#originMs = line.origin_ms;
        return noRequest;
      case "counts":
        for (const name of recordingCounts) {
          const count = line.counts?.[name];
          if (typeof count === "number" && count > 0) this.recording.counts[name] += count;
        }
        return noRequest;
      case "end":
        this.recording.end = String(line.why);
        return noRequest;
      default:
        return undefined;
    }
  }

  #readPolicies({ generation, part, parts, text }: PoliciesLine): ParsedLine {
    if (part === 0) this.#texts = [];
    if (typeof text !== "string" || part !== this.#texts.length) return undefined;
    this.#texts.push(text);
    if (this.#texts.length < parts) return noRequest;
    const whole = this.#texts.join("");
    this.#texts = [];
    try {
      this.#policies = parsePolicyText(whole, { file: `generation ${generation}.json` }).policySet;
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      throw new RangeError(
        `the policies of generation ${generation} in the recording cannot be read: ${error.message}`,
      );
    }
    this.#generations.push(generation);
    return noRequest;
  }
}

/** The head of a recording; undefined if the line is not one. Throws a `RangeError` for one of another format. */
export function parseRecordingHead(line: string): RecordingHead | undefined {
  let head: Partial<RecordingHead> | null;
  try {
    head = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof head !== "object" || head?.sluice_recording === undefined) return undefined;
  const { sluice_recording: format, share = 1, hashed = [], leases = false } = head;
  if (format !== recordingFormat)
    throw new RangeError(
      `this recording has format ${JSON.stringify(format)}, and this version of Sluice reads ${recordingFormat}`,
    );
  return { ...head, share, hashed, leases } as RecordingHead;
}

function isRequest({ d }: Pick<RequestLine, "d">): boolean {
  return typeof d === "object" && d !== null && Object.values(d).every((value) => typeof value === "string");
}

function requestFrom({ d, c, o, n }: Omit<RequestLine, "u" | "t" | "q" | "g">, timeMs: number): SimulatedRequest {
  return { timeMs, wholeSecond: false, dimensions: d, cost: c, domain: o, policies: n };
}

function decisionFrom({ a, r = "within_limits", p, s, m }: Omit<RequestLine, "u" | "t" | "q" | "g">): RecordedDecision {
  return { allowed: a === 1, reason: r, policy: p, scope: s, remaining: m };
}
