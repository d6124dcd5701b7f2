/**
 * The lines of a recording, one JSON object each: a head, then requests with notes between them, and an end. Names are
 * short because there is a line for each request. `docs/simulate.md` describes them for readers of other languages.
 */
export const recordingFormat = 1;

export interface RecordingHead {
  readonly sluice_recording: typeof recordingFormat;
  /** The version of Sluice that wrote it. */
  readonly version: string;
  readonly node: string;
  /** The number of this process among several behind the same ports, and how many there are. */
  readonly worker?: number | undefined;
  readonly workers?: number | undefined;
  /** Epoch milliseconds. */
  readonly from_ms: number;
  readonly counters: "memory" | "server";
  /** Whether all counters were empty. Absent: it is not known. */
  readonly fresh?: boolean | undefined;
  readonly leases: boolean;
  /** The part of all subjects that is recorded, above 0 up to 1, and the dimension that names them. */
  readonly share: number;
  readonly share_by?: string | undefined;
  /** Dimensions whose values are replaced: by a hash with a key that is kept nowhere, or by a digest because they are secrets. */
  readonly hashed: readonly string[];
}

/** One request, and what was decided. Absent fields have their usual value. */
export interface RequestLine {
  /** By counters on a server: their time, in microseconds since 1970. */
  readonly u?: number;
  /** By counters in memory: milliseconds of their steady clock. */
  readonly t?: number;
  /** The place among requests of the same `u`. */
  readonly q?: number;
  readonly d: Readonly<Record<string, string>>;
  readonly c?: number | undefined;
  /** The domain. */
  readonly o?: string | undefined;
  /** Policies that the request named. */
  readonly n?: readonly string[] | undefined;
  /** 1: allowed. */
  readonly a: 0 | 1;
  /** The reason; absent: `within_limits`. */
  readonly r?: string | undefined;
  readonly p?: string | undefined;
  readonly v?: number | undefined;
  /** The limit that decided. */
  readonly s?: string | undefined;
  /** How much remained. */
  readonly m?: number | undefined;
  /** Requests that were decided with this one, all or none. */
  readonly g?: readonly Omit<RequestLine, "u" | "t" | "q" | "g">[] | undefined;
}

/** Part of the text of the policies in force, a policy file in JSON. They apply to the requests below the last part. */
export interface PoliciesLine {
  readonly e: "policies";
  readonly generation: number;
  readonly part: number;
  readonly parts: number;
  readonly text: string;
}

/** Epoch milliseconds of instant 0 of the steady clock that `t` counts by. */
export interface ClockLine {
  readonly e: "clock";
  readonly origin_ms: number;
}

/** What happened since the last such line, by name, and is not in the requests. */
export interface CountsLine {
  readonly e: "counts";
  readonly counts: RecordingCounts;
}

export type RecordingCounts = Readonly<Partial<Record<RecordingCount, number>>>;

export const recordingCounts = [
  /** Requests that were not recorded because writing did not keep up. */
  "dropped",
  /** Of subjects that are not in the sample. */
  "sampled_out",
  "previews",
  /** Request ids that were decided before, and charged nothing. */
  "repeated",
  /** Requests that brought their own limits. */
  "own_limits",
  /** Changes of counters that are no checks. */
  "charge",
  "give_back",
  "block",
  "reset",
  "lease",
  "hold",
  /** Policies that came with disabled ones, or with blocked subjects. */
  "exceptions",
] as const;
export type RecordingCount = (typeof recordingCounts)[number];

export interface EndLine {
  readonly e: "end";
  readonly why: string;
  readonly requests: number;
}

export type RecordingLine = RequestLine | PoliciesLine | ClockLine | CountsLine | EndLine;

/** What a recording says about itself, as far as it was read. */
export interface RecordingFacts {
  readonly head: RecordingHead;
  readonly counts: Record<RecordingCount, number>;
  /** The generations of the policies that were in force, in order. */
  readonly generations: readonly number[];
  /** Why it ended. Undefined: it was cut off, or is not read to its end. */
  end: string | undefined;
}
